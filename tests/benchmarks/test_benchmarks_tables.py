"""Tables over made-up records: what stands where, nothing mixed, the same bytes each time."""

import csv
import dataclasses
import functools
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import tables
from benchmarks.console import run_table
from benchmarks.frames import item_error
from benchmarks.groups import Group, load_groups
from benchmarks.record import record_path, write_record
from benchmarks.render import escape
from benchmarks.tables import run
from benchmarks.tasks import TASKS
from provenance import UserError, write_json

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
TEN = [62.1, 62.4, 62.6, 62.7, 62.8, 62.9, 63.0, 63.1, 63.2, 63.4]
PAIR = next(task for task in TASKS.values() if task.kind == "pair" and "test" in task.files)


def write_tables(results: Path, reference: Path, out: Path, pictures: bool = False) -> None:
    """Without pictures, which take seconds, where nothing looks at them."""
    tables.write_tables(results, reference, out, pictures=pictures)


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


def test_a_run_ends_with_its_scores_in_eighty_characters(tmp_path, capsys, record):
    """Deviation over seeds, and beside it the noise of items of one run: (40 + 42) / 2 to (60 + 64) / 2."""
    for seed, bounds in enumerate([[40.0, 60.0], [42.0, 64.0]]):
        scores = {"dev": {"accuracy": 100.0 * seed, "accuracy_unseen": 50.0}}
        made = record(seed, 0, 0, scores=scores, protocol="reduced", intervals={"dev": {"accuracy": bounds}})
        write_record(tmp_path, made)
    Console(width=80).print(run_table("ours", load_groups(tmp_path)))
    printed = capsys.readouterr().out
    assert f"{PAIR.title}*" in printed
    assert "* reduced protocol" in printed
    (line,) = [line for line in printed.split("\n") if "acc. " in line and "unseen" not in line]
    assert line.split()[1:] == ["dev", "acc.", "2", "100.00", "(50.00)", "±", "70.71", "41.00", "to", "62.00"]
    assert "acc. unseen" in printed
    assert max(map(len, printed.split("\n"))) <= 80


def test_every_seed_has_a_row_of_its_own(results, tmp_path, record):
    """Long form, as pandas and R want it; numbers of items are whole where some rows have none."""
    scores = {"dev": {"accuracy": 50.0}, "test": {"accuracy": 51.0, "accuracy_unseen": 40.0}}
    intervals = {"test": {"accuracy": [45.5, 56.25]}}
    write_record(results, record(10, 0, 0, scores=scores, intervals=intervals, degenerate=True))
    write_tables(results, REFERENCE, tmp_path / "out")
    rows = rows_of(tmp_path / "out", "scores.csv")
    assert len(rows) == 2 * 10 + 3
    test = {row["seed"]: row for row in rows if (row["split"], row["metric"]) == ("test", "accuracy")}
    assert [float(test[str(seed)]["score"]) for seed in range(10)] == TEN
    last = test["10"]
    assert (last["items_low"], last["items_high"], last["items"]) == ("45.5000", "56.2500", "10")
    assert (last["degenerate"], test["9"]["degenerate"], test["9"]["items_low"]) == ("1", "0", "")
    (unseen,) = [row for row in rows if row["metric"] == "accuracy_unseen"]
    assert (unseen["score"], unseen["items"]) == ("40.0000", "")


def test_best_dev_seed_is_the_lowest_of_equals(record):
    group = Group((record(2, 50.0, 1.0), record(5, 60.0, 2.0), record(7, 60.0, 3.0)))
    assert group.at_best_dev("accuracy") == (5, 2.0)
    no_test = Group((record(2, 50.0, 1.0, scores={"dev": {"accuracy": 50.0}}),))
    assert no_test.at_best_dev("accuracy") is None


def test_same_bytes_each_time_and_whatever_machine_or_date(results, few, tmp_path, record):
    write_tables(results, few, tmp_path / "one", pictures=True)
    moved = tmp_path / "elsewhere"
    for seed, score in reversed(list(enumerate(TEN))):
        other = record(seed, 70.0 if seed == 4 else 60.0, score)
        write_record(
            moved, dataclasses.replace(other, environment={"python": "4"}, seconds=99.0, started="x")
        )
    write_tables(moved, few, tmp_path / "two", pictures=True)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    assert len(names) == 5 * len(TASKS) + 4 + 4 + 2  # tasks, overall, two plots, all seeds, the page
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_reduced_full_and_published_stand_apart(results, tmp_path, record):
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


def test_two_settings_are_two_rows_told_apart(results, tmp_path, record):
    write_record(
        results, record(0, 50.0, 51.0, bench_id="f" * 12, config={"learning_rate": 1e-4, "epochs": 3})
    )
    out = tmp_path / "out"
    write_tables(results, REFERENCE, out)
    text = page(out, f"{PAIR.name}.md")
    assert "learning rate 0.0003 | 000000000000 |" in text
    assert "| 51.00 (51.00) | 51.00 |  | learning rate 0.0001 | ffffffffffff |" in text
    assert "ours [bench id ffffffffffff]" in page(out, "overall.md")


def test_seeds_of_different_machines_or_versions_are_said(results, tmp_path, record):
    """Neither is part of the id, and both can change a score."""
    write_tables(results, REFERENCE, tmp_path / "one")
    assert {row["setting"] for row in rows_of(tmp_path / "one", f"{PAIR.name}.csv")} == {""}
    for seed, device in ((11, "cpu"), (12, "NVIDIA H200")):
        machine = {"device": device, "torch": "2.13.0", "python": str(seed)}
        write_record(results, record(seed, 50.0, 51.0, bench_id="e" * 12, environment=machine))
    write_tables(results, REFERENCE, tmp_path / "two")
    settings = {row["bench_id"]: row["setting"] for row in rows_of(tmp_path / "two", f"{PAIR.name}.csv")}
    machines = "device NVIDIA H200 and cpu"
    assert settings["e" * 12] == f"{machines}, torch 2.13.0; seeds of different {machines}"
    assert settings["0" * 12] == "device unknown, torch unknown"


def test_the_same_weights_under_another_name_take_no_setting_away(results, tmp_path, record):
    """Two settings under one name are told apart though one of them alone stands under another name, too."""
    other = {"bench_id": "f" * 12, "config": {"learning_rate": 1e-4, "epochs": 3}}
    write_record(results, record(0, 50.0, 51.0, **other))
    model = {"name": "ours-too", "weights_sha256": "ab" * 32, "parameters": 12_280_576}
    write_record(results, record(0, 50.0, 51.0, model=model, **other))
    write_tables(results, REFERENCE, tmp_path / "out")
    settings = [
        row["setting"] for row in rows_of(tmp_path / "out", f"{PAIR.name}.csv") if row["split"] == "dev"
    ]
    assert settings == ["learning rate 0.0003", "learning rate 0.0001", ""]


def test_other_weights_of_one_name_are_another_row(results, tmp_path, record):
    model = {"name": "ours", "weights_sha256": "cd" * 32, "parameters": 12_280_576}
    other = next(task for task in TASKS.values() if task.kind == "pair" and task.name != PAIR.name)
    write_record(results, record(0, 50.0, 51.0, bench_id="f" * 12, model=model, task=other.name))
    write_tables(results, REFERENCE, tmp_path / "out")
    assert "ours [weights cdcdcdcd]" in page(tmp_path / "out", "overall.md")
    assert "ours [weights abababab]" in page(tmp_path / "out", "overall.md")


def test_degenerate_runs_are_flagged(results, tmp_path, record):
    write_record(results, record(10, 33.3, 33.3, degenerate=True))
    write_tables(results, REFERENCE, tmp_path / "out")
    assert "| 1 of 11 |" in page(tmp_path / "out", f"{PAIR.name}.md")
    assert "n 11†" in page(tmp_path / "out", "overall.md")
    assert load_groups(results)[0].degenerate == 1


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"config": {"learning_rate": 1.0, "epochs": 3}}, "config"),
        ({"data_sha256": {"train": "other"}}, "data_sha256"),
        ({"protocol": "reduced"}, "protocol"),
        ({"model": {"name": "ours", "weights_sha256": "cd", "parameters": 1}}, "model"),
    ],
)
def test_records_of_one_id_that_disagree_are_refused_by_name(results, tmp_path, change, word, record):
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


def test_console_shows_ours_and_hfl_in_their_own_columns_of_a_hundred_characters(
    results, tmp_path, capsys, monkeypatch, record
):
    """HFL's README: ELECTRA-small 85.9 (85.6) and base 87.6 (87.3) on LCQMC test, 73.1 (72.6) on XNLI's."""
    monkeypatch.setenv("COLUMNS", "100")
    note = "train: 90 % of dev"
    name = "zh-electra-mini-random"
    model = {"name": name, "weights_sha256": "cd" * 32, "parameters": 5_962_496}
    reduced = {"protocol": "reduced", "protocol_note": note, "bench_id": "1" * 12, "model": model}
    write_record(results, record(0, 50.0, 51.0, degenerate=True, **reduced))
    monkeypatch.setattr(
        "benchmarks.tables.write_tables", functools.partial(tables.write_tables, pictures=False)
    )
    run(results, REFERENCE, tmp_path / "out")
    printed = capsys.readouterr().out
    assert max(map(len, printed.split("\n"))) <= 100
    full, other = printed.split("Measured here, reduced protocol")
    assert other.count(name) == 2  # never folded
    (ours,) = [line for line in full.split("\n") if "test acc." in line]
    hfl = {"XNLI": ("73.1 (72.6)", "78.4 (77.8)"), "LCQMC": ("85.9 (85.6)", "87.6 (87.3)")}
    cells = [PAIR.title, "test acc.", "ours", "10", "63.40 (62.82) ± 0.39", *hfl[PAIR.title]]
    assert [cell.strip() for cell in ours.split("  ") if cell.strip()] == cells
    head = full.split(PAIR.title)[0]
    assert head.count("published") == head.count("HFL ELECTRA") == 2
    assert "not comparable" in other
    assert "51.00 (51.00) †" in other
    assert "not comparable" not in full


def test_scores_on_unseen_inputs_are_in_the_task_tables(results, tmp_path, record):
    for seed, score in enumerate(TEN):
        scores = {"dev": {"accuracy": 60.0}, "test": {"accuracy": score, "accuracy_unseen": score - 10}}
        write_record(results, record(seed, 0, 0, scores=scores))
    write_tables(results, REFERENCE, tmp_path / "out")
    assert "test accuracy on inputs not in train" in page(tmp_path / "out", f"{PAIR.name}.md")
    assert "| 53.40 (52.82) ± 0.39 |" in page(tmp_path / "out", f"{PAIR.name}.md")
    assert "53.40" not in page(tmp_path / "out", "overall.md")


def test_noise_of_the_choice_of_items():
    """CMRC 2018 dev at 62.9 % EM: 0.85 points; ChnSentiCorp's 1,200 at 93.5 %: 0.71; none for F1."""
    assert item_error("exact_match", 62.9, 3219) == pytest.approx(0.851, abs=1e-3)
    assert item_error("accuracy", 93.5, 1200) == pytest.approx(0.712, abs=1e-3)
    assert item_error("f1", 80.2, 3219) is None


def test_latex_is_escaped():
    assert escape("a_b & 50% {x} #1 \\ ± †") == (r"a\_b \& 50\% \{x\} \#1 \textbackslash{} $\pm$ $\dagger$")


def test_ceiling_and_item_interval_reach_the_tables(tmp_path, record):
    """The interval is the mean of the runs' bounds: (50 + 52) / 2 and (60 + 64) / 2."""
    task = next(task for task in TASKS.values() if task.kind == "span")
    for seed, bounds in enumerate([[50.0, 60.0], [52.0, 64.0]]):
        scores = {"dev": {"exact_match": 55.0, "f1": 70.0}}
        made = record(
            seed, 0, 0, task=task.name, scores=scores, ceiling={"dev": {"exact_match": 95.15, "f1": 97.0}}
        )
        write_record(tmp_path, dataclasses.replace(made, intervals={"dev": {"exact_match": bounds}}))
    write_tables(tmp_path, REFERENCE, tmp_path / "out")
    em, f1 = rows_of(tmp_path / "out", f"{task.name}.csv")
    assert (em["items_low"], em["items_high"], em["ceiling"]) == ("51.0000", "62.0000", "95.1500")
    assert (f1["items_low"], f1["ceiling"]) == ("", "97.0000")
    assert "Ceiling EM" in page(tmp_path / "out", f"{task.name}.md")
    assert "| dev 95.15 |" in page(tmp_path / "out", f"{task.name}.md")
