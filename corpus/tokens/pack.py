"""Sentences, and packing their tokens into rows ``[CLS] A [SEP] B [SEP]``.

The A/B rule and its constants are those of google-research/electra, ``build_pretraining_dataset.py``
after its correction of 2020-03-16 (before it, and in copies made before, hardly any row got a segment B).
Only sizes decide it: a document is the bounds of its sentences in a flat array of tokens, a row is stretches
of that array, and ``corpus.tokens.rows`` fills rows with tokens.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple, Protocol

SINGLE_SHARE = 0.1  # of rows have one segment whatever their sentences
RANDOM_TARGET_SHARE = 0.05  # of rows aim at a random, shorter length
LEAST_TARGET = 5
NO_TARGET = 100_000

_CLOSING = "”’」』）》】〉〕\"')"
_STOP = "。！？；…｡"
# ASCII . ends no sentence (3.5, U.S.); ASCII ! ? ; do before a space, Han or the end, but not in ?a=b.
# All begin with one set of characters, which the engine scans for: three times as fast as alternatives.
_SENTENCE_END = re.compile(
    rf"[{_STOP}!?;\n](?:(?<=\n)|(?<=[{_STOP}])[{_STOP}]*[{_CLOSING}]*"
    rf"|(?<=[!?;])[!?;]*(?=[{_CLOSING}]*(?:\s|$|[\u3000-\u9fff\uff00-\uffef]))[{_CLOSING}]*)"
)


def sentence_ends(text: str) -> list[int]:
    """Ascending end offsets of the sentences of ``text``; the last is ``len(text)``."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if text and (not ends or ends[-1] != len(text)):
        ends.append(len(text))
    return ends


def sentences(text: str) -> list[str]:
    """The sentences of ``text`` without outer space; empty ones are left out."""
    starts = [0, *sentence_ends(text)]
    pieces = (text[a:b].strip() for a, b in pairwise(starts))
    return [piece for piece in pieces if piece]


class Coin(Protocol):
    """The two draws packing needs; ``random.Random`` is one."""

    def random(self) -> float: ...

    def randint(self, a: int, b: int, /) -> int: ...


def _draws(key: bytes) -> Iterator[int]:
    for number in count():
        yield from struct.unpack("<16I", hashlib.blake2b(key, salt=number.to_bytes(16, "little")).digest())


class KeyedCoin:
    """Draws that ``key`` alone decides: 32 bits each, of blake2b.

    ``random.Random(key)`` takes 17 µs to seed, longer than packing a short document.
    """

    def __init__(self, key: str) -> None:
        self._next = _draws(key.encode()).__next__

    def random(self) -> float:
        """Of [0, 1)."""
        return self._next() / 2**32

    def randint(self, a: int, b: int, /) -> int:
        """Of a to b, both included."""
        return a + self._next() * (b - a + 1) // 2**32


Span = tuple[int, int]  # first token and end of a stretch of tokens


class Row(NamedTuple):
    """One training row: the stretches of tokens in segments A and B; B is empty in a row of one segment."""

    a: Sequence[Span]
    b: Sequence[Span]


def size_of(spans: Sequence[Span]) -> int:
    """Tokens in ``spans``."""
    return sum(end - start for start, end in spans)


def cut(spans: Sequence[Span], room: int) -> list[Span]:
    """The first ``room`` tokens of ``spans``."""
    kept: list[Span] = []
    for start, end in spans:
        if room <= 0:
            break
        kept.append((start, min(end, start + room)))
        room -= end - start
    return kept


def _room_of_a(target: int, coin: Coin) -> int:
    return NO_TARGET if coin.random() < SINGLE_SHARE else (target - 3) // 2


def split_segments(spans: Sequence[Span], target: int, coin: Coin) -> Row:
    """Sentences divided into segments A and B by the published rule, uncut.

    A sentence joins A if A is empty, or A stays under its target, or B is empty, A is under its target and
    the coin falls under one half; else it joins B.
    """
    room, size = _room_of_a(target, coin), 0
    a: list[Span] = []
    b: list[Span] = []
    for start, end in spans:
        fits = size + end - start < room
        if not a or fits or (not b and size < room and coin.random() < 0.5):
            a.append((start, end))
            size += end - start
        else:
            b.append((start, end))
    return Row(a, b)


def pack_google(bounds: Sequence[int], length: int, coin: Coin, counts: Counter[str]) -> Iterator[Row]:
    """Rows of one document by the published rule; what a row cannot hold is lost (``tokens_lost``).

    Args:
        bounds: ascending; sentence i is the tokens from ``bounds[i]`` to ``bounds[i + 1]``.
        length: most tokens in a row, three of them special.
        coin: decides every draw.
        counts: ``tokens_lost`` is added to.
    """
    target, current = length, []
    for span in pairwise(bounds):
        current.append(span)
        size = span[1] - current[0][0]
        if size < target and span[1] != bounds[-1]:
            continue
        a, b = split_segments(current, target, coin)
        a = cut(a, length - 2)
        b = cut(b, length - size_of(a) - 3)
        counts["tokens_lost"] += size - size_of(a) - size_of(b)
        yield Row(a, b)
        current = []
        target = coin.randint(LEAST_TARGET, length) if coin.random() < RANDOM_TARGET_SHARE else length


def pack_carry(
    bounds: Sequence[int], length: int, coin: Coin, counts: Counter[str], min_fragment: int = 16
) -> Iterator[Row]:
    """Rows of one document in text order; what a row cannot hold begins the next one.

    The published rule, but nothing joins A once B has begun, so that A and B are one stretch of text. Only a
    remainder of fewer than ``min_fragment`` tokens after the first row is dropped (``tokens_lost``,
    ``fragments_dropped``); a document that is short as a whole is kept. Arguments as of ``pack_google``.
    """
    first = start = bounds[0]
    last = len(bounds) - 1
    sentence = 0  # that start lies in
    while start < bounds[last]:
        short = coin.random() < RANDOM_TARGET_SHARE
        target = coin.randint(max(LEAST_TARGET, min_fragment), length) if short else length
        # sentences up to bounds[until] reach the target, or the document ends
        until = min(last, bisect_left(bounds, start + target, sentence + 1))
        if start > first and bounds[until] - start < min_fragment:
            counts["fragments_dropped"] += 1
            counts["tokens_lost"] += bounds[until] - start
            return
        room = _room_of_a(target, coin)
        middle = max(sentence + 1, bisect_left(bounds, start + room, sentence + 1, until + 1) - 1)
        if middle < until and bounds[middle] - start < room and coin.random() < 0.5:
            middle += 1
        end_a = min(bounds[middle], start + length - 2)
        end_b = max(end_a, min(bounds[until], start + length - 3)) if end_a == bounds[middle] else end_a
        yield Row(((start, end_a),), ((end_a, end_b),) if end_b > end_a else ())
        start = end_b
        sentence = bisect_right(bounds, start, sentence) - 1


def pack_document(
    bounds: Sequence[int],
    length: int,
    *,
    key: str,
    packing: str = "carry",
    min_fragment: int = 16,
    counts: Counter[str] | None = None,
) -> list[Row]:
    """All rows of one document; ``key`` (seed and document id) and ``length`` decide every draw.

    Args:
        bounds: of its sentences, as of ``pack_google``; strictly ascending. Fewer than two: no rows.
        length: most tokens in a row.
        key: what the draws depend on.
        packing: ``carry`` or ``google``.
        min_fragment: of ``carry``.
        counts: ``rows``, ``single``, ``tokens_in``, ``tokens_lost`` and ``fragments_dropped`` are added to.
    """
    counts = Counter() if counts is None else counts
    if len(bounds) < 2:
        return []
    coin = KeyedCoin(f"{key}/{length}")
    if packing == "google":
        rows = list(pack_google(bounds, length, coin, counts))
    else:
        rows = list(pack_carry(bounds, length, coin, counts, min_fragment))
    counts["rows"] += len(rows)
    counts["single"] += sum(not row.b for row in rows)
    counts["tokens_in"] += bounds[-1] - bounds[0]
    return rows
