"""BQ Corpus: do two questions to a bank's customer service ask the same?"""

from benchmarks.task import File, Task

TASK = Task(
    name="bq",
    title="BQ Corpus",
    kind="pair",
    version="1",
    script="hans",
    files={
        "train": File("train.tsv", rows=100_000),
        "dev": File(
            "dev.tsv", rows=10_000, sha256="fe7ccff114f4d9ad75f8468a65437eb52d22e5fb8ca1d56a25340ba4c367442b"
        ),
        "test": File(
            "test.tsv", rows=10_000, sha256="9592b13afdfdc034d3d1b883d58807ea21989624d94e321bb802efb08d98c6d1"
        ),
    },
    columns=("text_a", "text_b", "label"),
    labels=("0", "1"),
    metrics=("accuracy",),
    main_metric="accuracy",
    max_length=128,
    epochs=3,
    learning_rates={"bert": 3e-5, "ernie": 5e-5},
    licence="research use on application; redistribution is not allowed",
    apply="apply to the Intelligent Computing Research Center, Harbin Institute of Technology (Shenzhen), "
    "with the form at http://icrc.hitsz.edu.cn/info/1037/1162.htm",
    citation="Chen et al., The BQ Corpus: A Large-scale Domain-specific Chinese Corpus For Sentence Semantic "
    "Equivalence Identification, EMNLP 2018",
    homepage="http://icrc.hitsz.edu.cn/info/1037/1162.htm",
    order=6,
)
