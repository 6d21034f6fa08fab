"""Which positions must be filled in, and what stands there meanwhile. Pure functions on NumPy arrays.

A new way to choose is one function and one entry in :data:`MASKINGS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corpus.vocab import CLS, MASK, PAD, SEP, VOCAB_SIZE


class Hiding(NamedTuple):
    """What chosen positions become, as shares; the rest of them stay as they are."""

    masked: float
    """[MASK]."""
    random: float = 0.0
    """An id of the vocabulary, all equally likely."""


ELECTRA_HIDING = Hiding(0.85)  # google-research/electra, pretrain_helpers.mask
BERT_HIDING = Hiding(0.8, 0.1)  # Devlin et al. 2019


def masked_count(tokens: int, length: int, fraction: float = 0.15) -> int:
    """How many positions of a row are chosen.

    ``max(1, min(⌊(fraction + 0.005) · length⌋, round(fraction · tokens)))``, half to even, where ``tokens``
    counts [CLS] and [SEP] (google-research/electra ``pretrain_helpers.mask``).
    """
    return max(1, min(int((fraction + 0.005) * length), round(fraction * tokens)))


def candidates(input_ids: np.ndarray) -> np.ndarray:
    """Positions that may be chosen: all but [CLS], [SEP], [MASK] and padding; [UNK] may."""
    return ~np.isin(input_ids, (PAD, CLS, SEP, MASK))


def choose_tokens(
    input_ids: np.ndarray,
    scores: np.ndarray,
    length: int,
    fraction: float,
    word_starts: np.ndarray | None = None,
) -> np.ndarray:
    """Chosen positions, each token for itself, without replacement.

    Google draws with replacement: at length 128 that is 17.7 distinct positions of 19, here it is 19.

    Args:
        input_ids: (rows, tokens), 0 is padding.
        scores: (rows, tokens) uniform numbers; the lowest of the candidates are chosen.
        length: the row length of the configuration.
        fraction: share of tokens to choose.
        word_starts: (rows, tokens) bool: True where a word begins; of no use here.

    Returns:
        (rows, tokens) bool; a row without candidates has none.
    """
    allowed = candidates(input_ids)
    counts = np.array([masked_count(int(n), length, fraction) for n in (input_ids != PAD).sum(axis=1)])
    counts = np.minimum(counts, allowed.sum(axis=1))
    order = np.argsort(np.where(allowed, scores, np.inf), axis=1, kind="stable")
    chosen = np.zeros(input_ids.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(input_ids.shape[1])[None] < counts[:, None], axis=1)
    return chosen


def _choose_spans(
    input_ids: np.ndarray,
    scores: np.ndarray,
    length: int,
    fraction: float,
    word_starts: np.ndarray,
    shares: tuple[float, ...],
) -> np.ndarray:
    """Spans of whole words, in random order of their first words, cut or skipped where the count is reached.

    Arguments as :func:`choose_tokens`, and ``shares``: how likely a span is to have 1, 2, ... words.
    """
    allowed = candidates(input_ids)
    chosen = np.zeros(input_ids.shape, dtype=bool)
    # Digits of a uniform number are independent: all order the words, those after the tenth bit decide how
    # many words a span has.
    words_wanted = 1 + np.searchsorted(np.cumsum(shares)[:-1], (scores * 1024) % 1, side="right")
    for row in range(len(input_ids)):
        places = np.flatnonzero(allowed[row])
        if not len(places):
            continue
        left = masked_count(int((input_ids[row] != PAD).sum()), length, fraction)
        starts = word_starts[row, places].copy()
        starts[0] = True
        apart = np.diff(places, prepend=places[0]) > 1  # a special token between two places ends a word
        firsts = np.flatnonzero(starts | apart)
        words = np.split(places, firsts[1:])
        order = np.argsort(scores[row, [word[0] for word in words]], kind="stable")
        for index in order:
            for at in range(index, min(index + words_wanted[row, words[index][0]], len(words))):
                crossing = at > index and apart[firsts[at]]
                if crossing or chosen[row, words[at][0]] or len(words[at]) > left:
                    break
                chosen[row, words[at]] = True
                left -= len(words[at])
            if not left:
                break
        if not chosen[row].any():
            chosen[row, min((words[i] for i in order), key=len)] = True
    return chosen


def choose_words(
    input_ids: np.ndarray, scores: np.ndarray, length: int, fraction: float, word_starts: np.ndarray
) -> np.ndarray:
    """Chosen positions, whole words only: in random order, skipping a word that would exceed the count.

    Arguments as :func:`choose_tokens`. A word longer than the whole count is taken only where nothing
    shorter fits, so no row stays unmasked.
    """
    return _choose_spans(input_ids, scores, length, fraction, word_starts, (1.0,))


def choose_ngrams(
    input_ids: np.ndarray, scores: np.ndarray, length: int, fraction: float, word_starts: np.ndarray
) -> np.ndarray:
    """Chosen positions, spans of 1 to 4 neighbouring words; the rest as :func:`choose_words`.

    40, 30, 20 and 10 % of the spans have 1, 2, 3 and 4 words (MacBERT: Cui et al. 2020, arXiv:2004.13922). A
    span ends before a special token, before a word chosen already, and where the count is reached.
    """
    return _choose_spans(input_ids, scores, length, fraction, word_starts, (0.4, 0.3, 0.2, 0.1))


def hide(
    input_ids: np.ndarray, chosen: np.ndarray, scores: np.ndarray, hiding: Hiding = ELECTRA_HIDING
) -> np.ndarray:
    """What stands in place of the chosen positions.

    Args:
        input_ids, chosen: (rows, tokens).
        scores: (rows, tokens) uniform numbers: below ``hiding.masked`` a position becomes [MASK], in the
            share after that an id that the place within this share decides.

    Returns:
        (rows, tokens) ids.
    """
    hidden = np.where(chosen & (scores < hiding.masked), MASK, input_ids)
    if not hiding.random:
        return hidden
    place = (scores - hiding.masked) / hiding.random
    drawn = np.minimum((place * VOCAB_SIZE).astype(input_ids.dtype), VOCAB_SIZE - 1)
    return np.where(chosen & (place >= 0) & (place < 1), drawn, hidden)


MASKINGS: dict[str, Callable[..., np.ndarray]] = {
    "token": choose_tokens,
    "word": choose_words,
    "ngram": choose_ngrams,
}
