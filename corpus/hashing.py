"""Hashes of letters: of whole texts, of lines and of character n-grams, for many texts at once.

Only letters and digits count, so texts that differ in punctuation, symbols and space hash alike. All
hashes are polynomials over random 64-bit values of the characters, modulo 2**64: the same in every
process and on every machine.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

BATCH = 1 << 18  # characters hashed at once: arrays that fit a processor's cache
_RANDOM = 0x9E3779B97F4A7C15
_STEP = 0xD1342543DE82EF95  # the polynomial's variable, odd; a multiplier of full period


@functools.cache
def letter_table() -> np.ndarray:
    """bool (1114112,): which code points are letters or digits of any script."""
    return np.fromiter(map(str.isalnum, map(chr, range(0x110000))), dtype=bool, count=0x110000)


@functools.cache
def letter_values() -> np.ndarray:
    """uint64 (1114112,): a random value for each code point."""
    return np.random.default_rng(_RANDOM).integers(0, 1 << 64, 0x110000, dtype=np.uint64)


def mixed(hashes: np.ndarray) -> np.ndarray:
    """``hashes`` with every bit dependent on all (the finalizer of SplitMix64); changes them in place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)
    return hashes


def code_points(text: str) -> np.ndarray:
    """uint32 (characters,): read-only."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


@dataclass(frozen=True)
class Letters:
    """The letters and digits of some segments (texts, or their lines), one after another.

    Attributes:
        codes: uint32 (letters,).
        ends: int64 (segments,): where each segment ends in ``codes``.
    """

    codes: np.ndarray
    ends: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """int64 (segments,): letters of each segment."""
        return np.diff(self.ends, prepend=0)


def letters_of(texts: Sequence[str]) -> Letters:
    """Each text a segment."""
    codes = code_points("".join(texts))
    is_letter = letter_table()[codes]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return Letters(codes[is_letter], np.concatenate([[0], np.cumsum(is_letter)])[ends])


def segment_hashes(letters: Letters) -> np.ndarray:
    """uint64 (segments,): equal for segments of the same letters."""
    sizes = letters.sizes
    hashes = np.zeros(len(sizes), dtype=np.uint64)
    if len(letters.codes):
        starts = letters.ends - sizes
        offsets = np.arange(len(letters.codes), dtype=np.int64) - np.repeat(starts, sizes)
        terms = letter_values()[letters.codes] * _powers(int(sizes.max()).bit_length())[offsets]
        filled = sizes > 0
        hashes[filled] = np.add.reduceat(terms, starts[filled])
    return mixed(hashes + sizes.astype(np.uint64) * np.uint64(_RANDOM))


@functools.cache
def _powers(bits: int) -> np.ndarray:
    """The first ``2**bits`` powers of the polynomial's variable."""
    factors = np.full(1 << bits, _STEP, dtype=np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)


def window_hashes(codes: np.ndarray, size: int, values: np.ndarray | None = None) -> np.ndarray:
    """uint64 (n - size + 1,): a hash of each run of ``size`` characters; empty for shorter input.

    Args:
        codes: code points (n,).
        values: what each code point counts as; default: :func:`letter_values`.
    """
    if len(codes) < size:
        return np.empty(0, dtype=np.uint64)
    terms = (letter_values() if values is None else values)[codes]
    return mixed(_runs(terms, size).copy())


def _runs(terms: np.ndarray, size: int) -> np.ndarray:
    """The polynomial of each run of ``size`` terms, from those of half the size."""
    if size == 1:
        return terms
    half = size // 2
    runs = _runs(terms, half)
    runs = runs[:-half] * np.uint64(pow(_STEP, half, 1 << 64)) + runs[half:]
    return runs[:-1] * np.uint64(_STEP) + terms[2 * half :] if size % 2 else runs


def slices(texts: Sequence[str], size: int = BATCH) -> Iterator[slice]:
    """The texts in slices of about ``size`` characters; one slice, empty, where there is none."""
    first = total = 0
    for index, text in enumerate(texts):
        total += len(text)
        if total >= size:
            yield slice(first, index + 1)
            first, total = index + 1, 0
    if first < len(texts) or not texts:
        yield slice(first, len(texts))
