"""XNLI, Chinese part: does the first sentence entail the second, contradict it, or neither?"""

from benchmarks.task import File, Task

_CORPUS = ("https://dl.fbaipublicfiles.com/XNLI/XNLI-1.0.zip",)
_TRANSLATED = ("https://dl.fbaipublicfiles.com/XNLI/XNLI-MT-1.0.zip",)

TASK = Task(
    name="xnli",
    title="XNLI",
    kind="pair",
    version="1",
    script="hans",
    # dev and test are published in one table of fifteen languages; the Chinese rows alone are read too.
    files={
        "train": File("train.tsv", rows=392_702, urls=_TRANSLATED, member="multinli/multinli.train.zh.tsv"),
        "dev": File("dev.tsv", rows=2_490, urls=_CORPUS, member="xnli.dev.tsv"),
        "test": File("test.tsv", rows=5_010, urls=_CORPUS, member="xnli.test.tsv"),
    },
    stand_in=File("train_standin.tsv", rows=9_751),
    columns=("text_a", "text_b", "label"),
    column_names={
        "sentence1": "text_a",
        "sentence2": "text_b",
        "gold_label": "label",
        "premise": "text_a",
        "hypo": "text_b",
        "hypothesis": "text_b",
    },
    language="zh",
    labels=("contradiction", "entailment", "neutral"),
    label_aliases={
        "contradictory": "contradiction"
    },  # the training file's spelling (facebookresearch/XNLI#11)
    join_chinese=True,  # the training file is segmented into words, dev and test are not
    metrics=("accuracy",),
    main_metric="accuracy",
    max_length=128,
    epochs=2,
    learning_rates={"bert": 3e-5, "ernie": 5e-5},
    licence="see LICENSE in its repository",
    citation="Conneau et al., XNLI: Evaluating Cross-lingual Sentence Representations, EMNLP 2018",
    homepage="https://github.com/facebookresearch/XNLI",
    note="Training rows are MultiNLI, machine translated; dev and test are translated by people.",
    order=3,
)
