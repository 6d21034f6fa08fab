"""LCQMC: do two questions of a general question site ask the same?"""

from benchmarks.task import File, Task

TASK = Task(
    name="lcqmc",
    title="LCQMC",
    kind="pair",
    version="1",
    script="hans",
    files={
        "train": File("train.tsv", rows=238_766),
        "dev": File(
            "dev.tsv", rows=8_802, sha256="d3cd41ed89b8f6196a76ebff2aa03d5ecf42edcd12942aa865d34f7e570af7c2"
        ),
        "test": File(
            "test.tsv", rows=12_500, sha256="8969f9c16050f40df9da6f591443a47bc14c17a504a354ee4cc4ab5b9aa303d9"
        ),
    },
    columns=("text_a", "text_b", "label"),
    labels=("0", "1"),
    metrics=("accuracy",),
    main_metric="accuracy",
    max_length=128,
    epochs=3,
    learning_rates={"bert": 2e-5, "ernie": 3e-5},
    licence="research use on application; redistribution is not allowed",
    apply="apply to the Intelligent Computing Research Center, Harbin Institute of Technology (Shenzhen), "
    "with the form at http://icrc.hitsz.edu.cn/info/1037/1146.htm",
    citation="Liu et al., LCQMC: A Large-scale Chinese Question Matching Corpus, COLING 2018",
    homepage="http://icrc.hitsz.edu.cn/info/1037/1146.htm",
    order=5,
)
