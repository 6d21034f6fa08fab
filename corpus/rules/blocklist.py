"""The list of terms that give spam away: the bundled one, a file in its place, or none."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpus.user_list import read_list

BUNDLED = Path(__file__).with_name("blocklist.txt")


def content(name: str) -> str:
    """The list as a text.

    Raises:
        UserError: the file cannot be read or is not UTF-8.
    """
    return read_list("blocklist", name, bundled=BUNDLED)


@cache
def terms(name: str) -> tuple[str, ...]:
    """The terms of a list, the longest first.

    Raises:
        UserError: the file cannot be read or is not UTF-8.
    """
    lines = (line.partition("#")[0].strip() for line in content(name).split("\n"))
    return tuple(sorted({line for line in lines if line}, key=lambda term: (-len(term), term)))


@cache
def pattern(name: str) -> re.Pattern[str] | None:
    """Finds the terms of a list, the longest at a place; None if it has none."""
    found = terms(name)
    return re.compile("|".join(map(re.escape, found))) if found else None


@cache
def beginnings(name: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool (1114112,), twice: the characters with which terms begin, and those that may come next."""
    first, second = (np.zeros(0x110000, dtype=bool) for _ in range(2))
    for term in terms(name):
        first[ord(term[0])] = True
        second[ord(term[1]) if len(term) > 1 else slice(None)] = True
    return first, second
