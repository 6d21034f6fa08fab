"""Wikitext to plain text: the marks resolved in one pass over the tokens, then a pass over the lines."""

from __future__ import annotations

import html
import re

from corpus.brackets import GAP, close_gaps, remove_empty_brackets
from corpus.markup import without_comments
from corpus.scanner import Scanner

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_MARKED = frozenset("*#:;-")
_LIST_MARKS = re.compile(r"[*#:;]+[ \t]*")
_RULE = re.compile(r"-{4,}[ \t]*")
_WORD = re.compile(r"\w")


def _heading(line: str) -> tuple[int, str]:
    """Level and text of a heading; level 0 for any other line that begins with an equals sign."""
    text = line.strip("=")
    if line[-1] != "=" or not text.strip():
        return 0, line
    level = min(len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("=")))
    return level, text.strip()


def _plain_line(line: str) -> str:
    """One line that begins with one of ``_MARKED``, without list, definition and rule marks."""
    first = line[0]
    if first != "-":
        text = line[_LIST_MARKS.match(line).end() :]  # type: ignore[union-attr]
        return text.replace(" : ", "\n", 1) if first == ";" else text
    rule = _RULE.match(line)
    return line[rule.end() :] if rule else line


def _plain_lines(lines: list[str]) -> list[str]:
    """Plain lines; a heading stays where a line of text or a kept heading of a lower rank follows it."""
    kept: list[str] = []
    below = 0  # level of the line kept last, which is the one that follows
    for line in map(str.strip, reversed(lines)):
        level, text = _heading(line) if line[:1] == "=" else (0, line)
        if level:
            if level >= below:
                continue
            below = level
        elif line:
            text = _plain_line(line) if line[0] in _MARKED else line
            if below < 99 and _WORD.search(text):
                below = 99
        kept.append(text)
    return kept[::-1]


def wikitext_to_text(wikitext: str, *, title: str = "", script: str = "hans") -> str:
    """The readable text of a page, one line per paragraph, heading or list item. Never raises, linear time.

    Args:
        wikitext: the page's source.
        title: the page's title, for ``{{PAGENAME}}``.
        script: ``hant`` chooses the traditional side of ``-{ }-``, anything else the simplified one.
    """
    # An escaped tag (&lt;ref&gt;) is dropped as a tag; all other entities are unescaped after the scan, so
    # that escaped marks such as &#91; stay text, and nothing is unescaped twice.
    text = wikitext.replace("\r\n", "\n").replace("&lt;", "<").replace("&gt;", ">").replace(GAP, "")
    text = Scanner("\n" + without_comments(text), title, script).run()
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    text = remove_empty_brackets(close_gaps(text))
    text = "\n".join(_plain_lines(text.split("\n")))
    return re.sub(r"\n{3,}", "\n\n", text).strip()
