"""A list that a user may give: a text file with one entry a line, or none."""

from __future__ import annotations

import hashlib
from pathlib import Path

from provenance import UserError


def read_list(option: str, name: str, *, bundled: Path | None = None) -> str:
    """The text of the file ``name``; nothing for ``none``, and the list we have for ``bundled``.

    Args:
        option: the option that named it, for what is said of mistakes.
        bundled: a list of ours, where there is one.

    Raises:
        UserError: the file is none, cannot be read or is not UTF-8.
    """
    if name == "none":
        return ""
    path = bundled if bundled and name == "bundled" else Path(name)
    remedy = f"give a UTF-8 file with one entry a line, {'or bundled, ' if bundled else ''}or none"
    if not path.is_file():
        raise UserError(f"--{option} {name or repr(name)} is no file; {remedy}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--{option} {name} cannot be read ({type(error).__name__}); {remedy}") from None


def sha256_of(text: str) -> str:
    """Hex sha256 of a list, for the identity of a corpus: a file's name says nothing about its entries."""
    return hashlib.sha256(text.encode()).hexdigest()
