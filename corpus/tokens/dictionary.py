"""A user's words for the segmenters: a file in the form of jieba's dictionaries."""

from __future__ import annotations

import re
from functools import cache

from corpus.user_list import read_list
from provenance import UserError

_ENTRY = re.compile(r"(\S+)(?:\s+(\d{1,9}))?(?:\s+[a-zA-Z]+)?")


def content(name: str) -> str:
    """The file as a text.

    Raises:
        UserError: the file cannot be read or is not UTF-8.
    """
    return read_list("dictionary", name)


@cache
def words(name: str) -> tuple[tuple[str, int | None], ...]:
    """Words, each with its frequency or None: one as high as it takes to keep the word whole.

    A line is a word, then a frequency and a part of speech if they are known.

    Raises:
        UserError: the file cannot be read, or a line is none of this (named).
    """
    found = []
    for number, line in enumerate(content(name).split("\n"), 1):
        if not line.strip():
            continue
        entry = _ENTRY.fullmatch(line.strip())
        if not entry:
            raise UserError(f"{name} line {number} is not a word, its frequency and its part of speech")
        found.append((entry[1], int(entry[2]) if entry[2] else None))
    return tuple(found)
