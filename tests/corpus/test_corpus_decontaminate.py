"""Benchmark overlap: case 19."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from corpus.duplicates import decontaminate
from corpus.hashing import letters_of
from corpus.script import converter
from provenance import UserError

CONTEXT = "南江河发源于北山南麓，全长约三百二十公里，流经两省七县，最后注入东湖。"
OTHER = "青石桥始建于宋代，桥身用当地青石砌成，至今仍供行人往来，是县里的重点文物。"
QUESTION = "怎么改签已经买好的高铁车票呢"
LONGER = "这条河我小时候常去，夏天在那里捉鱼，冬天河面结冰，可以走到对岸去看外婆，" * 3


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "qa").mkdir(parents=True)
    (folder / "pairs").mkdir()
    questions = {"data": [{"context": CONTEXT, "question": "多长？"}]}
    (folder / "qa" / "dev.json").write_text(json.dumps(questions, ensure_ascii=False), encoding="utf-8")
    (folder / "qa" / "train.json").write_text(json.dumps([OTHER]), encoding="utf-8")
    with gzip.open(folder / "pairs" / "test.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(f"{QUESTION}\t车票可以改签吗\t1\n")
    return folder


def overlap(text: str, benchmark: decontaminate.Benchmark) -> decontaminate.Overlap:
    lookup = decontaminate.lookup_of(benchmark.table, benchmark.needs)
    return decontaminate.overlap(letters_of([text]), letters_of(text.split("\n")).ends, lookup)


def holds(text: str, benchmark: decontaminate.Benchmark) -> list[int]:
    return np.flatnonzero(overlap(text, benchmark).holds).tolist()


def test_a_verbatim_context_is_one_hit(data: Path) -> None:
    benchmark = decontaminate.load_benchmark(data)
    page = "南江河是一条河流。" + CONTEXT + "沿岸多稻田。"
    found = np.unique(overlap(page, benchmark).indices)
    report = decontaminate.hits_per_file(benchmark, found, found[:0])
    # the question is too short to count
    assert report["qa/dev.json"] == {"strings": 1, "whole": 1, "any": 1, "left": 0}
    assert report["qa/train.json"] == {"strings": 1, "whole": 0, "any": 0, "left": 0}
    assert report["pairs/test.tsv.gz"] == {"strings": 1, "whole": 0, "any": 0, "left": 0}


def test_only_the_lines_that_hold_it(data: Path) -> None:
    benchmark = decontaminate.load_benchmark(data)
    assert holds(f"南江\n{LONGER}\n{LONGER}{CONTEXT}{LONGER}\n东湖", benchmark) == [2]
    assert holds(f"{LONGER}\n{CONTEXT[:18]}\n{CONTEXT[18:]}\n{LONGER}", benchmark) == [1, 2]


def test_train_text_stays(data: Path) -> None:
    assert holds(f"{OTHER}\n{LONGER}", decontaminate.load_benchmark(data)) == []


def test_a_short_question_is_held_by_a_line_of_its_own(data: Path) -> None:
    """14 letters, 2 grams: in a longer line that is chance."""
    benchmark = decontaminate.load_benchmark(data)
    assert holds(f"{QUESTION}？\n{LONGER}{QUESTION}", benchmark) == [0]


@pytest.mark.parametrize(
    "text",
    [CONTEXT.replace("，", " "), "南江河發源於北山南麓，全長約三百二十公里，流經兩省七縣，最後注入東湖。"],
)
def test_form_hides_nothing(data: Path, text: str) -> None:
    assert holds(text, decontaminate.load_benchmark(data)) == [0]


def test_width_and_case_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("二〇〇八年ＧＤＰ增长９％，是近年来最低的一年。\n", encoding="utf-8")
    assert holds("二〇〇八年gdp增长9％，是近年来最低的一年。", decontaminate.load_benchmark(tmp_path)) == [0]


def test_a_traditional_benchmark_in_a_simplified_corpus(tmp_path: Path) -> None:
    """Case 19 with --convert t2s: DRCD is traditional."""
    text = "颱風每年夏天都會為臺灣帶來豐沛的雨量，有時也造成嚴重的災害。"
    (tmp_path / "drcd").mkdir()
    (tmp_path / "drcd" / "dev.json").write_text(json.dumps([text]), encoding="utf-8")
    for convert in ("none", "t2s"):
        assert holds(converter("t2s")(text), decontaminate.load_benchmark(tmp_path, convert)) == [0]


def test_unrelated_text_shares_nothing(data: Path) -> None:
    benchmark = decontaminate.load_benchmark(data)
    found = overlap(LONGER, benchmark)
    assert (len(found.indices), found.holds.tolist()) == (0, [False])
    assert overlap("短", benchmark).holds.tolist() == [False]


@pytest.mark.parametrize(
    ("file", "evaluation"),
    [
        ("cmrc2018/dev.json", True),
        ("drcd/test.json", True),
        ("cmrc2018/challenge.json", True),
        ("cmrc2018/cmrc2018_trial.json", True),
        ("xnli/train_standin.tsv", False),
        ("bq/train.tsv.gz", False),
        ("testing/train.tsv", False),
    ],
)
def test_split_of_a_file(file: str, evaluation: bool) -> None:
    assert decontaminate.is_evaluation(file) == evaluation


def test_lookup_finds_exactly_what_the_table_has() -> None:
    draw = np.random.default_rng(3)
    table = np.unique(draw.integers(0, 1 << 64, 1000, dtype=np.uint64))
    lookup = decontaminate.lookup_of(table, np.ones_like(table))
    hashes = np.concatenate([draw.integers(0, 1 << 64, 5000, dtype=np.uint64), table[::7]])
    places, indices = decontaminate.find(hashes, lookup)
    assert places.tolist() == np.flatnonzero(np.isin(hashes, table)).tolist()
    assert (table[indices] == hashes[places]).all()
    empty = decontaminate.lookup_of(table[:0], table[:0])
    assert [part.tolist() for part in decontaminate.find(hashes, empty)] == [[], []]


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no benchmark file"):
        decontaminate.load_benchmark(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad\.json"):
        decontaminate.load_benchmark(tmp_path)
    (tmp_path / "bad.json").unlink()
    (tmp_path / "cut.tsv.gz").write_bytes(gzip.compress("甲乙丙".encode() * 99)[:-9])
    with pytest.raises(UserError, match=r"cut\.tsv\.gz"):
        decontaminate.load_benchmark(tmp_path)
