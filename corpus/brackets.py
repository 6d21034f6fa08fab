"""Brackets that dropped templates leave empty (case 9). For corpora only, never for benchmark contexts."""

from __future__ import annotations

import re

_PAIRS = dict(zip("（(［[【〔〈《「『“‘", "）)］]】〕〉》」』”’", strict=True))
_CLOSING = set(_PAIRS.values())
_BRACKET = re.compile("([" + re.escape("".join(_PAIRS) + "".join(_PAIRS.values())) + "])")
# What a dropped template leaves behind. Not ？ ！ … - and －: 「……」, （？） and Rh（－） say something.
_SEPARATORS = r"\s，、；：。·,;:.—–/／|"
_SUSPECT = re.compile(f"[{re.escape(''.join(_PAIRS))}][{_SEPARATORS}]*[{re.escape(''.join(_CLOSING))}]")
_SAYS_SOMETHING = re.compile(f"[^{_SEPARATORS}]")
_CALL = re.compile(r"[A-Za-z0-9_]$")


def remove_empty_brackets(text: str) -> str:
    """``text`` without brackets that hold nothing, or only separators, after the same was done inside them.

    ``main()`` and ``int[]`` keep theirs. Linear in the length of ``text``.
    """
    if not _SUSPECT.search(text):
        return text
    out: list[str] = []
    opened: list[tuple[str, int]] = []  # closing bracket, place of the opening one in out
    says = [False]  # one more than opened: does the text at this depth say something?
    for piece in filter(None, _BRACKET.split(text)):
        if piece in _PAIRS:
            opened.append((_PAIRS[piece], len(out)))
            says.append(False)
        elif opened and piece == opened[-1][0]:
            _, place = opened.pop()
            call = piece in ")]" and place + 1 == len(out) and place and _CALL.search(out[place - 1])
            if not says.pop() and not call:
                del out[place:]
                continue
            says[-1] = True
        elif piece in _CLOSING or _SAYS_SOMETHING.search(piece):
            says[-1] = True
        out.append(piece)
    return "".join(out)
