"""ChnSentiCorp: is a review of a hotel, a book or a computer positive?"""

from benchmarks.task import File, Task

_ZIP = ("https://raw.githubusercontent.com/ymcui/Chinese-BERT-wwm/master/data/chnsenticorp/chnsenticorp.zip",)

TASK = Task(
    name="chnsenticorp",
    title="ChnSentiCorp",
    kind="single",
    version="1",
    script="hans",
    files={
        "train": File(
            "train.tsv",
            rows=9_600,
            sha256="0b2653c23e5c79f539472e90cb10522f0ada4b80d3da95572d8b48fda47d5b33",
            urls=_ZIP,
            member="train.tsv",
        ),
        "dev": File(
            "dev.tsv",
            rows=1_200,
            sha256="d129e443eac08ce7643013dad496a8edf282be39cac1a4f2ad080818b296b331",
            urls=_ZIP,
            member="dev.tsv",
        ),
        "test": File(
            "test.tsv",
            rows=1_200,
            sha256="34f9d71eba6096cd8689e18913d28cf9a5f3c18a6c2804cd13304a321738c4bc",
            urls=_ZIP,
            member="test.tsv",
        ),
    },
    columns=("label", "text_a"),
    labels=("0", "1"),
    metrics=("accuracy",),
    main_metric="accuracy",
    max_length=256,
    epochs=3,
    learning_rates={"bert": 2e-5, "ernie": 5e-5},
    licence="not stated by its authors; do not redistribute",
    citation="Tan and Zhang, An empirical study of sentiment analysis for Chinese documents, "
    "Expert Systems with Applications 34(4), 2008",
    homepage="https://github.com/ymcui/Chinese-BERT-wwm/tree/master/data/chnsenticorp",
    note="More than a quarter of the dev and test texts also stand in train.",
    order=4,
)
