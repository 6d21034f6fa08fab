"""Paired comparison of two models over their records."""

import csv
import dataclasses

import pytest

from benchmarks.compare import compare_models, run
from benchmarks.groups import Group, load_groups
from benchmarks.items import item_frame
from benchmarks.predictions import predictions_folder, write_predictions
from benchmarks.record import Record, write_record
from benchmarks.tasks import TASKS
from provenance import UserError

TASK = next(task for task in TASKS.values() if task.kind == "pair")


def record(model: str, seed: int, accuracy: float, **changes) -> Record:
    base = Record(
        model={"name": model, "weights_sha256": model, "parameters": 1},
        task=TASK.name,
        task_version="1",
        protocol="full",
        seed=seed,
        bench_id=f"id-{model}",
        config={"learning_rate": 1e-4},
        scores={"dev": {"accuracy": accuracy}},
        examples={"dev": 10},
        data_sha256={"dev": "2"},
        predictions_sha256={},
        degenerate=False,
        git={},
        environment={},
        started="",
        seconds=1.0,
    )
    return dataclasses.replace(base, **changes)


@pytest.fixture
def results(tmp_path):
    for seed, (a, b) in enumerate([(51.0, 50.0), (53.0, 51.0), (55.0, 52.0)]):
        write_record(tmp_path, record("a", seed, a))
        write_record(tmp_path, record("org--b", seed, b))
    write_record(tmp_path, record("a", 9, 99.0))  # a seed B does not have
    return tmp_path


def test_pairs_over_common_seeds(results):
    """Differences 1, 2, 3 as in the test of the statistics; a Hub id finds its folder."""
    (pair,) = compare_models(load_groups(results), "a", "org/b", TASK, results)
    assert (pair.a.name, pair.b.name) == ("a", "org--b")
    comparison = pair.cells["dev", "accuracy"]
    assert comparison.seeds == (0, 1, 2)
    assert comparison.difference == 2.0
    assert comparison.p_permutation == 0.25
    assert comparison.effect == 2.0


def test_printed(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    run("a", "org/b", TASK.name, results)
    printed = capsys.readouterr().out
    for word in ("53.00", "51.00", "+2.00", "-0.48 to +4.48", "0.250", "items were not tested"):
        assert word in printed


@pytest.mark.parametrize(
    "change",
    [{"protocol": "reduced"}, {"data_sha256": {"dev": "other"}}, {"task_version": "2"}, {}],
    ids=["protocol", "data", "version", "seeds"],
)
def test_other_data_protocol_or_seeds_are_not_compared(results, change):
    write_record(results, record("c", 0 if change else 77, 50.0, **change))
    with pytest.raises(UserError, match=r"no records on .* with the same data, protocol and seeds"):
        compare_models(load_groups(results), "a", "c", TASK, results)


def test_unknown_model_lists_those_there_are(results):
    with pytest.raises(UserError, match=r"no records of nobody.*a, org--b"):
        run("a", "nobody", TASK.name, results)
    with pytest.raises(UserError, match="unknown task"):
        run("a", "org/b", "nothing", results)


def test_every_pair_of_settings_is_shown_and_told_apart(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    write_record(results, record("a", 0, 60.0, bench_id="second", config={"learning_rate": 2e-4}))
    run("a", "org/b", TASK.name, results)
    printed = capsys.readouterr().out
    assert "A a (id-a) against" in printed
    assert "A a (second) against" in printed
    assert "learning rate 0.0002" in printed


def test_settings_in_which_two_models_differ_are_shown(results, capsys, monkeypatch):
    """A difference of two models may be one of epochs."""
    monkeypatch.setenv("COLUMNS", "160")
    for seed in range(3):
        write_record(results, record("c", seed, 50.0, config={"learning_rate": 1e-4, "epochs": 1}))
        write_record(results, record("d", seed, 50.0, config={"learning_rate": 1e-4, "epochs": 3}))
    run("c", "d", TASK.name, results)
    printed = capsys.readouterr().out
    assert "A: weights c, epochs 1" in printed
    assert "B: weights d, epochs 3" in printed


def test_a_model_with_itself(results, capsys, monkeypatch):
    """Of one setting there is nothing to compare; of two, one pair, each told by what it differs in."""
    with pytest.raises(UserError, match=r"a has records of one setting alone on .*name two models"):
        run("a", "a", TASK.name, results)
    monkeypatch.setenv("COLUMNS", "160")
    for seed in range(3):
        changes = {"bench_id": "second", "config": {"learning_rate": 2e-4}}
        write_record(results, record("a", seed, 60.0, **changes))
    (pair,) = compare_models(load_groups(results), "a", "a", TASK, results)
    assert {pair.a.first.bench_id, pair.b.first.bench_id} == {"id-a", "second"}
    assert abs(pair.cells["dev", "accuracy"].difference) == 7.0
    run("a", "a", TASK.name, results)
    printed = capsys.readouterr().out
    assert "learning rate 0.0001" in printed
    assert "learning rate 0.0002" in printed


@pytest.fixture
def with_items(tmp_path):
    """Six seeds: A has 9 of 10 items right, B the same but for three of them; returns (runs, predictions)."""
    runs, kept = tmp_path / "runs", tmp_path / "predictions"
    for model, wrong in (("a", [0]), ("b", [0, 1, 2, 3])):
        for seed in range(6):
            path = predictions_folder(kept, model, TASK.name, f"id-{model}") / f"seed-0{seed}.dev.jsonl"
            rows = [{"id": f"dev-{i}", "prediction": int(i not in wrong)} for i in range(10)]
            digest = write_predictions(path, {f"dev-{i}": 1 for i in range(10)}, rows)
            score = 100.0 - 10 * len(wrong)
            write_record(runs, record(model, seed, score, predictions_sha256={"dev": digest}))
    return runs, kept


def test_items_are_paired_too(with_items):
    """Three items of ten differ, always for A: 2 of 8 sign patterns, 1/4; over six equal seeds 2 of 64."""
    runs, kept = with_items
    (pair,) = compare_models(load_groups(runs), "a", "b", TASK, kept)
    found = pair.cells["dev", "accuracy"]
    assert (found.difference, found.items) == (30.0, 10)
    assert found.p_permutation == 2 / 64
    assert found.p_items == pytest.approx(0.25, abs=0.015)
    assert found.p == found.p_items
    assert found.interval_both[0] < 30 < found.interval_both[1]


def test_items_are_written_those_that_differ_most_first(with_items, tmp_path, capsys):
    """B alone is wrong on items 1 to 3, both on item 0: the four columns of each, gold by its name."""
    runs, kept = with_items
    run("a", "b", TASK.name, runs, kept, tmp_path / "items.csv")
    assert "items.csv" in capsys.readouterr().out
    with open(tmp_path / "items.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"dev-{i}" for i in (1, 2, 3, 0, 4, 5, 6, 7, 8, 9)]
    right, wrong = TASK.labels[1], TASK.labels[0]
    assert rows[0] == {
        **{"task": TASK.name, "split": "dev", "id": "dev-1", "gold": right},
        **{"score_a": "100.0000", "prediction_a": right, "score_b": "0.0000", "prediction_b": wrong},
        "difference": "100.0000",
    }
    assert [row["difference"] for row in rows[3:]] == ["0.0000"] * 7
    predictions_of_a = predictions_folder(kept, "a", TASK.name, "id-a")
    (predictions_of_a / "seed-05.dev.jsonl").unlink()
    with pytest.raises(UserError, match=r"predictions of a on .* seed 5, are not in"):
        run("a", "b", TASK.name, runs, kept, tmp_path / "items.csv")


def test_several_answers_and_the_commonest_prediction_of_items(tmp_path):
    """Of three seeds two say 乙丙; the main metric of spans is F1: 0.5, 0.5 and 1."""
    task = next(task for task in TASKS.values() if task.kind == "span")
    groups = []
    for model, given in (("a", ["乙丙", "乙", "乙丙"]), ("b", ["丁", "丁", "丁"])):
        records = []
        for seed, text in enumerate(given):
            path = predictions_folder(tmp_path, model, task.name, f"id-{model}") / f"seed-0{seed}.dev.jsonl"
            digest = write_predictions(path, {"1": ["乙", "甲乙"]}, [{"id": "1", "prediction": text}])
            records.append(record(model, seed, 0.0, task=task.name, predictions_sha256={"dev": digest}))
        groups.append(Group(tuple(records)))
    (row,) = item_frame(*groups, "dev", "f1", tmp_path).to_dict("records")
    assert (row["gold"], row["prediction_a"], row["prediction_b"]) == ("乙 | 甲乙", "乙丙", "丁")
    assert row["score_a"] == pytest.approx(100 * (2 / 3 + 1 + 2 / 3) / 3)
    assert row["difference"] == row["score_a"]


def test_several_tasks_are_corrected_for(with_items, capsys, monkeypatch):
    """Holm over two tasks of equal p doubles it."""
    monkeypatch.setenv("COLUMNS", "200")
    runs, kept = with_items
    other = next(task for task in TASKS.values() if task.kind == "pair" and task is not TASK)
    for model, score in (("a", 60.0), ("b", 50.0)):
        for seed in range(6):
            write_record(runs, record(model, seed, score, task=other.name, bench_id=f"id-{model}-2"))
    run("a", "b", "all", runs, kept)
    printed = capsys.readouterr().out
    assert TASK.title in printed
    assert other.title in printed
    assert printed.count("Holm") == 2
    assert "0.0625" in printed  # 2 x 2/64, of the task whose items are not at hand
    assert "items were not tested" in printed


def test_predictions_of_another_run_are_refused_by_name(with_items):
    runs, kept = with_items
    path = predictions_folder(kept, "a", TASK.name, "id-a") / "seed-03.dev.jsonl"
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    with pytest.raises(UserError, match=r"seed-03\.dev\.jsonl is not what its record names"):
        compare_models(load_groups(runs), "a", "b", TASK, kept)
    path.unlink()
    (pair,) = compare_models(load_groups(runs), "a", "b", TASK, kept)
    assert pair.cells["dev", "accuracy"].items is None
