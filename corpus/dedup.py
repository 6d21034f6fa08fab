"""Exact duplicates: documents whose letters and digits are the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_NOT_LETTERS = re.compile(r"[\W_]+")


def fingerprint(text: str) -> bytes:
    """16 bytes that two texts share when they differ only in punctuation, symbols and space.

    Characters are compared as they are: NFKC would merge texts that differ.
    """
    letters = _NOT_LETTERS.sub("", text)
    return hashlib.blake2b(letters.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def first_of_each(fingerprints: Iterable[bytes], seen: set[bytes]) -> list[bool]:
    """True for each fingerprint that is not in ``seen`` and not earlier in the sequence; ``seen`` grows."""
    kept = []
    for value in fingerprints:
        kept.append(value not in seen)
        seen.add(value)
    return kept
