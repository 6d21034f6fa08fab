"""The scorers, against values the official scripts give."""

import json
import random

import pytest

from benchmarks.metrics import (
    cmrc,
    degenerate_labels,
    degenerate_spans,
    drcd,
    label_items,
    longest_common_run,
    percent,
    span_items,
    task_span_items,
)


@pytest.mark.parametrize(
    ("gold", "prediction", "em", "f1"),
    [
        ("北京市海淀区", "海淀区", 0, 0.6667),
        ("甲乙丙丁", "甲丙丁乙", 0, 0.5),
        ("甲乙丙丁", "甲乙X丙丁", 0, 0.4444),
        ("《红楼梦》", "红楼梦", 1, 1),
        ("1919年6月15日", "6月15日", 0, 0.8),
        ("甲（乙）", "甲乙", 1, 1),
        ("甲(乙)", "甲乙", 0, 0.3333),
        ("‘甲’", "甲", 0, 0.6667),
        ("甲…乙", "甲乙", 0, 0.4),
        ("甲 乙", "甲乙", 0, 1),
        ("Windows 10", "windows10", 0, 0),
        ("-5℃", "5℃", 1, 1),
        ("，。", "。", 1, 0),
        ("臺灣", "台灣", 0, 0.5),
    ],
)
def test_cmrc_scorer_semantics(gold, prediction, em, f1):
    """Values of the official script; nothing of nltk is downloaded."""
    found = cmrc([gold], prediction)
    assert found[0] == em
    assert found[1] == pytest.approx(f1, abs=5e-5)


@pytest.mark.real
def test_cmrc_scorer_equals_the_official_one(real_data):
    """All 500 pairs."""
    lines = (real_data / "golden/cmrc_scorer.jsonl").read_text(encoding="utf-8").strip().split("\n")
    assert len(lines) == 500
    for line in lines:
        pair = json.loads(line)
        em, f1 = cmrc(pair["answers"], pair["prediction"])
        assert em == pair["em"]
        assert f1 == pytest.approx(pair["f1"], abs=1e-12)


def test_the_best_gold_answer_counts():
    """A spreadsheet-damaged answer stays among the gold answers and does no harm."""
    assert cmrc(["39764.0", "甲"], "甲") == (1, 1)
    assert cmrc(["39764.0", "甲"], "39764.0") == (1, 1)
    assert cmrc([], "甲") == (0, 0)


def test_drcds_own_metric_is_a_bag_of_characters():
    assert drcd(["甲乙丙丁"], "甲丙丁乙")[1] == 1.0
    assert cmrc(["甲乙丙丁"], "甲丙丁乙")[1] == 0.5
    assert drcd(["《紅樓夢》，"], "紅樓夢") == (1, 1)
    assert drcd(["「紅樓夢」"], "紅樓夢")[0] == 0  # corner brackets are not among its marks


def test_a_task_with_a_scorer_of_its_own_has_both_scores():
    """As HFL reports it, and as the task's authors do: 甲丙丁乙 has the right bag of characters."""
    gold, given = {"1": ["甲乙丙丁"], "2": ["《戊》"]}, {"1": "甲丙丁乙", "2": "戊"}
    items = task_span_items(gold, given, "drcd")
    assert percent(items) == {"exact_match": 50.0, "f1": 75.0, "own_exact_match": 50.0, "own_f1": 100.0}
    assert task_span_items(gold, given) == span_items(gold, given)


def test_longest_common_run_equals_the_quadratic_definition():
    def plain(left, right):
        runs = (right[i:j] for i in range(len(right)) for j in range(i + 1, len(right) + 1))
        whole = "|" + "|".join(left) + "|"
        return max((len(run) for run in runs if "|" + "|".join(run) + "|" in whole), default=0)

    rng = random.Random(0)
    for _ in range(200):
        left, right = ([rng.choice("abc") for _ in range(rng.randint(0, 12))] for _ in range(2))
        assert longest_common_run(left, right) == plain(left, right)


def test_scores_are_percent_over_all_gold_items():
    """An id without prediction counts 0."""
    gold = {"1": ["甲"], "2": ["乙"], "3": ["丙丁"], "4": ["戊"]}
    assert percent(span_items(gold, {"1": "甲", "3": "丙"})) == {
        "exact_match": 25.0,
        "f1": pytest.approx(100 * (1 + 2 / 3) / 4),
    }
    items = label_items({"1": 0, "2": 1, "3": 1}, {"1": 0, "2": 0})
    assert items == {"accuracy": [1.0, 0.0, 0.0]}
    assert percent(items) == {"accuracy": pytest.approx(100 / 3)}
    assert percent({"accuracy": []}) == {"accuracy": 0.0}


def test_a_run_that_learned_nothing_is_named():
    gold = [0, 1] * 500
    assert degenerate_labels(gold, [1] * 1000) == "predicts one class only"
    assert degenerate_labels(gold, [0, 1, 1, 0] * 250) == "at chance"
    assert degenerate_labels(gold, [0, 1] * 400 + [0, 0] * 100) is None
    assert degenerate_labels([0, 0, 0], [0, 0, 0]) is None
    assert degenerate_spans(["", " ", ""], [0.0] * 3) == "all predictions are empty"
    assert degenerate_spans(["甲", "甲"], [1.0, 0.0]) == "all predictions are equal"
    assert degenerate_spans(["甲", "乙"], [0.0, 0.0]) == "at chance"
    assert degenerate_spans(["甲", "乙"], [0.0, 1.0]) is None
