"""Wikitext to plain text: what is simple by replacement, the rest by the pass over the tokens
(:mod:`corpus.scanner`), then what dropped marks left behind, then the lines."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from corpus.brackets import GAP, close_gaps, remove_empty_brackets
from corpus.formulas import formula_text, raised
from corpus.markup import DROPPED_NAMESPACES, SENTENCE, without_comments
from corpus.scanner import PROTECTED, Scanner, shown_variant
from corpus.script import main_script
from corpus.templates import carries_text, template_text

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_MARKED = frozenset("*#:;-")
_LIST_MARKS = re.compile(r"[*#:;]+[ \t]*")
_RULE = re.compile(r"-{4,}[ \t]*")
_WORD = re.compile(r"\w")

# --- simple marks ---------------------------------------------------------------------------------

# Elements whose text is no wikitext; one that starts again before it ends is left to the scanner.
_FOREIGN = re.compile(
    r"<(nowiki|math|chem|ce|syntaxhighlight|source)\b([^<>]*+)>((?:[^<]++|<(?!/?\1\b))*+)</\1\s*+>"
)
_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "[]{}|'<>=_"}
# The scanner reads these too; to replace them first makes it several times faster.
_LINK = re.compile(r"\[\[(?:[^\[\]{}<>|\n:]++\|)?+(?=[^\s|])([^\[\]{}<>|\n:]++)\]\]")
_DROPPED_LINK = re.compile(  # of files and categories, without a sentence in them
    rf"\[\[(?:{'|'.join(sorted(DROPPED_NAMESPACES))}):[^\[\]{{}}<>\n{SENTENCE}]*+\]\]", re.IGNORECASE
)
_REFERENCE = re.compile(r"<ref(?:\s[^<>/\n]*+)?>[^<\n]*+</ref>|<ref\s[^<>/\n]*+/>")
_TEMPLATE = re.compile(r"\{\{(?!\{)(?<!\{\{\{)([^{}]*+)\}\}(?!\})")  # literals first: the search is in C
_VARIANT = re.compile(r"-\{([^{}\[\]<>]*+)\}-")
_RAISED = re.compile(r"<sup>\s*([-+−]?\d{1,4}|[-+−]?n)\s*</sup>")
_ANY_MARK = re.compile(r"[\[\]{}<>|=]")
_ROUNDS = 3  # of templates: what is nested deeper is left to the scanner


def _foreign(element: re.Match[str]) -> str:
    """The text of an element with its marks as entities, which the last pass but one turns back."""
    whole, (name, attributes, inside) = element[0], element.groups()
    if attributes.endswith("/") or "\n==" in inside:
        return whole
    if name == "nowiki" or (name in ("syntaxhighlight", "source") and " inline" in attributes):
        return inside.translate(_MARKS)
    if name in ("syntaxhighlight", "source"):
        return whole
    return formula_text(inside).replace("&", "&amp;").translate(_MARKS) or GAP


def _resolved(pattern: re.Pattern[str], mark: str, shown: Callable[[str], str | None], text: str) -> str:
    """``text`` with what ``shown`` gives for each match's content; None, and marks in it, leave the match."""
    parts = pattern.split(text)  # faster than a callback: text, content, text, content, ...
    for place in range(1, len(parts), 2):
        value = shown(parts[place])
        if not value:
            parts[place] = GAP if value is not None else mark.replace("…", parts[place])
        else:
            parts[place] = mark.replace("…", parts[place]) if _ANY_MARK.search(value) else value
    return "".join(parts)


def _simple_marks(text: str, title: str, script: str, protect: bool) -> str:
    """``text`` without foreign text and quotes, and without the links, references, templates, variants and
    powers that hold no other marks."""

    def template(content: str) -> str | None:
        if not carries_text(content.partition("|")[0]):
            return ""
        return None if "[" in content or "<" in content else template_text(content.split("|"), title)

    def variant(content: str) -> str:
        return shown_variant(content, script, protect)

    text = _FOREIGN.sub(_foreign, text)
    for quotes in ("'''''", "'''", "''"):
        text = text.replace(quotes, "")
    text = "".join(_LINK.split(text))  # text, label, text, label, ...: each link becomes its label
    text = GAP.join(_DROPPED_LINK.split(text))
    references = "<ref" in text
    if references:
        text = GAP.join(_REFERENCE.split(text))
    if "-{" in text:
        text = _resolved(_VARIANT, "-{…}-", variant, text)
    for _ in range(_ROUNDS):
        if "{{" in text:
            text = _resolved(_TEMPLATE, "{{…}}", template, text)
    if references:
        text = GAP.join(_REFERENCE.split(text))
    if "<sup" in text:
        text = _RAISED.sub(lambda power: raised(power[1]), text)
    return text


# --- lines ----------------------------------------------------------------------------------------


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
        elif not kept or not kept[-1]:  # of several empty lines one
            continue
        kept.append(text)
    return kept[::-1]


# --- a page ---------------------------------------------------------------------------------------

_BRACES = re.compile(r"\{[^{}]*\}")


def page_script(wikitext: str) -> str:
    """The script of most of a page, ``hans`` or ``hant``.

    Without what stands in braces: ``-{zh-hans:…;zh-hant:…}-`` has both scripts, and so has ``{{noteTA}}``.
    """
    return main_script(_BRACES.sub("", wikitext))


def wikitext_to_text(
    wikitext: str, *, title: str = "", script: str | None = None, convert: str = "none"
) -> str:
    """The readable text of a page, one line per paragraph, heading or list item. Never raises, linear time.

    Args:
        wikitext: the page's source.
        title: the page's title, for ``{{PAGENAME}}``.
        script: ``hant`` chooses the traditional side of ``-{ }-``, ``hans`` the simplified one; None chooses
            that of the page's own script, or of the script it will be converted to.
        convert: name of the OpenCC conversion that the text will go through. With another than ``none``, the
            text of ``-{ }-`` stands between two marks that :func:`convert_unprotected` heeds and removes.
    """
    # An escaped tag (&lt;ref&gt;) is dropped as a tag; all other entities are unescaped after the scan, so
    # that escaped marks such as &#91; stay text, and nothing is unescaped twice.
    text = wikitext.replace(GAP, "").replace(PROTECTED, "")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "&" in text:
        text = text.replace("&lt;", "<").replace("&gt;", ">")
    if script is None and "-{" in text:
        script = page_script(text) if convert == "none" else _target(convert)
    settings = title, script or "hans", convert != "none"
    text = _simple_marks(without_comments(text), *settings)
    text = Scanner("\n" + text, *settings).run()
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    text = remove_empty_brackets(close_gaps(text))
    return "\n".join(_plain_lines(text.split("\n"))).strip()


def _target(convert: str) -> str:
    """The script that an OpenCC conversion leads to: ``t2s`` and ``tw2sp`` to simplified."""
    return "hans" if convert.partition("2")[2].startswith("s") else "hant"


def convert_unprotected(text: str, convert: Callable[[str], str]) -> str:
    """``text`` through ``convert``, but for what stands between two marks of :func:`wikitext_to_text`."""
    pieces = text.split(PROTECTED)
    if len(pieces) % 2 == 0:  # a mark lost its fellow
        return convert("".join(pieces))
    pieces[::2] = map(convert, pieces[::2])
    return "".join(pieces)
