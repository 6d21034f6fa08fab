"""Wikitext to plain text: first what is no wikitext, then what is simple by replacement, the rest by the pass
over the tokens (:mod:`corpus.wiki.scanner`), then what dropped marks left behind, then the lines."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from corpus.formulas import formula_text, raised
from corpus.script import main_script
from corpus.wiki.brackets import GAP, close_gaps, remove_empty_brackets
from corpus.wiki.markup import DROPPED_NAMESPACES, HEADING, LITERAL_TAGS, SENTENCE, without_comments
from corpus.wiki.scanner import PROTECTED, Scanner, shown_variant
from corpus.wiki.templates import carries_text, template_text

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_MARKED = frozenset("*#:;-")
_LIST_MARKS = re.compile(r"[*#:;]+[ \t]*")
_RULE = re.compile(r"-{4,}[ \t]*")
_WORD = re.compile(r"\w")

# --- what is no wikitext --------------------------------------------------------------------------

# Elements whose text is no wikitext; one that starts again before it ends is left to the scanner.
_FOREIGN = re.compile(
    rf"<(nowiki|math|chem|ce|{'|'.join(sorted(LITERAL_TAGS))})\b([^<>]*+)(?<!/)>"
    r"((?:[^<]++|<(?!/?\1\b(?![^<>]*+(?<=/)>)))*+)</\1\s*+>",
    re.IGNORECASE,
)
_CODE = re.compile(r"<code\b[^<>]*+(?<!/)>((?:[^<]++|<(?!/?code\b))*+)</code\s*+>", re.IGNORECASE)
_HEADING = re.compile(HEADING)
_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "[]{}|'<>=_"}
_MAGIC = re.compile(r"__(?:[A-Z]{3,20}|[目無无強强不內内索新隐隱静靜期禁][\u4e00-\u9fff]{1,7})__")
_QUOTES = re.compile("'''''|'''|''")  # of four apostrophes three are the mark


def _foreign(element: re.Match[str]) -> str:
    """The text of an element with its marks as entities, which the last pass but one turns back."""
    whole, (name, attributes, inside) = element[0], element.groups()
    name = name.lower()
    if name in LITERAL_TAGS and " inline" not in attributes:
        return GAP
    if _HEADING.search(inside):
        return whole
    if name == "nowiki" or name in LITERAL_TAGS:
        return inside.translate(_MARKS)
    return formula_text(inside).replace("&", "&amp;").translate(_MARKS) or GAP


def _code(element: re.Match[str]) -> str:
    """Nothing of code over several lines; within a line it is read on as text."""
    return GAP if "\n" in element[1] and not _HEADING.search(element[1]) else element[1]


def _prose(text: str) -> str:
    """``text`` without comments, text that is no wikitext, magic words and quotes."""
    text = _CODE.sub(_code, _FOREIGN.sub(_foreign, without_comments(text)))
    return "".join(_MAGIC.split("".join(_QUOTES.split(text))))


# --- simple marks ---------------------------------------------------------------------------------

# The scanner reads these too and makes the same of them; to replace them first makes it several times faster.
# Left to it is what could make a new mark with its neighbours, as a dash does before a brace. A literal comes
# first in each, before what looks back at it: the search is in C.
_LINK = re.compile(r"\[\[(?<!\[\[\[)(?:[^\[\]{}<>|\n:]++\|)?+(?=[^\s|=-])([^\[\]{}<>|\n:]++)(?<![\s-])\]\]")
_DROPPED_LINK = re.compile(  # of files and categories, without a sentence in them
    rf"\[\[(?<!\[\[\[)(?:{'|'.join(sorted(DROPPED_NAMESPACES))}):[^\[\]{{}}<>\n{SENTENCE}]*+\]\]",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"<ref(?:\s[^<>/\n]*+)?>[^<\n]*+</ref>|<ref\s[^<>/\n]*+/>")
_TEMPLATE = re.compile(r"\{\{(?!\{)(?<!\{\{\{)([^{}]*+)\}\}(?!\}|[ \t:]*(?:\{\||\|\}|=))")
_VARIANT = re.compile(r"-\{(?<!\}-\{)([^{}\[\]<>]*+)\}-")
_ANY_MARK = re.compile(r"[\[\]{}<>|=]|//|\A-|-\Z")
_ROUNDS = 3  # of templates: what is nested deeper is left to the scanner


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
    """``text`` without the links, references, templates and variants that hold no other marks."""

    def template(content: str) -> str | None:
        if not carries_text(content.partition("|")[0]):
            return ""
        return None if "[" in content or "<" in content else template_text(content.split("|"), title)

    def variant(content: str) -> str | None:
        return None if "\n" in content else shown_variant(content, script, protect)

    text = "".join(_LINK.split(text))  # text, label, text, label, ...: each link becomes its label
    text = GAP.join(_DROPPED_LINK.split(text))
    text = GAP.join(_REFERENCE.split(text))
    text = _resolved(_VARIANT, "-{…}-", variant, text)
    for _ in range(_ROUNDS):
        text = _resolved(_TEMPLATE, "{{…}}", template, text)
    return GAP.join(_REFERENCE.split(text))


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


# --- powers ---------------------------------------------------------------------------------------

_SUPERSCRIPT = re.compile(r"<sup>(?:\s*([-+−]?\d{1,4}|[-+−]?n)\s*</sup>)?|</sup>")


def _powers(text: str) -> str:
    """``text`` with powers such as ² and ^10, without the tags of what else is raised."""
    return _SUPERSCRIPT.sub(lambda power: raised(power[1]) if power[1] else "", text)


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
    text = _simple_marks(_prose(text), *settings)
    text = _powers(Scanner("\n" + text, *settings).run())
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
