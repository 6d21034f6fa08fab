"""Documents to tokens with word starts: a Chinese segmenter's words, carried over by character offsets."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from corpus.hashing import slices
from corpus.tokens.dictionary import words
from corpus.tokens.pack import sentence_ends
from corpus.tokens.wordpiece import WordPiece, reference_encode

BATCH = 500_000  # characters
BETWEEN = "\n"  # documents that are encoded together: no token, word or sentence reaches across it


@functools.cache
def segmenter(name: str, dictionary: str = "none") -> Callable[[str], list[str]]:
    """``rjieba`` or ``jieba``: text to words whose concatenation is the text.

    jieba takes a second and 97 MB to load, once a process. A user's words are added in memory, so that the
    file in which jieba keeps its own dictionary for the next process never holds them.

    Args:
        name: of the segmenter.
        dictionary: file of words to add, see :mod:`corpus.tokens.dictionary`.
    """
    if name == "rjieba":
        import rjieba

        if dictionary == "none":
            return rjieba.cut
        fast = rjieba.Jieba()
        for word, frequency in words(dictionary):
            fast.add_word(word, frequency, None)
        return fast.cut
    if name == "jieba":
        import jieba

        jieba.setLogLevel(logging.ERROR)
        reference = jieba.Tokenizer()
        reference.initialize()
        for word, frequency in words(dictionary):
            reference.add_word(word, frequency)
        return reference.lcut
    raise ValueError(f"no segmenter {name!r}: rjieba or jieba")


def word_starts(
    text: str, token_starts: Sequence[int] | np.ndarray, name: str = "rjieba", dictionary: str = "none"
) -> np.ndarray:
    """bool (tokens,): True where a token lies in another word than the token before it.

    Args:
        text: the tokenized text.
        token_starts: character offset of each token's first character, ascending.
        name: the segmenter.
        dictionary: file of words to add to its own.

    Raises:
        RuntimeError: the segmenter's words do not add up to ``text``.
    """
    found = segmenter(name, dictionary)(text)
    if "".join(found) != text:
        raise RuntimeError(f"{name} changed the text {text[:40]!r}...")
    word_of = np.repeat(
        np.arange(len(found), dtype=np.int32), np.fromiter(map(len, found), np.int32, len(found))
    )
    word_of_token = word_of[np.asarray(token_starts, dtype=np.int64)]
    starts = np.ones(len(word_of_token), dtype=bool)
    starts[1:] = word_of_token[1:] != word_of_token[:-1]
    return starts


@functools.cache
def word_piece(vocab: Path) -> WordPiece:
    """The encoder of this process: what it has learnt serves every block."""
    return WordPiece(vocab)


@dataclass(frozen=True)
class Encoded:
    """Some documents' tokens, one after the other.

    Attributes:
        ids: uint16 (tokens,).
        word_starts: bool (tokens,).
        bounds: for each document the ascending bounds of its sentences in the tokens; sentences without a
            token are left out, so that the bounds of a document without any are one number.
        unknown: how often each character or word became [UNK].
    """

    ids: np.ndarray
    word_starts: np.ndarray
    bounds: list[list[int]]
    unknown: Counter[str]


def pieces(text: str, size: int) -> Iterator[str]:
    """``text`` in pieces of at most ``size`` characters, cut after sentences where there are any."""
    start = 0
    while len(text) - start > size:
        *ends, _ = sentence_ends(text[start : start + size])  # the last may be the cut's
        end = start + (ends[-1] if ends else size)
        yield text[start:end]
        start = end
    yield text[start:]


def encode(
    texts: Sequence[str],
    vocab: Path,
    name: str = "rjieba",
    *,
    dictionary: str = "none",
    reference: bool = False,
    batch: int = BATCH,
) -> Encoded:
    """Tokens, words and sentences of clean documents.

    Args:
        texts: clean documents.
        vocab: verified vocab.txt.
        name: the segmenter.
        dictionary: file of words to add to its own.
        reference: ids by ``tokenizers`` itself, which is slower.
        batch: characters encoded at once, at 140 bytes of memory each; a longer document is cut into pieces.
    """
    cut = [list(pieces(text, batch)) for text in texts]
    flat = [piece for document in cut for piece in document]
    parts = [_encode(flat[part], vocab, name, dictionary, reference) for part in slices(flat, batch)]
    if len(parts) == 1 and len(flat) == len(texts):
        return parts[0]
    shifts = np.cumsum([0, *(len(part.ids) for part in parts)]).tolist()
    shifted = (
        [bound + shift for bound in bounds]
        for part, shift in zip(parts, shifts, strict=False)
        for bounds in part.bounds
    )
    joined = ([next(shifted) for _ in document] for document in cut)
    return Encoded(
        ids=np.concatenate([part.ids for part in parts]),
        word_starts=np.concatenate([part.word_starts for part in parts]),
        bounds=[first + [bound for bounds in rest for bound in bounds[1:]] for first, *rest in joined],
        unknown=sum((part.unknown for part in parts), Counter()),
    )


def _encode(texts: Sequence[str], vocab: Path, name: str, dictionary: str, reference: bool) -> Encoded:
    """All at once."""
    encoder, joined = word_piece(vocab), BETWEEN.join(texts)
    tokens = reference_encode(encoder.reference, joined) if reference else encoder.encode(joined)
    # a document's end is a sentence's end: the separator ends a sentence, and the text's end the last one
    ends = np.searchsorted(tokens.offsets, [0, *sentence_ends(joined)])
    begins = [0, *accumulate(len(text) + len(BETWEEN) for text in texts)]
    firsts = np.searchsorted(tokens.offsets, begins)
    distinct = ends[np.diff(ends, prepend=-1) > 0]
    cuts = np.searchsorted(distinct, firsts)
    all_bounds = distinct.tolist()
    return Encoded(
        ids=tokens.ids,
        word_starts=word_starts(joined, tokens.offsets, name, dictionary),
        bounds=[all_bounds[a : b + 1] for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)],
        unknown=tokens.unknown(joined),
    )
