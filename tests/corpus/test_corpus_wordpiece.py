"""The fast WordPiece encoder against ``tokenizers``, id for id and offset for offset."""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.tokens import wordpiece
from corpus.tokens.wordpiece import Tokens, WordPiece, ranges, reference_encode
from corpus.vocab import UNK
from provenance import UserError

SOURCES = ["linuxcn", "history", "laws_hant", "short_texts", "web_mixed"]
SOURCES += ["clue_docs", "wiki_paragraphs", "shop_reviews", "reading"]


@pytest.fixture(scope="module")
def encoder(vocab_path: Path) -> WordPiece:
    return WordPiece(vocab_path)


def assert_equal(encoder: WordPiece, text: str) -> None:
    expected, found = reference_encode(encoder.reference, text), encoder.encode(text)
    assert found.ids.dtype == np.uint16
    assert found.ids.tolist() == expected.ids.tolist(), ascii(text)
    assert found.offsets.tolist() == expected.offsets.tolist(), ascii(text)
    assert found.ends.tolist() == expected.ends.tolist(), ascii(text)


ODD = (
    "中文的一，。！？“”…—《》（）·～%&[]#_'\"-.a Zé\u0301\u0308\u0327がきﾀﾞ한글①②㎡Φ℃Ａ１İıßſﬁǅΣς"
    "\u0000\u0001\ufffd\u200b\u200d\ufeff\u00ad\u2028\u2029\u0085\u00a0\u3000\t\n\r\v\f\x1c"
    "𠮷𫚭👨🏽\ufe0f\u20e3豈\ufa0c\u3005\u3007々〇\u302e\u093f\u0900\U0001d165\u0f71\u0f72≮;`"
)


@example("他说“好”……iPhone X的ＧＤＰ がぎ Café e\u0301 鐵𫚭魚 ①② 35㎡ HRB400Φ16")
@example("[MASK][CLS] [UNK]中[SEP]##的 ##a [PAD]")
@example("\u0301中\u0301a\u0301，\u0301\u302e\u0301\u302f")
@example("a" * 100 + "中" + "b" * 101 + " " + "é" * 101)
@example("")
@given(
    st.lists(
        st.one_of(
            st.text(ODD, min_size=1, max_size=8),
            st.characters(exclude_categories=["Cs"]),
            st.text(st.characters(max_codepoint=0x3FF, exclude_categories=["Cs"]), max_size=6),
            st.text(st.characters(min_codepoint=0x2E80, max_codepoint=0xFFFF, exclude_categories=["Cs"])),
        ),
        max_size=30,
    ).map("".join)
)
def test_equals_the_reference(encoder: WordPiece, text: str) -> None:
    """Cases 15, 21, 22, 23, 26, 27 and what they do not think of."""
    assert_equal(encoder, text)


def test_every_character_between_others(encoder: WordPiece) -> None:
    """Each code point of the basic plane after Han, a letter and a mark, and before them."""
    points = [chr(c) for c in range(0x10000) if not 0xD800 <= c < 0xE000]
    for before, after in (("中", "x"), ("x", "\u0301"), ("\u302e", "，")):
        for first in range(0, len(points), 4096):
            assert_equal(encoder, "".join(before + c + after for c in points[first : first + 4096]))


def test_astral_characters(encoder: WordPiece) -> None:
    points = [chr(c) for c in range(0x10000, 0x32000, 3)] + [chr(0xE0001), chr(0xE0100), chr(sys.maxunicode)]
    assert_equal(encoder, "".join(f"x{c}" for c in points))


def test_runs_may_be_forgotten(encoder: WordPiece, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpiece, "RUNS", 3)
    for text in ("one two three 中 one", "four five one", "six seven eight nine ten six", "one"):
        assert_equal(encoder, text)


def test_unknown(encoder: WordPiece) -> None:
    text = "他说“好”……鐵𫚭魚 HRB400Φ16ラ 好"
    tokens = encoder.encode(text)
    unknown = tokens.unknown(text)
    assert unknown == reference_encode(encoder.reference, text).unknown(text)
    assert unknown["…"] == 2
    assert unknown["“"] == unknown["”"] == unknown["𫚭"] == 1
    assert sum(unknown.values()) == (tokens.ids == UNK).sum()


def test_a_difference_names_the_text(encoder: WordPiece, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder.check("他说好 Windows")
    monkeypatch.setattr(
        encoder, "encode", lambda text: Tokens(np.zeros(3, np.uint16), *np.arange(6).reshape(2, 3))
    )
    with pytest.raises(UserError, match=r"他说好.*--tokenizer reference"):
        encoder.check("他说好 Windows")


def test_ranges() -> None:
    assert ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


@pytest.mark.real
@pytest.mark.parametrize("source", SOURCES)
def test_equals_the_reference_on_real_text(encoder: WordPiece, real_data: Path, source: str) -> None:
    compare(encoder, real_data, source, 100_000)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_equals_the_reference_on_more_real_text(encoder: WordPiece, real_data: Path, source: str) -> None:
    """About 12 MB of UTF-8 in all."""
    compare(encoder, real_data, source, 600_000)


def compare(encoder: WordPiece, real_data: Path, source: str, characters: int) -> None:
    with gzip.open(real_data / "corpus" / f"{source}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            assert_equal(encoder, text)
            characters -= len(text)
            if characters < 0:
                break
