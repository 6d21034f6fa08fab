"""CMRC 2018: answer spans in paragraphs of the simplified Chinese Wikipedia."""

from benchmarks.task import File, Task

_RAW = "https://raw.githubusercontent.com/ymcui/cmrc2018/master/squad-style-data/"

TASK = Task(
    name="cmrc2018",
    title="CMRC 2018",
    kind="span",
    version="1",
    script="hans",
    files={
        "train": File(
            "train.json",
            rows=10_142,
            sha256="5497aa2f81908e31d6b0e27d99b1f90ab63a8f58fa92fffe5d17cf62eba0c212",
            urls=(_RAW + "cmrc2018_train.json",),
        ),
        "dev": File(
            "dev.json",
            rows=3_219,
            sha256="e9ff74231f05c230c6fa88b84441ee334d97234cbb610991cd94b82db00c7f1f",
            urls=(_RAW + "cmrc2018_dev.json",),
        ),
    },
    metrics=("exact_match", "f1"),
    main_metric="f1",
    max_length=512,
    epochs=2,
    learning_rates={"bert": 3e-5, "ernie": 8e-5},
    # 2,109 of the 10,142 training answers are longer than SQuAD's limit of 30.
    max_answer_length=100,
    licence="CC BY-SA 4.0",
    citation="Cui et al., A Span-Extraction Dataset for Chinese Machine Reading Comprehension, EMNLP 2019",
    homepage="https://github.com/ymcui/cmrc2018",
    note="Its authors keep test and challenge hidden: scores are on dev.",
    order=1,
)
