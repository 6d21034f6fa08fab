"""Paired comparison of two models over their records."""

import dataclasses

import pytest

from benchmarks.compare import compare_models, run
from benchmarks.groups import load_groups
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
    ((a, b, scores),) = compare_models(load_groups(results), "a", "org/b", TASK.name)
    assert (a.name, b.name) == ("a", "org--b")
    comparison = scores["dev", "accuracy"]
    assert comparison.seeds == (0, 1, 2)
    assert comparison.difference == 2.0
    assert comparison.p_permutation == 0.25
    assert comparison.effect == 2.0


def test_printed(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    run("a", "org/b", TASK.name, results)
    printed = capsys.readouterr().out
    for word in ("53.00", "51.00", "+2.00", "-0.48 to +4.48", "0.250", "0.074"):
        assert word in printed


@pytest.mark.parametrize(
    "change",
    [{"protocol": "reduced"}, {"data_sha256": {"dev": "other"}}, {"task_version": "2"}, {}],
    ids=["protocol", "data", "version", "seeds"],
)
def test_other_data_protocol_or_seeds_are_not_compared(results, change):
    write_record(results, record("c", 0 if change else 77, 50.0, **change))
    with pytest.raises(UserError, match=r"no records on .* with the same data, protocol and seeds"):
        compare_models(load_groups(results), "a", "c", TASK.name)


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
