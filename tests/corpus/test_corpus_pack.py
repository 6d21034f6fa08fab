"""Sentences, packing and rows: cases 18, 29, 30, 31, 32, 35 and 54."""

import random
from collections import Counter
from itertools import accumulate
from pathlib import Path

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.tokens.pack import (
    KeyedCoin,
    Row,
    cut,
    pack_carry,
    pack_document,
    pack_google,
    sentence_ends,
    sentences,
    size_of,
)
from corpus.tokens.rows import finish_split, read_rows, shards, table_of, write_rows


class Fixed:
    """A coin that always falls the same way: 0.99 is tails, no single rows, no random targets."""

    def __init__(self, value: float = 0.99) -> None:
        self.value = value

    def random(self) -> float:
        return self.value

    def randint(self, a: int, b: int) -> int:
        return a


def bounds(*sizes: int) -> list[int]:
    """Of sentences of these sizes."""
    return list(accumulate(sizes, initial=0))


def size(row: Row) -> int:
    """With special tokens."""
    return size_of(row.a) + 2 + (size_of(row.b) + 1 if row.b else 0)


def test_sentences_case_18() -> None:
    text = "他说：“走吧。”然后走了！真的？！3.5元……完"
    assert sentences(text) == ["他说：“走吧。”", "然后走了！", "真的？！", "3.5元……", "完"]


def test_sentences_keep_numbers_names_and_addresses() -> None:
    assert sentences("U.S.经济3.5%。http://a.b/?x=1;y=2 好!真的?是\n行") == [
        "U.S.经济3.5%。",
        "http://a.b/?x=1;y=2 好!",
        "真的?",
        "是",
        "行",
    ]


def test_sentence_ends_cover_the_text() -> None:
    text = "甲。乙！\n\n丙"
    assert sentence_ends(text) == [2, 4, 5, 6, 7]
    assert sentence_ends("") == []


def test_types_case_29() -> None:
    ids, starts = np.array([11, 12, 13], dtype=np.uint16), np.array([True, False, False])
    table = table_of([Row([(0, 2)], [(2, 3)])], ids, starts)
    assert table.to_pylist() == [
        {
            "input_ids": [101, 11, 12, 102, 13, 102],
            "token_type_ids": [0, 0, 0, 0, 1, 1],
            "word_starts": [True, True, False, True, True, True],
        }
    ]


def test_several_rows_of_several_stretches() -> None:
    ids = np.arange(1000, 1010, dtype=np.uint16)
    rows = [Row([(0, 1), (3, 4)], [(1, 3)]), Row([(4, 6)], []), Row([(6, 7)], [(7, 10)])]
    table = table_of(rows, ids, np.zeros(10, dtype=bool))
    assert table["input_ids"].to_pylist() == [
        [101, 1000, 1003, 102, 1001, 1002, 102],
        [101, 1004, 1005, 102],
        [101, 1006, 102, 1007, 1008, 1009, 102],
    ]
    assert table["token_type_ids"].to_pylist() == [[0] * 4 + [1] * 3, [0] * 4, [0] * 3 + [1] * 4]
    t, f = True, False
    assert table["word_starts"].to_pylist() == [[t, t, f, t, t, f, t], [t, t, f, t], [t, t, t, t, f, f, t]]
    assert table_of([], ids, np.zeros(10, dtype=bool)).num_rows == 0


def test_cut() -> None:
    assert cut([(0, 4), (6, 9)], 5) == [(0, 4), (6, 7)]
    assert cut([(0, 4), (6, 9)], 4) == [(0, 4)]
    assert cut([(0, 4)], -1) == []


def test_google_rule_case_30() -> None:
    """Sentences 40, 40, 40, 40; target (128 - 3) // 2 = 62: A = 40, B = 120 cut to 128 - 40 - 3 = 85."""
    counts: Counter[str] = Counter()
    (row,) = pack_google(bounds(40, 40, 40, 40), 128, Fixed(), counts)
    assert (size(row), size_of(row.a), size_of(row.b)) == (128, 40, 85)
    assert counts["tokens_lost"] == 35


def test_heads_let_one_long_sentence_into_a() -> None:
    """Case 30's third clause: B empty, A under its target, the coin under one half."""
    for rule in (pack_google, pack_carry):
        row = next(rule(bounds(40, 40, 40, 40), 128, Fixed(0.3), Counter()))
        assert size_of(row.a) == 80


def test_a_short_sentence_joins_a_after_b_has_begun() -> None:
    """By the published rule alone: 40 + 15 stays under 62. Carry keeps the order of the text."""
    (row,) = pack_google(bounds(40, 30, 15), 128, Fixed(), Counter())
    assert row == Row([(0, 40), (70, 85)], [(40, 70)])
    (row,) = pack_carry(bounds(40, 30, 15), 128, Fixed(), Counter())
    assert row == Row(((0, 40),), ((40, 85),))


def test_single_segment_case_31() -> None:
    """A coin under 0.1 makes one segment, cut to max - 2."""
    (row,) = pack_google(bounds(40, 40, 40, 40), 128, Fixed(0.0), Counter())
    assert (size_of(row.a), size_of(row.b)) == (126, 0)


def test_random_targets_case_31() -> None:
    """A coin under 0.05 after a row sets the next row's target to a random length, here the least: 5."""
    rows = list(pack_google(bounds(*[4] * 40), 128, Fixed(0.0), Counter()))
    assert [size(row) for row in rows] == [2 + 126] + [2 + 8] * 4


def test_long_line_case_32() -> None:
    google: Counter[str] = Counter()
    (row,) = pack_google(bounds(500), 128, Fixed(), google)
    assert size(row) == 126 + 2
    assert google["tokens_lost"] == 374
    carry: Counter[str] = Counter()
    rows = list(pack_carry(bounds(500), 128, Fixed(), carry))
    assert len(rows) >= 3
    assert carry["tokens_lost"] == 0
    assert sum(size_of(row.a) + size_of(row.b) for row in rows) == 500


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=60),
    st.sampled_from([128, 512]),
    st.sampled_from(["carry", "google"]),
    st.integers(),
)
def test_no_token_is_lost_uncounted(sizes: list[int], length: int, packing: str, key: int) -> None:
    """Tokens in = tokens out + lost; carry keeps their order and loses less than a fragment."""
    counts: Counter[str] = Counter()
    rows = pack_document(bounds(*sizes), length, key=str(key), packing=packing, counts=counts)
    out = [i for row in rows for spans in row for start, end in spans for i in range(start, end)]
    total = sum(sizes)
    assert counts["tokens_in"] == total == len(out) + counts["tokens_lost"]
    assert counts["rows"] == len(rows)
    assert all(size(row) <= length and size_of(row.a) for row in rows)
    assert len(set(out)) == len(out)
    if packing == "carry":
        assert out == list(range(len(out)))
        assert counts["tokens_lost"] < 16


def test_fragment_is_dropped_but_a_short_document_stays() -> None:
    counts: Counter[str] = Counter()
    rows = list(pack_carry(bounds(126 + 15), 128, Fixed(), counts))
    assert (len(rows), counts["fragments_dropped"], counts["tokens_lost"]) == (1, 1, 15)
    assert len(list(pack_carry(bounds(126 + 16), 128, Fixed(), Counter()))) == 2
    assert len(list(pack_carry(bounds(5), 128, Fixed(), Counter()))) == 1


@pytest.mark.parametrize("packing", ["carry", "google"])
def test_no_row_without_a_candidate(packing: str) -> None:
    """Case 54: ``[CLS] [SEP]`` is never built."""
    assert pack_document([], 128, key="k", packing=packing) == []
    assert pack_document([7], 128, key="k", packing=packing) == []


@pytest.mark.parametrize(("length", "least", "most"), [(128, 0.7, 0.9), (512, 0.55, 0.95)])
def test_shares_of_single_and_two_segment_rows(length: int, least: float, most: float) -> None:
    """Case 30: with sentence lines about 79 % of the rows of length 128 have two segments, not 3 %."""
    rng = random.Random(3)
    counts: Counter[str] = Counter()
    for document in range(60):
        sizes = [rng.randint(10, 60) for _ in range(80)]
        pack_document(bounds(*sizes), length, key=f"1/{document}", packing="google", counts=counts)
    assert least < 1 - counts["single"] / counts["rows"] < most


def test_rows_depend_on_key_and_length_alone() -> None:
    sentences = bounds(*[30] * 300)
    assert pack_document(sentences, 128, key="1/a") == pack_document(sentences, 128, key="1/a")
    assert pack_document(sentences, 128, key="1/a") != pack_document(sentences, 128, key="2/a")


def test_coin_is_fair() -> None:
    coin = KeyedCoin("key")
    draws = [coin.random() for _ in range(20_000)]
    assert 0 <= min(draws) < 0.001
    assert 0.999 < max(draws) < 1
    assert abs(np.mean(draws) - 0.5) < 0.01
    faces = Counter(coin.randint(5, 10) for _ in range(12_000))
    assert sorted(faces) == [5, 6, 7, 8, 9, 10]
    assert all(abs(count - 2000) < 200 for count in faces.values())


def test_shards_are_sized_by_bytes_case_35(tmp_path: Path) -> None:
    """Ten documents make one file; blocks are joined in order up to the size of a shard."""
    parts = [(Path(name), size) for name, size in [("a", 4), ("b", 5), ("c", 3), ("d", 20), ("e", 1)]]
    assert [[p.name for p in group] for group in shards(parts, 10)] == [["a", "b"], ["c"], ["d"], ["e"]]
    ids, starts = np.arange(1000, 1040, dtype=np.uint16), np.ones(40, dtype=bool)
    files = []
    for part in range(10):
        files.append(tmp_path / "parts" / f"{part}.arrow")
        rows = [Row([(part, part + 3)], [])] if part != 4 else []
        write_rows(files[-1], [table_of(rows, ids, starts)])
    assert finish_split(tmp_path / "one", "train", files) == {"data-00000-of-00001.arrow": 9}
    size = files[0].stat().st_size
    several = finish_split(tmp_path / "several", "train", files, shard_bytes=4 * size)
    assert list(several.values()) == [4, 4, 1]
    for folder in ("one", "several"):
        loaded = datasets.load_from_disk(str(tmp_path / folder))
        assert [row["input_ids"][1] for row in loaded] == [1000 + i for i in range(10) if i != 4]
    empty = finish_split(tmp_path / "empty", "heldout", files[4:5])
    assert empty == {"data-00000-of-00001.arrow": 0}
    assert read_rows(tmp_path / "empty" / "data-00000-of-00001.arrow").num_rows == 0
