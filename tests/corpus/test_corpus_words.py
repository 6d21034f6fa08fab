"""Word starts by character offsets: case 20."""

from pathlib import Path

import numpy as np
import pytest

from corpus.tokens.dictionary import words
from corpus.tokens.words import encode, pieces, segmenter, word_starts
from corpus.vocab import load_vocab
from provenance import UserError

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


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
def test_words_of_a_user(name: str, tmp_path: Path) -> None:
    """Case 20: two dictionaries never share what they hold, nor does plain segmentation see it."""
    files = {}
    for file, content in (("a", "臺灣\n\n網頁 5 n\n"), ("b", "\ufeff臺灣大學 100000\n")):
        files[file] = str(tmp_path / file)
        (tmp_path / file).write_text(content, encoding="utf-8")
    cut = {file: segmenter(name, path)("臺灣大學") for file, path in files.items()}
    assert cut == {"a": ["臺灣", "大學"], "b": ["臺灣大學"]}
    assert segmenter(name)("臺灣大學") == ["臺", "灣大學"]
    starts = word_starts("臺灣大學", range(4), name, files["a"])
    assert starts.tolist() == [True, False, True, False]


def test_dictionary_mistakes(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("臺灣 多 n 甲\n", encoding="utf-8")
    with pytest.raises(UserError, match="bad line 1 is not a word"):
        words(str(tmp_path / "bad"))
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UserError, match=r"--dictionary .*latin cannot be read"):
        words(str(tmp_path / "latin"))
    for name in (str(tmp_path / "missing"), ""):
        with pytest.raises(UserError, match=r"--dictionary .* is no file"):
            words(name)


def tokens_of(path: Path, ids: np.ndarray) -> list[str]:
    entries = load_vocab(path)
    return [entries[i] for i in ids]


def test_starts_follow_tokens_not_characters(vocab_path: Path) -> None:
    text = "手机unaffable手机 拍照"  # un ##aff ##able is one word of three tokens; the space is no token
    encoded = encode([text], vocab_path, "rjieba")
    tokens = tokens_of(vocab_path, encoded.ids)
    assert encoded.bounds == [[0, len(tokens)]]
    assert [t for t, s in zip(tokens, encoded.word_starts, strict=True) if s] == ["手", tokens[2], "手", "拍"]
    inside = [s for t, s in zip(tokens, encoded.word_starts, strict=True) if t.startswith("##")]
    assert inside
    assert not any(inside)


TEXTS = [
    "他来到了网易杭研大厦。\nWindows 10发布！",
    "",
    "\u200b",
    "首行\n\n\n他说：“走吧。”然后走了\r",
    "！",
    " \n",
    "臺灣大學在臺北。U.S. 3.5%",
]


@pytest.mark.parametrize("name", ["rjieba", "jieba"])
def test_documents_together_equal_documents_alone(vocab_path: Path, name: str) -> None:
    """Nothing reaches from one document into the next."""
    together = encode(TEXTS, vocab_path, name)
    assert len(together.bounds) == len(TEXTS)
    for text, bounds in zip(TEXTS, together.bounds, strict=True):
        alone = encode([text], vocab_path, name)
        first, end = bounds[0], bounds[-1]
        assert together.ids[first:end].tolist() == alone.ids.tolist()
        assert together.word_starts[first:end].tolist() == alone.word_starts.tolist()
        assert [bound - first for bound in bounds] == alone.bounds[0]
    assert together.bounds[-1][-1] == len(together.ids)


@pytest.mark.parametrize("batch", [20, 40])
def test_long_documents_are_encoded_in_pieces(vocab_path: Path, batch: int) -> None:
    """The same tokens, words and sentences: pieces end where sentences do."""
    texts = [
        "",
        "他来到了。网易杭研大厦！真的？“走吧。”\n\n南江河发源于北山南麓。",
        *TEXTS,
        "他来到了网易。" * 9,
    ]
    whole, cut = encode(texts, vocab_path), encode(texts, vocab_path, batch=batch)
    assert cut.ids.tolist() == whole.ids.tolist()
    assert cut.word_starts.tolist() == whole.word_starts.tolist()
    assert cut.bounds == whole.bounds
    assert cut.unknown == whole.unknown


def test_pieces() -> None:
    assert list(pieces("甲。乙丙！丁戊己", 4)) == ["甲。", "乙丙！", "丁戊己"]
    assert list(pieces("甲" * 10, 4)) == ["甲" * 4, "甲" * 4, "甲" * 2]
    assert list(pieces("", 4)) == [""]
    assert list(pieces("甲：“乙。”丙丁。", 6)) == ["甲：“乙。”", "丙丁。"]


def test_sentences_without_a_token_are_left_out(vocab_path: Path) -> None:
    """甲。 乙！ and nothing of the empty lines between."""
    assert encode(["甲。\n \n乙！\n"], vocab_path).bounds == [[0, 2, 4]]


def test_reference_gives_the_same(vocab_path: Path) -> None:
    fast, reference = encode(TEXTS, vocab_path), encode(TEXTS, vocab_path, reference=True)
    assert fast.ids.tolist() == reference.ids.tolist()
    assert fast.word_starts.tolist() == reference.word_starts.tolist()
    assert fast.bounds == reference.bounds


def test_traditional_sentence_of_case_20() -> None:
    """fxsjy/jieba#383: the dictionary lacks 記得, so the sentence is cut as 還記/得."""
    assert segmenter("jieba")("你還記得你上過的那個網頁嗎")[:5] == ["你", "還記", "得", "你", "上過"]


def test_no_tokens() -> None:
    assert word_starts("", [], "rjieba").tolist() == []


def test_unknown_segmenter() -> None:
    with pytest.raises(ValueError, match="rjieba or jieba"):
        segmenter("other")
