"""Tokens of sentences with word starts: a Chinese segmenter's words, carried over by character offsets."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from corpus.pack import Piece, sentence_ends
from corpus.vocab import fast_tokenizer


@functools.cache
def segmenter(name: str) -> Callable[[str], list[str]]:
    """``rjieba`` or ``jieba``: text to words whose concatenation is the text.

    jieba takes a second and 97 MB to load, once a process.
    """
    if name == "rjieba":
        import rjieba

        return rjieba.cut
    if name == "jieba":
        import jieba

        jieba.setLogLevel(logging.ERROR)
        jieba.initialize()
        return jieba.lcut
    raise ValueError(f"no segmenter {name!r}: rjieba or jieba")


def word_starts(text: str, token_starts: Sequence[int] | np.ndarray, name: str = "rjieba") -> np.ndarray:
    """bool (tokens,): True where a token lies in another word than the token before it.

    Args:
        text: the tokenized text.
        token_starts: character offset of each token's first character, ascending.
        name: the segmenter.

    Raises:
        RuntimeError: the segmenter's words do not add up to ``text``.
    """
    words = segmenter(name)(text)
    if "".join(words) != text:
        raise RuntimeError(f"{name} changed the text {text[:40]!r}...")
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    word_of_token = np.searchsorted(ends, np.asarray(token_starts, dtype=np.int64), side="right")
    starts = np.ones(len(word_of_token), dtype=bool)
    starts[1:] = word_of_token[1:] != word_of_token[:-1]
    return starts


@functools.cache
def _tokenizer(vocab: Path) -> Tokenizer:
    return fast_tokenizer(vocab)


def encode(texts: Sequence[str], vocab: Path, name: str = "rjieba") -> Iterator[list[Piece]]:
    """For each text its sentences' tokens, with word starts; sentences without a token are left out.

    Args:
        texts: clean documents.
        vocab: verified vocab.txt.
        name: the segmenter.
    """
    for text, encoding in zip(
        texts, _tokenizer(vocab).encode_batch(list(texts), add_special_tokens=False), strict=True
    ):
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)[:, 0]
        starts = word_starts(text, offsets, name).tolist() if len(offsets) else []
        cuts = [0, *np.searchsorted(offsets, sentence_ends(text)).tolist()]
        ids = encoding.ids
        yield [Piece(ids[a:b], starts[a:b]) for a, b in pairwise(cuts) if b > a]
