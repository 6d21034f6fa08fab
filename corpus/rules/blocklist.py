"""The list of terms that give spam away: the bundled one, a file in its place, or none."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from provenance import UserError

BUNDLED = Path(__file__).with_name("blocklist.txt")


def _content(name: str) -> str:
    if name == "none":
        return ""
    path = BUNDLED if name == "bundled" else Path(name)
    if not path.is_file():
        raise UserError(f"--blocklist {name or repr(name)} is no file; give one, or bundled, or none")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"--blocklist {name} cannot be read ({type(error).__name__}); "
            "give a UTF-8 file with one term a line, or bundled, or none"
        ) from None


def sha256(name: str) -> str:
    """Hex sha256 of the list, for the identity of a corpus: the name of a file says nothing about its terms.

    Raises:
        UserError: the file cannot be read or is not UTF-8.
    """
    return hashlib.sha256(_content(name).encode()).hexdigest()


@cache
def terms(name: str) -> tuple[str, ...]:
    """The terms of a list, the longest first.

    Raises:
        UserError: the file cannot be read or is not UTF-8.
    """
    lines = (line.partition("#")[0].strip() for line in _content(name).split("\n"))
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
