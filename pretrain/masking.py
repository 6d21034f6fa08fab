"""Which positions the generator must fill in. Pure functions on NumPy arrays."""

from __future__ import annotations

import numpy as np

from corpus.vocab import CLS, MASK, PAD, SEP

# Of the chosen positions; the others stay as they are, none gets a random token (pretrain_helpers.mask of
# google-research/electra, unlike BERT).
MASKED_SHARE = 0.85


def masked_count(tokens: int, length: int, fraction: float = 0.15) -> int:
    """How many positions of a row are chosen.

    ``max(1, min(⌊(fraction + 0.005) · length⌋, round(fraction · tokens)))``, half to even, where ``tokens``
    counts [CLS] and [SEP] (google-research/electra ``pretrain_helpers.mask``).
    """
    return max(1, min(int((fraction + 0.005) * length), round(fraction * tokens)))


def candidates(input_ids: np.ndarray) -> np.ndarray:
    """Positions that may be chosen: all but [CLS], [SEP], [MASK] and padding; [UNK] may."""
    return ~np.isin(input_ids, (PAD, CLS, SEP, MASK))


def choose_tokens(input_ids: np.ndarray, scores: np.ndarray, length: int, fraction: float) -> np.ndarray:
    """Chosen positions, each token for itself, without replacement.

    Google draws with replacement: at length 128 that is 17.7 distinct positions of 19, here it is 19.

    Args:
        input_ids: (rows, tokens), 0 is padding.
        scores: (rows, tokens) uniform numbers; the lowest of the candidates are chosen.
        length: the row length of the configuration.
        fraction: share of tokens to choose.

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


def choose_words(
    input_ids: np.ndarray, word_starts: np.ndarray, scores: np.ndarray, length: int, fraction: float
) -> np.ndarray:
    """Chosen positions, whole words only: in random order, skipping a word that would exceed the count.

    Arguments as :func:`choose_tokens`, with ``word_starts`` (rows, tokens) bool: True where a word begins.
    A word longer than the whole count is taken only where nothing shorter fits, so no row stays unmasked.
    """
    allowed = candidates(input_ids)
    chosen = np.zeros(input_ids.shape, dtype=bool)
    for row in range(len(input_ids)):
        places = np.flatnonzero(allowed[row])
        if not len(places):
            continue
        left = masked_count(int((input_ids[row] != PAD).sum()), length, fraction)
        starts = word_starts[row, places].copy()
        starts[0] = True
        starts[1:] |= np.diff(places) > 1  # a special token between two places ends a word
        words = np.split(places, np.flatnonzero(starts)[1:])
        order = np.argsort(scores[row, [word[0] for word in words]], kind="stable")
        for index in order:
            if len(words[index]) <= left:
                chosen[row, words[index]] = True
                left -= len(words[index])
            if not left:
                break
        if not chosen[row].any():
            chosen[row, min((words[i] for i in order), key=len)] = True
    return chosen


def hide(input_ids: np.ndarray, chosen: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """``input_ids`` with [MASK] where chosen and ``scores`` < 0.85; other chosen ones stay as they are."""
    return np.where(chosen & (scores < MASKED_SHARE), MASK, input_ids)
