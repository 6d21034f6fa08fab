"""Tables over made-up records: what stands where, nothing mixed, the same bytes each time."""

import csv
import dataclasses
import shutil
from pathlib import Path

import pytest

from benchmarks.groups import Group, load_groups
from benchmarks.published import load_published
from benchmarks.record import Record, record_path, write_record
from benchmarks.render import escape
from benchmarks.tables import console_tables, degenerate, run, write_tables
from benchmarks.tasks import TASKS
from provenance import UserError, write_json

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
TEN = [62.1, 62.4, 62.6, 62.7, 62.8, 62.9, 63.0, 63.1, 63.2, 63.4]
PAIR = next(task for task in TASKS.values() if task.kind == "pair" and "test" in task.files)


def record(seed: int, dev: float, test: float, **changes) -> Record:
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


@pytest.fixture
def results(tmp_path):
    """Ten seeds as test scores; seed 4 is best on dev."""
    folder = tmp_path / "runs"
    for seed, score in enumerate(TEN):
        write_record(folder, record(seed, 70.0 if seed == 4 else 60.0, score))
    return folder


def page(out: Path, name: str) -> str:
    return (out / name).read_text(encoding="utf-8")


def rows_of(out: Path, name: str) -> list[dict[str, str]]:
    with open(out / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_measured_row_carries_everything(results, tmp_path):
    """Max, mean, median, min, deviation (n - 1), all values, and test at the seed best on dev."""
    out = tmp_path / "out"
    write_tables(results, REFERENCE, out)
    (test,) = [row for row in rows_of(out, f"{PAIR.name}.csv") if row["split"] == "test"]
    assert (test["n"], test["max"], test["mean"], test["median"], test["min"]) == (
        *("10", "63.4000", "62.8200", "62.8500", "62.1000"),
    )
    assert test["std"].startswith("0.388")
    assert (test["at_best_dev"], test["best_dev_seed"]) == ("62.8000", "4")
    assert test["seeds"] == "0 1 2 3 4 5 6 7 8 9"
    assert test["values"].split() == [f"{value:.4f}" for value in TEN]
    assert float(test["interval_low"]) < 62.82 < float(test["interval_high"])
    text = page(out, f"{PAIR.name}.md")
    assert (
        "| ours | 12.3M | 10 | 70.00 (61.00) ± 3.16 | 63.40 (62.82) ± 0.39 | 62.80 |  |  | 000000000000 |"
        in text
    )
    assert r"63.40 (62.82) $\pm$ 0.39" in page(out, f"{PAIR.name}.tex")
    assert "63.40 (62.82) ± 0.39, n 10" in page(out, "overall.md")


def test_best_dev_seed_is_the_lowest_of_equals():
    group = Group((record(2, 50.0, 1.0), record(5, 60.0, 2.0), record(7, 60.0, 3.0)))
    assert group.at_best_dev("accuracy") == (5, 2.0)
    no_test = Group((record(2, 50.0, 1.0, scores={"dev": {"accuracy": 50.0}}),))
    assert no_test.at_best_dev("accuracy") is None


def test_same_bytes_each_time_and_whatever_machine_or_date(results, tmp_path):
    write_tables(results, REFERENCE, tmp_path / "one")
    moved = tmp_path / "elsewhere"
    for seed, score in reversed(list(enumerate(TEN))):
        other = record(seed, 70.0 if seed == 4 else 60.0, score)
        write_record(
            moved, dataclasses.replace(other, environment={"python": "4"}, seconds=99.0, started="x")
        )
    write_tables(moved, REFERENCE, tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    assert len(names) == 4 * len(TASKS) + 3
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_reduced_full_and_published_stand_apart(results, tmp_path):
    note = "train: 90 % of dev"
    write_record(results, record(0, 11.11, 22.22, bench_id="1" * 12, protocol="reduced", protocol_note=note))
    out = tmp_path / "out"
    write_tables(results, REFERENCE, out)
    for name in (f"{PAIR.name}.md", "overall.md"):
        sections = {s.split("\n", 1)[0]: s for s in page(out, name).split("\n## ")[1:]}
        (full,) = [text for title, text in sections.items() if "full protocol" in title]
        (reduced,) = [text for title, text in sections.items() if "reduced protocol" in title]
        (hfl,) = [text for title, text in sections.items() if "ublished by HFL" in title]
        assert "63.40" in full
        assert "22.22" in reduced
        assert "ELECTRA-small" in hfl
        assert "22.22" not in full + hfl
        assert "63.40" not in reduced + hfl
        assert "ELECTRA-small" not in full + reduced
    assert note in page(out, f"{PAIR.name}.md")
    assert "22.22" not in page(out, f"{PAIR.name}-published.csv")
    assert page(out, f"{PAIR.name}.tex").count(r"\toprule") == len(sections_of(page(out, f"{PAIR.name}.md")))


def sections_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("## ")]


def test_two_settings_are_two_rows_told_apart(results, tmp_path):
    write_record(
        results, record(0, 50.0, 51.0, bench_id="f" * 12, config={"learning_rate": 1e-4, "epochs": 3})
    )
    out = tmp_path / "out"
    write_tables(results, REFERENCE, out)
    text = page(out, f"{PAIR.name}.md")
    assert "learning rate 0.0003 | 000000000000 |" in text
    assert "| 51.00 (51.00) | 51.00 |  | learning rate 0.0001 | ffffffffffff |" in text
    assert "ours [bench id ffffffffffff]" in page(out, "overall.md")


def test_other_weights_of_one_name_are_another_row(results, tmp_path):
    model = {"name": "ours", "weights_sha256": "cd" * 32, "parameters": 12_280_576}
    other = next(task for task in TASKS.values() if task.kind == "pair" and task.name != PAIR.name)
    write_record(results, record(0, 50.0, 51.0, bench_id="f" * 12, model=model, task=other.name))
    write_tables(results, REFERENCE, tmp_path / "out")
    assert "ours [weights cdcdcdcd]" in page(tmp_path / "out", "overall.md")
    assert "ours [weights abababab]" in page(tmp_path / "out", "overall.md")


def test_degenerate_runs_are_flagged(results, tmp_path):
    write_record(results, record(10, 33.3, 33.3, degenerate=True))
    write_tables(results, REFERENCE, tmp_path / "out")
    assert "| 1 of 11 |" in page(tmp_path / "out", f"{PAIR.name}.md")
    assert "n 11†" in page(tmp_path / "out", "overall.md")
    assert degenerate(load_groups(results)[0]) == 1


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"config": {"learning_rate": 1.0, "epochs": 3}}, "config"),
        ({"data_sha256": {"train": "other"}}, "data_sha256"),
        ({"protocol": "reduced"}, "protocol"),
        ({"model": {"name": "ours", "weights_sha256": "cd", "parameters": 1}}, "model"),
    ],
)
def test_records_of_one_id_that_disagree_are_refused_by_name(results, tmp_path, change, word):
    path = write_record(results, record(11, 1.0, 1.0, **change))
    with pytest.raises(
        UserError, match=rf"{path.name} and .*seed-00\.json have one bench_id but differ in {word}"
    ):
        write_tables(results, REFERENCE, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_record_in_another_place_is_refused(results, tmp_path):
    path = record_path(results, "ours", PAIR.name, "0" * 12, 3)
    shutil.copy(path, path.with_name("seed-33.json"))
    with pytest.raises(UserError, match=r"seed-33\.json holds the record of another run"):
        write_tables(results, REFERENCE, tmp_path / "out")


def test_damaged_record_and_missing_folder_are_one_sentence(results, tmp_path):
    with pytest.raises(UserError, match="not a folder of records"):
        write_tables(tmp_path / "none", REFERENCE, tmp_path / "out")
    write_json(record_path(results, "ours", PAIR.name, "0" * 12, 3), {"schema": 1})
    with pytest.raises(UserError, match=r"seed-03\.json lacks"):
        write_tables(results, REFERENCE, tmp_path / "out")


def test_console_shows_ours_and_hfl_in_their_own_columns(results, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    run(results, REFERENCE, tmp_path / "out")
    printed = capsys.readouterr().out
    assert "Published by HFL" in printed
    assert "63.40 (62.82) ± 0.39" in printed
    (table,) = console_tables(load_groups(results), load_published(REFERENCE))
    assert [str(column.header) for column in table.columns][-2:] == [
        "Published by HFL: ELECTRA-small",
        "Published by HFL: ELECTRA-base",
    ]


def test_published_facts():
    """Numbers of HFL's README as in the reference file: all 732 rows, HFL's first, ELECTRA first of them."""
    rows = load_published(REFERENCE)
    assert len(rows) == 732
    assert len({row.model for row in rows}) == 62
    groups = [row.group for row in rows]
    assert groups == sorted(groups, key=["HFL", "others"].index)
    assert "Chinese-ELECTRA" in rows[0].source
    by = {
        (r.model, r.task, r.split, r.metric, r.group): r.text for r in rows if "Chinese-ELECTRA" in r.source
    }
    assert by["ELECTRA-small", "CMRC 2018", "dev", "EM", "HFL"] == "63.4 (62.9)"
    assert by["ELECTRA-180g-small", "CMRC 2018", "dev", "F1", "HFL"] == "82.7"


def test_published_rows_name_tasks_and_metrics_that_exist():
    titles = {task.title for task in TASKS.values()}
    assert {row.task for row in load_published(REFERENCE)} == titles
    assert {row.metric for row in load_published(REFERENCE)} == {"EM", "F1", "accuracy"}


def test_a_source_without_group_is_named(tmp_path):
    for name in ("published_results.csv", "sources.csv"):
        shutil.copy(REFERENCE / name, tmp_path / name)
    with open(tmp_path / "published_results.csv", "a", encoding="utf-8") as file:
        file.write("m,1M,XNLI,dev,accuracy,1,,somewhere,\n")
    with pytest.raises(UserError, match=r"row 734: source 'somewhere' is not in sources\.csv"):
        load_published(tmp_path)


def test_latex_is_escaped():
    assert escape("a_b & 50% {x} #1 \\ ± †") == (r"a\_b \& 50\% \{x\} \#1 \textbackslash{} $\pm$ $\dagger$")
