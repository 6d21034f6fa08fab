"""Fixtures of the benchmark tests: small task files, jobs and records made by hand."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from benchmarks.protocol import load
from benchmarks.record import Record, write_record
from benchmarks.settings import resolve
from benchmarks.tasks import TASKS, get_task
from benchmarks.trial import Trial, identify
from finetune.models import model_facts

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
COLOURS = "红黄蓝白黑青紫灰"


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A few rows of one task of each kind."""
    root = tmp_path_factory.mktemp("data")
    for name in ("lcqmc", "chnsenticorp", "cmrc2018"):
        (root / name).mkdir()
    for split, count in (("train", 8), ("dev", 4), ("test", 4)):
        pairs = [f"{COLOURS[i]}花好看吗{split}\t{COLOURS[i]}花美吗\t{i % 2}\n" for i in range(count)]
        (root / "lcqmc" / f"{split}.tsv").write_text("".join(pairs), "utf-8")
        texts = [f"{i % 2}\t{COLOURS[i]}房间\n" for i in range(count)]
        (root / "chnsenticorp" / f"{split}.tsv").write_text("label\ttext_a\n" + "".join(texts), "utf-8")
        qas = [
            {"id": f"{split}-{i}", "question": "什么颜色？", "answers": [{"text": c, "answer_start": 2 * i}]}
            for i, c in enumerate(COLOURS[:count])
        ]
        paragraph = {"context": "花".join(COLOURS), "qas": qas}
        (root / "cmrc2018" / f"{split}.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    return root


def make_trial(name, model, data, out, seed=0):
    task = get_task(name)
    loaded, facts = load(task, data), model_facts(model) | {"name": "toy"}
    config, _ = resolve(task, facts, {"epochs": 1, "batch_size": 4, "dtype": "fp32"})
    return Trial(
        model=str(model),
        facts=facts,
        task=name,
        data=str(data),
        limit=None,
        config=config,
        bench_id=identify(task, loaded, facts, config),
        seed=seed,
        results=str(out / "runs"),
        predictions=str(out / "predictions"),
    )


@pytest.fixture(scope="session")
def trial_of():
    """Makes the job of a task, a model, a folder of data and one for what it writes."""
    return make_trial


# --- records ---------------------------------------------------------------------------------------

TEN = [62.1, 62.4, 62.6, 62.7, 62.8, 62.9, 63.0, 63.1, 63.2, 63.4]
PAIR = next(task for task in TASKS.values() if task.kind == "pair" and "test" in task.files)


def make_record(seed: int, dev: float, test: float, **changes) -> Record:
    base = Record(
        model={"name": "ours", "weights_sha256": "ab" * 32, "parameters": 12_280_576},
        task=PAIR.name,
        task_version="1",
        protocol="full",
        seed=seed,
        bench_id="0" * 12,
        config={"learning_rate": 3e-4, "epochs": 3},
        scores={"dev": {"accuracy": dev}, "test": {"accuracy": test}},
        examples={"train": 10, "dev": 10, "test": 10},
        data_sha256={"train": "1", "dev": "2", "test": "3"},
        predictions_sha256={"dev": str(seed), "test": str(seed)},
        degenerate=False,
        git={"commit": None, "dirty": None},
        environment={"python": "3.11"},
        started=f"2025-01-01T00:00:{seed:02d}+00:00",
        seconds=1.5 * seed,
    )
    return dataclasses.replace(base, **changes)


@pytest.fixture(scope="session")
def record():
    """Makes the record of a seed with its scores on dev and test; further fields by name."""
    return make_record


@pytest.fixture
def results(tmp_path):
    """Ten seeds as test scores; seed 4 is best on dev."""
    folder = tmp_path / "runs"
    for seed, score in enumerate(TEN):
        write_record(folder, make_record(seed, 70.0 if seed == 4 else 60.0, score))
    return folder


@pytest.fixture
def few(tmp_path):
    """A reference of thirty rows: enough for pictures."""
    folder = tmp_path / "few"
    folder.mkdir()
    shutil.copy(REFERENCE / "sources.csv", folder)
    lines = (REFERENCE / "published_results.csv").read_text("utf-8").split("\n")
    (folder / "published_results.csv").write_text("\n".join(lines[:31]) + "\n", "utf-8")
    return folder
