"""Fine-tuning against the Trainer: both do the same work, so that their times can be compared."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.speed import accuracy
from benchmarks.speed.finetune import Work, ours, padded, repeated, trainer, work_of
from benchmarks.speed.turns import Setting
from finetune.examples import TextExample
from finetune.train import Split

CPU = torch.device("cpu")
SAMPLE = Path(__file__).parents[2] / "benchmarks" / "sample"


@pytest.fixture(scope="module", autouse=True)
def _forget_the_trainer():
    """The Trainer leaves its bf16 behind in accelerate's global state, for all later tests here."""
    yield
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(scope="module")
def without_dropout(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speed") / "model"
    shutil.copytree(tiny_model, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {name: 0.0 for name in config if "dropout" in name}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def work(setting: Setting, task: str, length: int) -> Work:
    """All examples in one batch, in float32, and the full rate from the first update on."""
    found = work_of(setting, task, rows=12, predict=5, epochs=4)
    exact = replace(
        found.config, dtype="fp32", batch_size=100, warmup=0.0, learning_rate=1e-3, max_length=length
    )
    return replace(found, config=exact)


@pytest.mark.parametrize(("task", "length"), [("lcqmc", 48), ("chnsenticorp", 64)])
def test_both_train_and_predict_the_same(
    task: str, length: int, without_dropout: Path, tmp_path: Path
) -> None:
    """Without dropout four updates on one batch differ by rounding only: padding, order, optimiser, rates."""
    setting = Setting(CPU, True, tmp_path, (), Path(), SAMPLE, without_dropout)
    same = work(setting, task, length)
    one, other = ours(same, CPU), trainer(same, CPU, tmp_path)
    assert one.loss == pytest.approx(other.loss, abs=2e-5)
    assert len(one.predictions) == len(other.predictions) == 5
    for ours_, theirs in zip(one.predictions, other.predictions, strict=True):
        assert (ours_["id"], ours_["prediction"]) == (theirs["id"], theirs["prediction"])
        assert ours_["probabilities"] == pytest.approx(theirs["probabilities"], abs=1e-4)


def test_both_train_and_predict_spans(without_dropout: Path, tmp_path: Path) -> None:
    """transformers' head counts padding among the places of an answer, so that its loss is higher at first:
    untrained it is that of a choice among all 192 places, ln 192 = 5.26, ours of one among fewer.
    """
    setting = Setting(CPU, True, tmp_path, (), Path(), SAMPLE, without_dropout)
    same = work(setting, "cmrc2018", 192)
    same = replace(same, config=replace(same.config, learning_rate=1e-9))
    one, other = ours(same, CPU), trainer(same, CPU, tmp_path)
    assert other.loss == pytest.approx(5.26, abs=0.05)
    assert 4 < one.loss < other.loss
    # the same weights but for the updates: the same answers
    assert [row["prediction"] for row in one.predictions] == [row["prediction"] for row in other.predictions]
    assert len(one.predictions) == 5


def test_examples_are_repeated_with_ids_of_their_own() -> None:
    rows = [TextExample("a", "天", None, 0), TextExample("b", "地", None, 1)]
    five = repeated(rows, 5)
    assert [row.text_a for row in five] == list("天地天地天")
    assert len({row.id for row in five}) == 5
    assert repeated(rows, 0) == []


def test_the_trainer_gets_rows_padded_to_the_length() -> None:
    rows = [(np.array([5, 6]), np.array([0, 1])), (np.array([7]), np.array([0]))]
    first, second = padded(Split([], rows, torch.tensor([1, 0]), None), 3, 9)
    assert [first[name].tolist() for name in first] == [[5, 6, 9], [0, 1, 0], [1, 1, 0], 1]
    assert second["input_ids"].tolist() == [7, 9, 9]


def test_accuracy_is_a_run_of_its_own(without_dropout: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    accuracy.run(SAMPLE, without_dropout, rows=16, epochs=1, seeds=2, device="cpu", out=tmp_path / "out")
    record = json.loads((tmp_path / "out" / "accuracy-cpu.json").read_text())
    assert {name: len(scores) for name, scores in record["accuracy"].items()} == dict.fromkeys(
        accuracy.WAYS, 2
    )
    assert record["difference"]["interval"][0] <= record["difference"]["mean"]
    assert "| ours |" in (tmp_path / "out" / "accuracy-cpu.md").read_text()
    assert not list(tmp_path.glob("speed-*"))
    assert accuracy.summary("ours", [70.0, 72.0]) == ["ours", "71.00 ± 1.41", "70.00, 72.00"]
