"""DRCD: answer spans in paragraphs of the traditional Chinese Wikipedia."""

from benchmarks.task import File, Task

_RAW = "https://raw.githubusercontent.com/DRCKnowledgeTeam/DRCD/master/"

TASK = Task(
    name="drcd",
    title="DRCD",
    kind="span",
    version="1",
    script="hant",
    files={
        "train": File("train.json", rows=26_936, urls=(_RAW + "DRCD_training.json",)),
        "dev": File(
            "dev.json",
            rows=3_524,
            sha256="aa83f3900cc553e21ce495d5b9bc14d0c89efcd268742293f90a50326ee2ca0a",
            urls=(_RAW + "DRCD_dev.json",),
        ),
        "test": File(
            "test.json",
            rows=3_493,
            sha256="d9de0b4d247a8391ac8daee6c02c2c8272b75562a1e2377b50ae04ecc09a7438",
            urls=(_RAW + "DRCD_test.json",),
        ),
    },
    metrics=("exact_match", "f1"),
    main_metric="f1",
    max_length=512,
    epochs=2,
    learning_rates={"bert": 3e-5, "ernie": 8e-5},
    own_metric="drcd",
    max_answer_length=100,
    licence="CC BY-SA 3.0",
    citation="Shao et al., DRCD: a Chinese Machine Reading Comprehension Dataset, arXiv:1806.00920",
    homepage="https://github.com/DRCKnowledgeTeam/DRCD",
    note="Scored with the CMRC 2018 scorer, as in HFL's tables, and besides with DRCD's own.",
    order=2,
)
