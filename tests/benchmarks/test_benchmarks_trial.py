"""One trial of each kind, and several as processes: what they leave, and what a crash costs."""

import dataclasses
import shutil
import threading
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.jobs import run_child, run_jobs, start_server
from benchmarks.metrics import percent
from benchmarks.protocol import load
from benchmarks.record import find_records, record_path
from benchmarks.tasks import get_task
from benchmarks.trial import log_path, run_trial, score_split
from provenance import UserError, sha256_file

ROOT = Path(__file__).parents[2]
COLOURS = "红黄蓝白黑青紫灰"


@pytest.mark.parametrize("name", ["cmrc2018", "lcqmc", "chnsenticorp"])
def test_a_trial_of_each_kind_leaves_record_and_predictions(name, tiny_model, data, tmp_path, trial_of):
    trial = trial_of(name, tiny_model, data, tmp_path)
    record = run_trial(trial)
    task = get_task(name)
    splits = ["dev"] if task.kind == "span" else ["dev", "test"]
    ((path, stored),) = find_records(tmp_path / "runs")
    assert path == record_path(tmp_path / "runs", "toy", name, trial.bench_id, 0)
    assert dataclasses.asdict(stored) == dataclasses.asdict(record)
    assert list(stored.scores) == splits
    assert all(set(task.metrics) <= metrics.keys() for metrics in stored.scores.values())
    assert stored.examples["train"] == 8
    assert stored.protocol == "reduced"
    for split in splits:
        kept = tmp_path / "predictions/toy" / name / trial.bench_id / f"seed-00.{split}.jsonl"
        assert sha256_file(kept) == stored.predictions_sha256[split]
        assert len(kept.read_text("utf-8").strip().split("\n")) == stored.examples[split]


def test_the_same_seed_gives_the_same_predictions_and_another_differs(tiny_model, data, tmp_path, trial_of):
    records = [
        run_trial(trial_of("lcqmc", tiny_model, data, tmp_path / str(i), seed))
        for i, seed in enumerate((0, 0, 1))
    ]
    assert records[0].predictions_sha256 == records[1].predictions_sha256
    assert records[0].predictions_sha256 != records[2].predictions_sha256
    assert len({record.bench_id for record in records}) == 1


def test_scores_on_inputs_that_train_does_not_hold(data):
    """Two of four test texts stand in train: 3 of 4 are right, of the two others 1. All of dev is there."""
    task = get_task("chnsenticorp")
    loaded = load(task, data)
    train, test = loaded.splits["train"], loaded.splits["test"]
    new = [dataclasses.replace(row, text_a=f"新{row.text_a}") for row in test[2:]]
    loaded.splits["test"][2:] = new
    given = [{"id": row.id, "prediction": row.label} for row in test]
    given[3]["prediction"] = 1 - given[3]["prediction"]
    items = score_split(task, loaded, "test", given)
    assert percent(items) == {"accuracy": 75.0, "accuracy_unseen": 50.0}
    assert [len(values) for values in items.values()] == [4, 2]
    assert {row.text_a for row in loaded.splits["dev"]} <= {row.text_a for row in train}
    dev = [{"id": row.id, "prediction": row.label} for row in loaded.splits["dev"]]
    assert percent(score_split(task, loaded, "dev", dev)) == {"accuracy": 100.0}


def test_a_task_with_a_scorer_of_its_own_has_its_scores_too():
    """DRCD: one character of four is lost to the longest common run, none to the bag of characters."""
    task = get_task("drcd")
    loaded = load(task, ROOT / "benchmarks/sample")
    row = dataclasses.replace(loaded.splits["dev"][0], answers=("甲乙丙丁",))
    loaded.splits["dev"][:] = [row]
    items = score_split(task, loaded, "dev", [{"id": row.id, "prediction": "甲丙丁乙"}])
    assert items == {"exact_match": [0.0], "f1": [0.5], "own_exact_match": [0.0], "own_f1": [1.0]}


def test_a_crash_costs_one_seed(tiny_model, data, tmp_path, trial_of):
    good = trial_of("lcqmc", tiny_model, data, tmp_path)
    refused = dataclasses.replace(good, seed=1, bench_id="0" * 12)
    crashed = dataclasses.replace(good, seed=2, facts={"name": "toy"})
    with open(tmp_path / "console", "w", encoding="utf-8") as file:
        trials = [(trial, 1.0) for trial in (refused, crashed, good)]
        failures = sorted(run_jobs(trials, 2, Console(file=file)))
    assert len(failures) == 2
    assert failures[0].startswith("LCQMC seed 1: the files of lcqmc")
    assert failures[1].startswith("LCQMC seed 2: KeyError")
    assert "Traceback" in log_path(crashed).read_text("utf-8")
    assert str(log_path(crashed)) in failures[1]
    assert [record.seed for _, record in find_records(tmp_path / "runs")] == [0]


def test_the_number_of_jobs_changes_no_record(tiny_model, data, tmp_path, trial_of):
    """Predictions to the bit: one at a time, two at once, and in this process."""
    found = {}
    for slots in (1, 2):
        out = tmp_path / str(slots)
        trials = [(trial_of("lcqmc", tiny_model, data, out, seed), 1.0) for seed in range(3)]
        assert run_jobs(trials, slots, Console(quiet=True)) == []
        found[slots] = [record.predictions_sha256 for _, record in find_records(out / "runs")]
    assert len(found[1]) == 3
    assert found[1] == found[2]
    here = run_trial(trial_of("lcqmc", tiny_model, data, tmp_path / "here"))
    assert here.predictions_sha256 == found[1][0]


def test_a_killed_trial_is_named(tiny_model, data, tmp_path, trial_of):
    """As the kernel kills one that asks for too much memory."""
    trial = trial_of("lcqmc", tiny_model, data, tmp_path)
    children: set = set()
    start_server()
    reason = run_child(trial, 0, lambda message: next(iter(children)).kill(), children, threading.Event())
    assert reason == "ended by SIGKILL (out of memory?)"
    assert not list(find_records(tmp_path / "runs"))


def test_a_trial_that_starts_during_an_interrupt_is_ended(tiny_model, data, tmp_path, trial_of):
    """It is not yet among the children when the others are ended."""
    trial, ending = trial_of("lcqmc", tiny_model, data, tmp_path), threading.Event()
    ending.set()
    start_server()
    assert run_child(trial, 0, lambda message: None, set(), ending) == "ended by SIGTERM"
    assert not list(find_records(tmp_path / "runs"))


def test_weights_that_changed_since_the_job_was_made_are_refused(tiny_model, data, tmp_path, trial_of):
    model = shutil.copytree(tiny_model, tmp_path / "model")
    trial = trial_of("lcqmc", model, data, tmp_path)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match=r"weights in .* changed during the run"):
        run_trial(trial)
