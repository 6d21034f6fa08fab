"""Sentences and packing: cases 18, 29, 30, 31, 32 and 54."""

import random
from collections import Counter

import pytest

from corpus.pack import Piece, make_row, pack_carry, pack_document, pack_google, sentence_ends, sentences


class Fixed:
    """A coin that always falls the same way: 0.99 is tails, no single rows, no random targets."""

    def __init__(self, value: float = 0.99) -> None:
        self.value = value

    def random(self) -> float:
        return self.value

    def randint(self, a: int, b: int) -> int:
        return a


def piece(size: int, first: int = 1000) -> Piece:
    return Piece(list(range(first, first + size)), [True] * size)


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
    row = make_row(Piece([11, 12], [True, False]), Piece([13], [False]))
    assert row.input_ids == [101, 11, 12, 102, 13, 102]
    assert row.token_type_ids == [0, 0, 0, 0, 1, 1]
    assert row.word_starts == [True, True, False, True, True, True]


def test_google_rule_case_30() -> None:
    """Sentences 40, 40, 40, 40; target (128 - 3) // 2 = 62: A = 40, B = 120 cut to 128 - 40 - 3 = 85."""
    counts: Counter[str] = Counter()
    (row,) = pack_google([piece(40)] * 4, 128, Fixed(), counts)
    assert len(row.input_ids) == 128
    assert row.token_type_ids == [0] * 42 + [1] * 86
    assert counts["tokens_lost"] == 35


def test_heads_let_one_long_sentence_into_a() -> None:
    """Case 30's third clause: B empty, A under its target, the coin under one half."""
    coin = Fixed(0.3)
    (row,) = pack_google([piece(40)] * 4, 128, coin, Counter())
    assert row.token_type_ids.count(0) == 1 + 80 + 1


def test_single_segment_case_31() -> None:
    """A coin under 0.1 makes one segment, cut to max - 2."""
    (row,) = pack_google([piece(40)] * 4, 128, Fixed(0.0), Counter())
    assert row.token_type_ids == [0] * 128


def test_random_targets_case_31() -> None:
    """A coin under 0.05 after a row sets the next row's target to a random length, here the least: 5."""
    rows = list(pack_google([piece(4)] * 40, 128, Fixed(0.0), Counter()))
    assert [len(row.input_ids) for row in rows] == [2 + 126] + [2 + 8] * 4


def test_long_line_case_32() -> None:
    google: Counter[str] = Counter()
    (row,) = pack_google([piece(500)], 128, Fixed(), google)
    assert len(row.input_ids) == 126 + 2
    assert google["tokens_lost"] == 374
    carry: Counter[str] = Counter()
    rows = list(pack_carry([piece(500)], 128, Fixed(), carry))
    assert len(rows) >= 3
    assert carry["tokens_lost"] == 0
    assert sum(len(row.input_ids) - 2 for row in rows) == 500


def test_carry_keeps_every_token_in_order() -> None:
    rng = random.Random(5)
    for trial in range(30):
        sizes = [rng.randint(1, 90) for _ in range(rng.randint(1, 40))]
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        pieces = [piece(size, 1000 + end - size) for size, end in zip(sizes, ends, strict=True)]
        counts: Counter[str] = Counter()
        rows = pack_document(pieces, 128, key=f"7/{trial}", counts=counts)
        ids = [i for row in rows for i in row.input_ids if i >= 1000]
        lost = counts["tokens_lost"]
        assert ids == list(range(1000, 1000 + sum(sizes) - lost))
        assert lost < 16
        assert max(len(row.input_ids) for row in rows) <= 128
        assert counts["tokens_in"] == sum(sizes)


def test_fragment_is_dropped_but_a_short_document_stays() -> None:
    counts: Counter[str] = Counter()
    rows = list(pack_carry([piece(126 + 15)], 128, Fixed(), counts))
    assert (len(rows), counts["fragments_dropped"], counts["tokens_lost"]) == (1, 1, 15)
    assert len(list(pack_carry([piece(126 + 16)], 128, Fixed(), Counter()))) == 2
    assert len(list(pack_carry([piece(5)], 128, Fixed(), Counter()))) == 1


@pytest.mark.parametrize("packing", ["carry", "google"])
def test_no_row_without_a_candidate(packing: str) -> None:
    """Case 54: ``[CLS] [SEP]`` is never built."""
    assert pack_document([], 128, key="k", packing=packing) == []
    assert pack_document([Piece([], [])], 128, key="k", packing=packing) == []


def test_shares_of_single_and_two_segment_rows() -> None:
    """Case 30: with sentence lines about 79 % of the rows of length 128 have two segments, not 3 %."""
    rng = random.Random(3)
    counts: Counter[str] = Counter()
    for document in range(60):
        pieces = [piece(rng.randint(10, 60)) for _ in range(40)]
        pack_document(pieces, 128, key=f"1/{document}", packing="google", counts=counts)
    assert 0.6 < 1 - counts["single"] / counts["rows"] < 0.9


def test_rows_depend_on_key_and_length_alone() -> None:
    pieces = [piece(30, 1000 + 30 * i) for i in range(30)]
    assert pack_document(pieces, 128, key="1/a") == pack_document(pieces, 128, key="1/a")
    assert pack_document(pieces, 128, key="1/a") != pack_document(pieces, 128, key="2/a")
