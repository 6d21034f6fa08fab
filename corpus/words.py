"""Where words start, carried from a Chinese segmenter to WordPiece tokens by character offsets."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence

import numpy as np


@functools.cache
def segmenter(name: str) -> Callable[[str], list[str]]:
    """``rjieba`` or ``jieba``: text to words whose concatenation is the text.

    jieba takes a second and 97 MB to load, once a process (case 20).
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
