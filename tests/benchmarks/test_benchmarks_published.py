"""Published results: their numbers, tasks and sources."""

import shutil
from pathlib import Path

import pytest

from benchmarks.published import load_published
from benchmarks.tasks import TASKS
from provenance import UserError

REFERENCE = Path(__file__).parents[2] / "results" / "reference"


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
