"""Inline tags that say something: powers, indices, formulas, struck text, quotes. For text of any source."""

from __future__ import annotations

import html
import re

from corpus.formulas import MathML, formula_text, lowered, raised
from corpus.script import HAN

_TAG = re.compile(r"<(/?)(sup|sub|del|strike|math|q)\b([^<>]*)>", re.IGNORECASE)
_ANY_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*)([^<>]*)>")
_DEEPEST = 8  # elements in each other
_LONGEST = 60  # characters that one would raise or lower
# The mark of a note: in brackets, or a number behind a mark, which nothing can be a power of.
_NOTE = re.compile(r"[\[［【〔].*[\]］】〕]|[①-⑳*†‡]+|[注註]\s?\d*")
_NUMBERS = re.compile(r"[(（]?\d{1,3}(?:\s?[,，、–-]\s?\d{1,3})*[)）]?")
_BASELESS = re.compile("[。，、；：！？…”’」』》]")
# A tag that the sentence names: 用<sup>标签, <sup>和<sub>.
_NAMED = re.compile(r"\s?(?:标[签記记]|標[籤記]|元素|[和与與或、及]\s?<)")


def inline_tags(text: str) -> str:
    """``text`` with what inline elements mean on the line: ``10<sup>8</sup>`` is ``10^8``.

    ``<sup>`` after ``^`` (² and ³ as such), unless it is the mark of a note; ``<sub>`` after ``_``, but for
    a number that stands below a letter (``H2O``); ``<math>``, in TeX or MathML, as
    :func:`corpus.formulas.formula_text` has it; nothing of ``<del>`` and ``<strike>``; ``<q>`` in quotes.
    Tags without their fellow, and those that the text speaks about, stay. Linear time.
    """
    if "</" not in text:
        return text
    out: list[str] = []
    opened: list[tuple[str, int]] = []  # name of an open element, place of its tag in out
    position = 0
    for tag in _TAG.finditer(text):
        start, end = tag.span()
        if start > position:
            out.append(text[position:start])
        position = end
        closes, name = bool(tag[1]), tag[2].lower()
        place = next((place for other, place in reversed(opened) if other == name), None) if closes else None
        if _NAMED.match(text, end) or tag[0][-2] == "/":
            place = None
        elif not closes and len(opened) < _DEEPEST:
            opened.append((name, len(out)))
        if place is None:
            out.append(tag[0])
            continue
        while opened and opened[-1][1] >= place:
            opened.pop()
        content = "".join(out[place + 1 :])
        del out[place:]
        if shown := _shown(name, content, out[-1] if out else "", text[end : end + 1]):
            out.append(shown)
    return "".join(out) + text[position:]


def _shown(name: str, content: str, before: str, after: str) -> str:
    """What an element shows between the text before it and the next character."""
    if name in ("del", "strike"):
        return ""
    if name == "math":
        return _formula(content)
    if "\n" in content.strip() or name == "q":
        return f"“{content}”" if name == "q" else content
    plain = " ".join(html.unescape(_ANY_TAG.sub("", content)).split())
    base = before[-1:]
    if name == "sup" and (
        _NOTE.fullmatch(plain) or (_NUMBERS.fullmatch(plain) and _BASELESS.fullmatch(base))
    ):
        return ""
    if len(plain) > _LONGEST or (HAN.search(plain) and not (base.isascii() and base.isalnum())):
        return content
    return raised(plain, after) if name == "sup" else lowered(plain, before, after)


def _formula(content: str) -> str:
    """The formula on one line; ``content`` is TeX, or MathML if there are tags in it."""
    if not _ANY_TAG.search(content):
        return formula_text(html.unescape(content))
    formula, position = MathML(), 0
    for tag in _ANY_TAG.finditer(content):
        formula.data(html.unescape(content[position : tag.start()]))
        position = tag.end()
        if tag[1]:
            formula.end(tag[2].lower())
        else:
            formula.start(tag[2].lower(), tag[3])
    return formula.text()
