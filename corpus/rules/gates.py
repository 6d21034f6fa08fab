"""Which of many documents a rule can act on, found for all rules at once.

Most rules act on few documents. A rule declares what it needs, as characters or as a function over the
code points of many documents; where that is missing, the rule would give its text back and is not called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from corpus.config import CorpusConfig
from corpus.hashing import code_points, slices
from corpus.script import HAN

LINE_END = 10
ANY = r"[\s\S]"


class Rule(Protocol):
    """A pure function from a text to the text to go on with, or to None to reject it."""

    __name__: str

    def __call__(self, text: str, config: CorpusConfig, /) -> str | None: ...


R = TypeVar("R", bound=Rule)


@cache
def members(pattern: str) -> NDArray[np.bool_]:
    """bool (1114112,): the characters that a pattern of one character matches, and all beyond U+FFFF."""
    found = np.ones(0x110000, dtype=bool)
    found[:0x10000] = False
    found[[ord(each) for each in re.findall(pattern, "".join(map(chr, range(0x10000))))]] = True
    return found


@dataclass(frozen=True)
class Texts:
    """Many texts as code points, a line end after each.

    Attributes:
        codes: uint32 (characters + texts,).
        sizes: int64 (texts,): characters of each, without the line end.
    """

    codes: NDArray[np.uint32]
    sizes: NDArray[np.int64]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """int64 (texts,): where each text starts in ``codes``."""
        ends = np.cumsum(self.sizes + 1)
        return ends - self.sizes - 1

    def count(self, found: NDArray[np.bool_]) -> NDArray[np.int64]:
        """int64 (texts,): how many of the characters of each text ``found`` (of the shape of codes) marks."""
        return np.add.reduceat(found, self.starts, dtype=np.int64)

    @cached_property
    def han(self) -> NDArray[np.int64]:
        """int64 (texts,): Han characters of each text."""
        return self.count(self.is_han)

    @cached_property
    def is_han(self) -> NDArray[np.bool_]:
        """bool, of the shape of codes."""
        return _han()[self.codes]

    @cached_property
    def least_han(self) -> NDArray[np.int64]:
        """int64 (texts,): the fewest Han of a line of each text; a line end is before each line."""
        ends = np.flatnonzero(self.codes == LINE_END)
        before = np.concatenate([[0], np.cumsum(self.is_han)])[ends]
        lines = np.diff(before, append=before[-1])
        lines[np.searchsorted(ends, self.starts + self.sizes)] = len(self.codes)  # no line of a text follows
        return np.minimum.reduceat(lines, np.searchsorted(ends, self.starts))


@cache
def _han() -> NDArray[np.bool_]:
    table = members(HAN.pattern).copy()
    table[0x10000:] = False
    table[0x20000:0x40000] = True
    return table


def texts_of(texts: Sequence[str]) -> Texts:
    return Texts(code_points("\n".join(texts) + "\n"), np.fromiter(map(len, texts), np.int64, len(texts)))


def count_han_each(texts: Sequence[str]) -> list[int]:
    """Number of Han characters of each text."""
    return [count for part in slices(texts) for count in texts_of(texts[part]).han.tolist()]


Gate = Callable[[Texts, CorpusConfig], NDArray[np.bool_]]


def needs(*characters: str) -> Callable[[R], R]:
    r"""Declare that a rule acts only on texts with a character of a class, or two together of two classes.

    Args:
        characters: one or two patterns of one character, such as ``[<&]``.
    """

    def declare(rule: R) -> R:
        rule.needs = (*characters, ANY)[:2]  # type: ignore[attr-defined]
        return rule

    return declare


def where(gate: Gate) -> Callable[[R], R]:
    """Declare that a rule acts only on texts that ``gate`` marks."""

    def declare(rule: R) -> R:
        rule.gate = gate  # type: ignore[attr-defined]
        return rule

    return declare


@cache
def _tables(pairs: tuple[tuple[str, str], ...]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """For each code point, a bit for each pair whose first, and whose second, pattern it matches."""
    first, second = (np.zeros(0x110000, dtype=np.uint32) for _ in range(2))
    for bit, (one, two) in enumerate(pairs):
        first |= members(one).astype(np.uint32) << np.uint32(bit)
        second |= members(two).astype(np.uint32) << np.uint32(bit)
    return first, second


def gates(rules: Sequence[Rule], texts: Sequence[str], config: CorpusConfig) -> list[NDArray[np.bool_]]:
    """For each rule bool (texts,): which it can act on. At most 32 rules."""
    assert len(rules) <= 32, "a code point has 32 bits for what rules need"
    block = texts_of(texts)
    first, second = _tables(tuple(getattr(rule, "needs", (ANY, ANY)) for rule in rules))
    held = first[block.codes]
    held[:-1] &= second[block.codes[1:]]
    bits = np.bitwise_or.reduceat(held, block.starts)
    found = []
    for bit, rule in enumerate(rules):
        gate: Gate | None = getattr(rule, "gate", None)
        found.append(gate(block, config) if gate else bits >> np.uint32(bit) & np.uint32(1) > 0)
    return found
