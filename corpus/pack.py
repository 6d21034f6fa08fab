"""Sentences, and packing their tokens into rows ``[CLS] A [SEP] B [SEP]``.

The A/B rule and its constants are those of google-research/electra, ``build_pretraining_dataset.py``
after its correction of 2020-03-16 (before it, and in copies made before, hardly any row got a segment B).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from corpus.vocab import CLS, SEP

SINGLE_SHARE = 0.1  # of rows have one segment whatever their sentences
RANDOM_TARGET_SHARE = 0.05  # of rows aim at a random, shorter length
LEAST_TARGET = 5
NO_TARGET = 100_000

_CLOSING = "”’」』）》】〉〕\"')"
# ASCII . ends no sentence (3.5, U.S.); ASCII ! ? ; do before a space, Han or the end, but not in ?a=b
_SENTENCE_END = re.compile(
    rf"(?:[。！？；…｡]+|[!?;]+(?=[{_CLOSING}]*(?:\s|$|[\u3000-\u9fff\uff00-\uffef])))[{_CLOSING}]*|\n"
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


@dataclass(frozen=True)
class Piece:
    """Tokens of a sentence, or of what is left of one: ids and word-start flags of equal length."""

    ids: Sequence[int]
    starts: Sequence[bool]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Row:
    """One training row, special tokens included; three sequences of equal length."""

    input_ids: list[int]
    token_type_ids: list[int]
    word_starts: list[bool]


def _join(pieces: Sequence[Piece]) -> Piece:
    ids: list[int] = []
    starts: list[bool] = []
    for piece in pieces:
        ids.extend(piece.ids)
        starts.extend(piece.starts)
    return Piece(ids, starts)


def _cut(piece: Piece, size: int) -> tuple[Piece, Piece]:
    return Piece(piece.ids[:size], piece.starts[:size]), Piece(piece.ids[size:], piece.starts[size:])


def _segment_starts(piece: Piece) -> list[bool]:
    """A segment's first token counts as a word start, also where a cut fell inside a word."""
    return [True, *piece.starts[1:]] if len(piece) else []


def make_row(a: Piece, b: Piece) -> Row:
    """``[CLS] a [SEP]`` or ``[CLS] a [SEP] b [SEP]``; type 1 from b's first token to its [SEP]."""
    ids, types = [CLS, *a.ids, SEP], [0] * (len(a) + 2)
    starts = [True, *_segment_starts(a), True]
    if len(b):
        ids += [*b.ids, SEP]
        types += [1] * (len(b) + 1)
        starts += [*_segment_starts(b), True]
    return Row(ids, types, starts)


def split_segments(pieces: Sequence[Piece], target: int, coin: Coin, *, ordered: bool) -> tuple[Piece, Piece]:
    """Sentences divided into segments A and B, uncut.

    A sentence joins A if A is empty, or A stays under its target, or B is empty, A is under its target and
    the coin falls under one half; else it joins B. ``ordered``: nothing joins A once B has begun, so that
    A + B is the text in order (the published rule may put a later short sentence into A).
    """
    room = NO_TARGET if coin.random() < SINGLE_SHARE else (target - 3) // 2
    first: list[Piece] = []
    second: list[Piece] = []
    size = 0
    for piece in pieces:
        fits = size + len(piece) < room and not (ordered and second)
        if not first or fits or (not second and size < room and coin.random() < 0.5):
            first.append(piece)
            size += len(piece)
        else:
            second.append(piece)
    return _join(first), _join(second)


def pack_google(pieces: Sequence[Piece], length: int, coin: Coin, counts: Counter[str]) -> Iterator[Row]:
    """Rows of one document by the published rule; what a row cannot hold is lost (``tokens_lost``)."""
    target, current, size = length, [], 0
    last = len(pieces) - 1
    for index, piece in enumerate(pieces):
        current.append(piece)
        size += len(piece)
        if size < target and index != last:
            continue
        a, b = split_segments(current, target, coin, ordered=False)
        kept_a, _ = _cut(a, length - 2)
        kept_b, _ = _cut(b, max(0, length - len(kept_a) - 3))
        counts["tokens_lost"] += len(a) + len(b) - len(kept_a) - len(kept_b)
        if len(kept_a):
            yield make_row(kept_a, kept_b)
        current, size = [], 0
        target = coin.randint(LEAST_TARGET, length) if coin.random() < RANDOM_TARGET_SHARE else length


def pack_carry(
    pieces: Sequence[Piece], length: int, coin: Coin, counts: Counter[str], min_fragment: int = 16
) -> Iterator[Row]:
    """Rows of one document; what a row cannot hold begins the next one, in text order.

    Only a remainder of fewer than ``min_fragment`` tokens after the first row is dropped (``tokens_lost``,
    ``fragments_dropped``); a document that is short as a whole is kept.
    """
    waiting = [piece for piece in reversed(pieces) if len(piece)]
    rows = 0
    while waiting:
        short = coin.random() < RANDOM_TARGET_SHARE
        target = coin.randint(max(LEAST_TARGET, min_fragment), length) if short else length
        current, size = [], 0
        while waiting and size < target:
            current.append(waiting.pop())
            size += len(current[-1])
        if rows and size < min_fragment:
            counts["fragments_dropped"] += 1
            counts["tokens_lost"] += size
            return
        a, b = split_segments(current, target, coin, ordered=True)
        a, rest_a = _cut(a, length - 2)
        b, rest_b = _cut(b, max(0, length - len(a) - 3))
        if len(rest_b):
            waiting.append(rest_b)
        if len(rest_a):
            waiting.append(rest_a)
        rows += 1
        yield make_row(a, b)


def pack_document(
    pieces: Sequence[Piece],
    length: int,
    *,
    key: str,
    packing: str = "carry",
    min_fragment: int = 16,
    counts: Counter[str] | None = None,
) -> list[Row]:
    """All rows of one document; ``key`` (seed and document id) decides every draw.

    Counts: ``rows``, ``single``, ``tokens_in``, ``tokens_lost``, ``fragments_dropped``.
    """
    counts = Counter() if counts is None else counts
    coin = random.Random(f"{key}/{length}")
    if packing == "google":
        rows = list(pack_google(pieces, length, coin, counts))
    else:
        rows = list(pack_carry(pieces, length, coin, counts, min_fragment))
    counts["rows"] += len(rows)
    counts["single"] += sum(row.token_type_ids[-1] == 0 for row in rows)
    counts["tokens_in"] += sum(len(piece) for piece in pieces)
    return rows
