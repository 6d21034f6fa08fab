"""What dropped markup leaves behind: empty brackets, spaces and separators around nothing.

For corpora only, never for benchmark contexts.
"""

from __future__ import annotations

import re

_PAIRS = dict(zip("（(［[【〔〈《「『“‘", "）)］]】〕〉》」』”’", strict=True))
_CLOSING = set(_PAIRS.values())
_BRACKET = re.compile("([" + re.escape("".join(_PAIRS) + "".join(_PAIRS.values())) + "])")
# What a dropped template leaves behind. Not ？ ！ … - and －: 「……」, （？） and Rh（－） say something.
_SEPARATORS = r"\s，、；：。·,;:.—–/／|"
_OPENS, _CLOSES = (f"[{re.escape(''.join(marks))}]" for marks in (_PAIRS, _PAIRS.values()))
_SUSPECT = re.compile(f"{_OPENS}[{_SEPARATORS}]*{_CLOSES}")
EMPTY = _OPENS, f"[{_SEPARATORS}{_CLOSES[1:]}"  # one of each in a row is in every empty bracket
_SAYS_SOMETHING = re.compile(f"[^{_SEPARATORS}]")
_CALL = re.compile(r"[A-Za-z0-9_]$")

GAP = "\0"  # stands where markup without text of its own was; no XML and no page has this character
# Dates in brackets of their own that stand in brackets already: （名，（1893年－1976年）).
_NESTED = re.compile(f"{GAP}(?<=[，；、]{GAP})（([^（）\n]{{1,60}})）(?=）)")
_MARKS = "：，；、,; \t"
_GAPS = re.compile(f"{GAP}[{_MARKS[1:]}{GAP}]*")
_STOP = re.compile(r"[。！？：]|[.:!?](?![A-Za-z0-9])")
_RANK = "：、,，;；"  # of several separators the strongest stays


def close_gaps(text: str) -> str:
    """``text`` without its gaps, and without the spaces and separators that each leaves too many."""
    if GAP not in text:
        return text
    text = _NESTED.sub(
        r"\1", text.replace(f"{GAP}\n", "\n")
    )  # most gaps end a line, where nothing is too many
    pieces: list[str] = []
    position = 0
    for gap in _GAPS.finditer(text):
        start, end = gap.span()
        before = text[max(position, start - 8) : start]
        start -= len(before) - len(before.rstrip(_MARKS))
        pieces += text[position:start], _closed(text, start, end)
        position = end
    return "".join(pieces) + text[position:]


def _closed(text: str, start: int, end: int) -> str:
    """What joins the text before and after ``text[start:end]``, a gap with its spaces and separators."""
    run = text[start:end]
    before, after = text[start - 1 : start] or "\n", text[end : end + 1] or "\n"
    if before in "\n。" or before in _PAIRS or after in _CLOSING or _STOP.match(text, end):
        return ""
    separator = max(run.strip(f" \t{GAP}"), key=_RANK.find, default="")
    spaced = run[-1] in " \t" if separator else " " in run or "\t" in run
    if not spaced or after == "\n" or separator in ("：", "、", "，", "；"):
        return separator
    return separator if _wide(before) and _wide(after) else separator + " "


def _wide(character: str) -> bool:
    """Is this of a script, or a mark, that is written without spaces?"""
    return character >= "\u2e80" or character in "“”‘’…—·"


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
