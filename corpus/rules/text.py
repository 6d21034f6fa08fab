"""Cleaning rules over a whole text: line ends, wrapped lines, characters, HTML and code that was left in.

Each takes a text and the configuration and returns the text to go on with. See :mod:`corpus.rules.order`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from corpus.config import CorpusConfig
from corpus.rules.gates import LINE_END, Texts, needs, where
from corpus.script import count_han

_ITEM = re.compile(
    r"\s*(?:[（(]?[一二三四五六七八九十○〇百]+[）)、.]|[（(]?\d+(?:[）).]|、(?!\d))|第\s?[一二三四五六七八九十百\d]+\s?[條条章節节])"
)
LEAST_WRAP = 40  # columns; narrower lines are verse or lists, not wrapped paragraphs
_EAST_ASIAN = re.compile("[\u3001-\u9fff\uff00-\uffef]")
# The indented text of an item, which is neither an item itself nor code.
_HANGING = re.compile(rf"  (?!{_ITEM.pattern}|\s*[-*+•>|`#$]).*{_EAST_ASIAN.pattern}")
_STOPS = ("。", "！", "？", "：")  # end a paragraph, however wide its last line is


def _has_lines(texts: Texts, config: CorpusConfig) -> NDArray[np.bool_]:
    return texts.count(texts.codes == LINE_END) > 4


def _margin(widths: Iterable[int]) -> int:
    """The right edge that most lines come within four columns of, beyond LEAST_WRAP; 0 if there is none."""
    many = Counter(width for width in widths if width >= LEAST_WRAP)
    return max(many, key=lambda w: (sum(many[w - i] for i in range(4)), w), default=0)


def _full_lines(widths: list[int], margin: int) -> list[bool]:
    return [margin - 3 <= width <= margin for width in widths]


def _full_items(lines: list[str], widths: list[int]) -> list[bool]:
    """Which lines of list items go on in the next line, which is indented and no item of its own."""
    hangs, in_item = [], False
    for line, after in pairwise([*lines, ""]):
        in_item = bool(_ITEM.match(line)) or (in_item and line.startswith("  "))
        goes_on = in_item and _HANGING.match(after) and _EAST_ASIAN.search(line) and not line.endswith(_STOPS)
        hangs.append(bool(goes_on))
    margin = _margin(width for width, hang in zip(widths, hangs, strict=True) if hang)
    full = _full_lines(widths, margin)
    return [hang and wide for hang, wide in zip(hangs, full, strict=True)]


def _joins_without_space(before: str, after: str) -> bool:
    """Where a line may break anywhere, it breaks numbers; other Latin text is broken at its spaces."""
    last, first = before[-1:], after[:1]
    return not (last.isascii() and last.isalnum() and first.isascii()) or (last.isdigit() and first.isdigit())


@where(_has_lines)
def wrapped_lines(text: str, config: CorpusConfig) -> str:
    """Paragraphs broken at a fixed column become one line again; items of a list stay on lines of their own.

    A text counts as wrapped when a quarter of its lines end within four columns of each other, beyond
    column 40, and hardly any goes further. In any other text list items with a hanging indent are joined.
    """
    if text.count("\n") < 4:
        return text
    lines = [line.rstrip() for line in text.split("\n")]  # of any \r too
    # UTF-8 has one byte for what is one column wide and three for what is two
    sizes = map(len, "\n".join(lines).encode().split(b"\n"))
    widths = [(len(line) + size) // 2 for line, size in zip(lines, sizes, strict=True)]
    margin = _margin(widths)
    full = _full_lines(widths, margin)
    beyond = sum(width > margin for width in widths)
    if sum(full) < max(4, 0.25 * sum(map(bool, widths))) or beyond > 0.05 * len(lines):
        full = _full_items(lines, widths)
        if not any(full):
            return text
    joined = [lines[0]]
    for before, line, follows_full in zip(lines, lines[1:], full, strict=False):
        if follows_full and line and not _ITEM.match(line):
            after = line.lstrip()
            joined += ["" if _joins_without_space(before, after) else " ", after]
        else:
            joined += ["\n", line]
    return "".join(joined)


_BROKEN_DECIMAL = re.compile(r"(?<=\d\.)\n(?=\d+[^\d.、)）])")


@needs(r"\.", r"\n")
def broken_decimals(text: str, config: CorpusConfig) -> str:
    """Numbers that a careless sentence splitter cut at their point (``3.`` / ``5 元``) become whole."""
    return _BROKEN_DECIMAL.sub("", text) if ".\n" in text else text


@needs(r"\r")
def line_ends(text: str, config: CorpusConfig) -> str:
    """``\\r\\n`` and ``\\r`` are line ends; U+2028, U+0085 and their like are not."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


# Without what neither has another form nor takes part in one: most of Latin, Han, and their punctuation.
@needs("[^\0-\u02ff\u2010-\u205f\u2460-\u25ff\u3001-\u3029\u3400-\u9fff\uff00-\uffef]")
def normal_form_c(text: str, config: CorpusConfig) -> str:
    """NFC: composes accents, unifies compatibility ideographs. NFKC would turn ，％① into , % 1."""
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


_WIDE = "".join(chr(c) for a, z in ("０９", "ＡＺ", "ａｚ") for c in range(ord(a), ord(z) + 1))
_WIDE_TABLE = {ord(c): ord(c) - 0xFEE0 for c in _WIDE}
_WIDE_FOUND = re.compile(f"[{_WIDE}]")


@needs(f"[{_WIDE}]")
def wide_letters(text: str, config: CorpusConfig) -> str:
    """Full-width Latin letters and digits become ASCII; full-width punctuation is Chinese and stays."""
    return text.translate(_WIDE_TABLE) if _WIDE_FOUND.search(text) else text


_SEVERAL_SPACES = re.compile("  +")
_SPACES = {"Zs", "Zl", "Zp"}
_HAN_PLANES = range(0x20000, 0x40000)  # newer Han there has no category in an older Python


def _shown_as(character: str) -> str:
    """What a character that is not printable becomes: a space, nothing, or itself."""
    if character in "\n\r" or ord(character) in _HAN_PLANES:
        return character
    return " " if character in "\t\x85" or unicodedata.category(character) in _SPACES else ""


_INVISIBLE = "".join(c for c in map(chr, range(0x10000)) if not c.isprintable() and c != "\n")


@needs(f"[ \ufffd{re.escape(_INVISIBLE)}]")
def invisible_characters(text: str, config: CorpusConfig) -> str:
    """Format, private, unassigned, control characters and U+FFFD go; spaces of any kind become one."""
    if not text.replace("\n", "").isprintable():
        for character in {c for c in set(text) if not c.isprintable()}:
            text = text.replace(character, _shown_as(character))
    if "\ufffd" in text:
        text = text.replace("\ufffd", "")
    return _SEVERAL_SPACES.sub(" ", text) if "  " in text else text


_BLOCK_TAGS = (
    "blockquote br center dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre section table tbody td th thead tr ul"
)
_INLINE_TAGS = (
    "a abbr b big cite code del em font i iframe img ins kbd mark nobr q rp rt ruby s samp script small span "
    "strike strong style sub sup tt u var video"
)
_ATTRIBUTE = r"""\s+[a-zA-Z][\w:.-]*(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+))?"""
_TAG = re.compile(
    rf"</?(?:(?P<block>{'|'.join(_BLOCK_TAGS.split())})|{'|'.join(_INLINE_TAGS.split())})"
    rf"(?:{_ATTRIBUTE}){{0,20}}\s*/?>",
    re.IGNORECASE,
)
_TAG_WITH_CONTENT = re.compile(
    r"<(script|style|rt|rp)\b[^<>]*>.*?</\1>|<!--.*?-->", re.IGNORECASE | re.DOTALL
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")


@needs("[<&]")
def html_remains(text: str, config: CorpusConfig) -> str:
    """HTML tags go (with the content of scripts, styles and ruby readings), those of blocks leave a line end;
    entities become characters."""
    if "<" in text:
        text = _TAG.sub(lambda tag: "\n" if tag["block"] else "", _TAG_WITH_CONTENT.sub("", text))
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


_FENCE = re.compile(r"^[ >]*(```|~~~).*?(?:^[ >]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)


@needs("[`~]", "[`~]")
def code_fences(text: str, config: CorpusConfig) -> str:
    """Markdown code blocks between fences go; an unclosed fence ends with the text only if little follows."""
    if "```" not in text and "~~~" not in text:
        return text
    return _FENCE.sub(lambda m: "" if count_han(m[0]) < 0.3 * len(m[0]) else m[0].replace(m[1], ""), text)
