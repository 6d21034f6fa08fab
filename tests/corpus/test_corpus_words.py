"""Word starts by character offsets: case 20."""

import numpy as np
import pytest

from corpus.words import encode, segmenter, word_starts

TEXT = "他来到了网易杭研大厦"  # jieba's own example: 他/来到/了/网易/杭研/大厦


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
@pytest.mark.parametrize("text", [TEXT, "a b\t\u3000𠮷田 說好\n2019年 iPhone XⅡ", " ", "臺灣大學"])
def test_words_add_up_to_the_text(name: str, text: str) -> None:
    """Case 20."""
    assert "".join(segmenter(name)(text)) == text


def test_jieba_dictionary_is_simplified() -> None:
    """jieba splits 臺灣 (fxsjy/jieba#25): a limit of the segmenter that word starts share."""
    assert segmenter("jieba")("臺灣大學") == ["臺", "灣大學"]


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
def test_word_starts(name: str) -> None:
    starts = word_starts(TEXT, range(len(TEXT)), name)
    assert [TEXT[i] for i in np.flatnonzero(starts)] == ["他", "来", "了", "网", "杭", "大"]


def test_starts_follow_tokens_not_characters(vocab_path) -> None:
    text = "手机unaffable手机 拍照"  # un ##aff ##able is one word of three tokens; the space is no token
    (pieces,) = encode([text], vocab_path, "rjieba")
    ids = [i for piece in pieces for i in piece.ids]
    starts = [s for piece in pieces for s in piece.starts]
    assert len(ids) == len(starts)
    tokens = vocab_tokens(vocab_path, ids)
    assert [t for t, s in zip(tokens, starts, strict=True) if s] == ["手", tokens[2], "手", "拍"]
    assert not any(s for t, s in zip(tokens, starts, strict=True) if t.startswith("##"))


def vocab_tokens(path, ids: list[int]) -> list[str]:
    entries = path.read_text(encoding="utf-8").split("\n")
    return [entries[i] for i in ids]


def test_no_tokens() -> None:
    assert word_starts("", [], "rjieba").tolist() == []


def test_unknown_segmenter() -> None:
    with pytest.raises(ValueError, match="rjieba or jieba"):
        segmenter("other")
