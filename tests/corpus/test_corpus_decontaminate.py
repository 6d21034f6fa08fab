"""Benchmark overlap: case 19."""

import json
from pathlib import Path

import numpy as np
import pytest

from corpus import decontaminate
from provenance import UserError

CONTEXT = "南江河发源于北山南麓，全长约三百二十公里，流经两省七县，最后注入东湖。"
OTHER = "青石桥始建于宋代，桥身用当地青石砌成，至今仍供行人往来，是县里的重点文物。"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "qa").mkdir(parents=True)
    (folder / "pairs").mkdir()
    questions = {"data": [{"context": CONTEXT, "question": "多长？"}, {"context": OTHER}]}
    (folder / "qa" / "dev.json").write_text(json.dumps(questions, ensure_ascii=False), encoding="utf-8")
    (folder / "pairs" / "dev.tsv").write_text(
        "怎么改签已经买好的高铁车票呢\t车票可以改签吗\t1\n", encoding="utf-8"
    )
    return folder


def found_in(texts: list[str], benchmark: decontaminate.Benchmark) -> np.ndarray:
    return np.unique(np.concatenate([decontaminate.overlap(text, benchmark.table)[0] for text in texts]))


def test_a_verbatim_context_is_one_hit(data: Path) -> None:
    benchmark = decontaminate.load_benchmark(data)
    page = "南江河是一条河流。" + CONTEXT + "沿岸多稻田。"
    report = decontaminate.hits_per_file(benchmark, found_in([page], benchmark))
    assert report["qa/dev.json"] == {"strings": 2, "whole": 1, "any": 1}  # the question is too short to count
    assert report["pairs/dev.tsv"] == {"strings": 1, "whole": 0, "any": 0}


def test_punctuation_does_not_hide_a_hit(data: Path) -> None:
    benchmark = decontaminate.load_benchmark(data)
    shared, own = decontaminate.overlap(CONTEXT.replace("，", " "), benchmark.table)
    assert len(shared) == own == len("南江河发源于北山南麓全长约三百二十公里流经两省七县最后注入东湖") - 12


def test_unrelated_text_shares_nothing(data: Path) -> None:
    benchmark = decontaminate.load_benchmark(data)
    shared, own = decontaminate.overlap(
        "今天的天气很好，我们一起去公园里散步，然后回家吃饭。", benchmark.table
    )
    assert (len(shared), own) == (0, 23 - 12)


def test_threshold() -> None:
    assert not decontaminate.is_contaminated(0, 0)
    assert decontaminate.is_contaminated(5, 10)
    assert not decontaminate.is_contaminated(29, 1000)
    assert decontaminate.is_contaminated(30, 1000)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no benchmark file"):
        decontaminate.load_benchmark(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad\.json"):
        decontaminate.load_benchmark(tmp_path)
