"""The vocabulary and its tokenizer: cases 21, 22, 23, 24, 26."""

import json
from pathlib import Path

import pytest

from corpus import vocab
from provenance import UserError


@pytest.fixture(scope="module")
def tokenizer(vocab_path: Path):
    return vocab.tokenizer(vocab_path)


def test_entries(vocab_path: Path) -> None:
    entries = vocab.load_vocab(vocab_path)
    assert len(entries) == vocab.VOCAB_SIZE == 21128
    assert entries[:1] == ["[PAD]"]
    assert entries[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert "\u2028" in entries  # why str.splitlines gives another number


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("他说“好”……", "他 说 [UNK] 好 [UNK] [UNK] [UNK]"),  # case 21
        ("iPhone X的ＧＤＰ", "iphone x 的 ｇ ##ｄ ##ｐ"),  # case 22
        ("がぎ", "か ##き"),  # case 23
        ("Café", "cafe"),  # case 23
        ("e\u0301", "e"),  # case 23
        ("鐵𫚭魚", "鐵 [UNK] 魚"),  # case 26
        ("①②", "① ##②"),  # case 27
        ("a\u200b中\ufeff文", "a 中 文"),  # case 15
    ],
)
def test_tokens(tokenizer, vocab_path: Path, text: str, tokens: str) -> None:
    assert tokenizer.tokenize(text) == tokens.split()
    assert vocab.fast_tokenizer(vocab_path).encode(text, add_special_tokens=False).tokens == tokens.split()


def test_text_makes_no_special_token(vocab_path: Path) -> None:
    """Bulk text may hold ``[MASK]``; in a training row it would be a mask that nobody set."""
    ids = vocab.fast_tokenizer(vocab_path).encode("[MASK]中[SEP][PAD]", add_special_tokens=False).ids
    assert not {vocab.PAD, vocab.UNK, vocab.CLS, vocab.SEP, vocab.MASK} & set(ids)


def test_offsets_are_one_character_each(tokenizer) -> None:
    """Case 21."""
    offsets = tokenizer("他说“好”……", add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert offsets == [(i, i + 1) for i in range(7)]


def test_offsets_leave_invisible_characters_out(tokenizer) -> None:
    """Case 15."""
    text = "a\u200b中\ufeff文"
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert offsets == [(0, 1), (2, 3), (4, 5)]


def test_han_never_continues_a_word(tokenizer, vocab_path: Path) -> None:
    """Case 24."""
    entries = vocab.load_vocab(vocab_path)
    unreachable = {i for i, e in enumerate(entries) if e.startswith("##") and "\u4e00" <= e[2:3] <= "\u9fff"}
    assert len(unreachable) == 7321
    ids = tokenizer("的士高和A座的中文abc混排，台灣話與廣東話")["input_ids"]
    assert not unreachable & set(ids)


def test_saved_tokenizer_loads_alone(tokenizer, vocab_path: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    vocab.save_tokenizer(tokenizer, vocab_path, tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == vocab_path.read_bytes()
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (config["do_lower_case"], config["model_max_length"]) == (True, 512)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded("他用iPhone拍照").input_ids == tokenizer("他用iPhone拍照").input_ids


def test_another_vocabulary_is_refused(vocab_path: Path, tmp_path: Path) -> None:
    other = tmp_path / "vocab.txt"
    other.write_bytes(vocab_path.read_bytes() + b"more\n")
    with pytest.raises(UserError, match="sha256"):
        vocab.vocab_path(other)
    with pytest.raises(UserError, match="does not exist"):
        vocab.vocab_path(tmp_path / "none.txt")
    with pytest.raises(UserError, match="21129"):
        vocab.load_vocab(other)


def test_fetching_tries_each_source_then_says_where_to_put_it(
    vocab_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = vocab_path.read_bytes()

    def _from_nowhere() -> bytes:
        raise OSError("no network")

    monkeypatch.setattr(vocab, "CACHE", tmp_path / "vocab" / "vocab.txt")
    monkeypatch.setattr(vocab, "SOURCES", (_from_nowhere, lambda: b"wrong"))
    with pytest.raises(UserError, match=r"nowhere: OSError.*another sha256.*vocab\.txt"):
        vocab.vocab_path()
    assert not vocab.CACHE.exists()
    monkeypatch.setattr(vocab, "SOURCES", (_from_nowhere, lambda: good))
    assert vocab.vocab_path() == vocab.CACHE
    assert vocab.CACHE.read_bytes() == good
