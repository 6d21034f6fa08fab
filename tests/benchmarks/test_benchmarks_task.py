"""Task files: complete, found by themselves, and named by no other code."""

import csv
import re
from pathlib import Path

import pytest

from benchmarks.metrics import SPAN_METRICS
from benchmarks.task import identity
from benchmarks.tasks import TASKS, get_task, get_tasks
from provenance import UserError, config_id

ROOT = Path(__file__).parents[2]


def test_the_six_tasks_are_found_in_the_order_of_the_tables():
    assert list(TASKS) == ["cmrc2018", "drcd", "xnli", "chnsenticorp", "lcqmc", "bq"]
    assert [task.name for task in get_tasks("all")] == list(TASKS)
    assert [task.name for task in get_tasks("bq, drcd,bq")] == ["bq", "drcd"]


def test_an_unknown_task_lists_the_six():
    with pytest.raises(UserError, match="cmrc2018, drcd, xnli, chnsenticorp, lcqmc, bq"):
        get_task("squad")


@pytest.mark.parametrize(
    ("name", "length", "epochs", "rate"),
    [
        ("cmrc2018", 512, 2, 3e-5),
        ("drcd", 512, 2, 3e-5),
        ("xnli", 128, 2, 3e-5),
        ("chnsenticorp", 256, 3, 2e-5),
        ("lcqmc", 128, 3, 2e-5),
        ("bq", 128, 3, 3e-5),
    ],
)
def test_defaults_follow_the_published_recipe(name, length, epochs, rate):
    """No task falls back to a length of 128 because of its name."""
    task = get_task(name)
    assert (task.max_length, task.epochs, task.learning_rates["bert"]) == (length, epochs, rate)
    assert task.max_answer_length == (100 if task.kind == "span" else None)


@pytest.mark.parametrize("name", list(TASKS))
def test_every_task_is_complete(name):
    task = get_task(name)
    assert {"train", "dev"} <= task.files.keys()
    assert task.main_metric in task.metrics
    assert task.licence
    assert task.citation
    assert task.apply or all(file.urls for file in task.files.values())
    assert (task.kind == "span") == (not task.labels)
    if task.kind != "span":
        assert set(task.columns) == {"label", "text_a"} | ({"text_b"} if task.kind == "pair" else set())


def test_titles_are_those_of_the_published_results():
    with open(ROOT / "results/reference/published_results.csv", encoding="utf-8", newline="") as file:
        assert {row["task"] for row in csv.DictReader(file)} == {task.title for task in TASKS.values()}


def test_no_other_code_names_a_task():
    names = "|".join(sorted(TASKS.keys() - SPAN_METRICS.keys()))  # DRCD's metric has the task's name
    titles = "|".join(re.escape(task.title) for task in TASKS.values())
    quoted = re.compile(rf"""["']({names}|{titles})["']""")
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        found = quoted.search(path.read_text(encoding="utf-8"))
        assert not found, f"{path.name} names {found and found[0]}"


def test_identity_ignores_where_files_lie_and_follows_what_changes_scores():
    import dataclasses

    task = get_task("xnli")
    same = dataclasses.replace(task, homepage="elsewhere", note="", order=3, licence="x", citation="y")
    assert config_id(identity(same)) == config_id(identity(task))
    assert config_id(identity(dataclasses.replace(task, version="2"))) != config_id(identity(task))


def test_labels_have_aliases():
    """The training file of XNLI spells one label differently."""
    task = get_task("xnli")
    assert task.label_number("contradictory") == task.label_number("contradiction") == 0
    assert task.label_number("-") is None
