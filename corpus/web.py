"""Web pages to plain text: the encoding found and checked, the main text by trafilatura, no navigation."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import trafilatura
from lxml import etree
from lxml.html import HtmlElement

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("htmldate").setLevel(logging.CRITICAL)

MAX_BYTES = 8 * 2**20  # larger pages are data, and extraction takes minutes

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
# Labels that mean a superset of what they say, as browsers read them (WHATWG Encoding Standard).
_ALIASES = {
    **dict.fromkeys(("gb2312", "gbk", "gb-2312", "gb_2312-80", "x-gbk", "cp936", "gb18030"), "gb18030"),
    **dict.fromkeys(("big5", "big-5", "big5-hkscs", "cn-big5", "x-x-big5", "cp950"), "big5hkscs"),
    **dict.fromkeys(("utf8", "utf-8", "unicode-1-1-utf-8"), "utf-8"),
}
# Servers send these by default, whatever the page is in.
_MEANINGLESS = {"iso-8859-1", "iso8859-1", "latin1", "latin-1", "windows-1252", "cp1252", "us-ascii", "ascii"}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# The most frequent characters of Chinese text in both scripts: about a third of it, and next to nothing of
# wrongly decoded text.
_FREQUENT = frozenset(
    "的一是不了在人有我他这這个個们們来來上到时時大地为為子中你说說生国國年着就那和要她出也得里後后自以会會家"
    "可下而过過天去能对對小多然于於心学學么麼之都好看起发發当當没沒成只如事把还還用第样樣道想作种種开開美总總"
    "从從无無情己面最女但现現前些所同日手又行意动動方期它头頭经經长長儿兒回位分爱愛老因很给給名法间間知世什两"
    "兩次使身者被高已亲親其进進此话話常与與，。、：“”「」"
)


def _labels(payload: bytes, content_type: str | None) -> Iterator[str]:
    """The encodings the HTTP header and the page's own head name, as Python names, in this order."""
    found = [match[1] for match in _CHARSET.finditer(content_type or "")]
    found += [match[1].decode("ascii", "replace") for match in _META.finditer(payload[:4096])]
    for label in map(str.lower, found):
        if label not in _MEANINGLESS:
            yield _ALIASES.get(label, label)


def _quality(text: str) -> float:
    """Between -1 and about 0.4: frequent characters' share of the non-ASCII ones, less what is broken."""
    foreign = [c for c in text if c > "\x7f"]
    if not foreign:
        return 0.0
    broken = text.count("\ufffd")
    return (sum(c in _FREQUENT for c in foreign) - 10 * broken) / len(foreign)


def decode(payload: bytes, content_type: str | None = None) -> str:
    """A page's bytes as text: by its byte order mark, else UTF-8 where that is valid, else the best reading.

    Labels in the HTTP header and in the page are checked: one loses to a reading that is clearly better
    Chinese (a Big5 page that calls itself GBK, say). ``gb2312`` and ``gbk`` mean GB 18030.

    Raises:
        UnicodeError: more than a hundredth of the page cannot be read in any encoding tried.
    """
    for mark, encoding in _BOMS:
        if payload.startswith(mark):
            return payload[len(mark) :].decode(encoding, "replace")
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError:
        pass
    readings: list[tuple[float, str]] = []
    labels = list(_labels(payload, content_type))
    for encoding in dict.fromkeys([*labels, "utf-8", "gb18030", "big5hkscs"]):
        try:
            text = payload.decode(encoding, "replace")
        except (LookupError, ValueError):  # unknown labels, and codecs that are not text encodings
            continue
        bonus = 0.1 if encoding in labels else 0.0
        readings.append((_quality(text) + bonus, text))
    text = max(readings, key=lambda reading: reading[0])[1]
    if text.count("\ufffd") > 0.01 * len(text):
        raise UnicodeError("the page is in no encoding we know")
    return text


_CLAUSE = re.compile("[。！？；，…]|[!?] ?$")
_SENTENCE = re.compile("[。！？…]|[!?] ?$")
_SPACE = re.compile(r"[ \t\r\f\v\u00a0\u3000]+")
_BULLET = re.compile(r"^[-•·*|] ?")
_LONG = 40  # a line of this length is no menu entry
_MENU = 6  # this many short lines without punctuation in a row are one


def _main_lines(text: str | None) -> list[str]:
    """The lines of an extraction without menus: short lines say something only among sentences."""
    kept: list[str] = []
    short: list[str] = []
    for raw in (text or "").split("\n"):
        line = _SPACE.sub(" ", raw).strip()
        content = _BULLET.sub("", line).strip()
        if not content or content.endswith(">"):
            continue
        if content != line and "。" not in content:  # a list item without a full sentence is a menu entry
            continue
        if _CLAUSE.search(content) or len(content) >= _LONG:
            if kept and len(short) < _MENU:
                kept += short
            short = []
            kept.append(content)
        else:
            short.append(content)
    last = max((i for i, line in enumerate(kept) if _SENTENCE.search(line)), default=len(kept))
    return kept[: last + 1]


def _prose(lines: list[str]) -> int:
    """Characters in lines that hold a full sentence."""
    return sum(len(line) for line in lines if "。" in line)


_INLINE = frozenset(
    re.findall(r"\w+", "a abbr b big cite em font i ins mark q s small span strong sub sup u")
)
_NOT_TEXT = re.findall(
    r"\w+", "script style noscript template textarea select button nav header footer aside iframe title"
)


def _blocks(tree: HtmlElement) -> list[str]:
    """All blocks with a full sentence that are not mostly links: for pages whose text is in no paragraphs."""
    for element in list(tree.iter(*_NOT_TEXT)):
        element.drop_tree()
    found: list[str] = []
    text: list[str] = []
    linked = 0

    def close() -> None:
        nonlocal linked
        block = _SPACE.sub(" ", "".join(text).replace("\n", " ")).strip()
        if "。" in block and linked < 0.3 * len(block):
            found.append(block)
        text.clear()
        linked = 0

    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if not isinstance(element.tag, str):
            if event == "end":
                text.append(element.tail or "")
            continue
        if element.tag not in _INLINE:
            close()
        if event == "start":
            text.append(element.text or "")
        else:
            if element.tag == "a":
                linked += len(element.text_content().strip())
            text.append(element.tail or "")
    close()
    return found


def _title(tree: HtmlElement) -> str:
    title = tree.findtext(".//title") or tree.findtext(".//h1") or ""
    return _SPACE.sub(" ", title.replace("\n", " ")).strip()


def html_to_text(payload: bytes, *, content_type: str | None = None) -> tuple[str, str]:
    """Title and main text of an HTML page, one paragraph a line; the text is empty where none was found.

    Two readings by trafilatura and a plain one; the more careful, unless it lost most of what the next keeps.

    Raises:
        ValueError: the page cannot be decoded (UnicodeError), is larger than ``MAX_BYTES`` or is no HTML.
    """
    if len(payload) > MAX_BYTES:
        raise ValueError(f"the page has {len(payload)} bytes, more than {MAX_BYTES}")
    page = decode(payload, content_type)

    def parse() -> HtmlElement:
        tree = trafilatura.load_html(page)  # extraction changes the tree, so that each reading needs its own
        if tree is None:
            raise ValueError("the page is not HTML")
        for sibling in list(tree.itersiblings()):  # a page with </html> in its middle parses to two roots
            tree.append(sibling)
        for element in tree.xpath('//*[contains(@style, "visibility")]'):  # shown by a script once loaded
            del element.attrib["style"]
        return tree

    def read(precise: bool) -> list[str]:
        text = trafilatura.extract(
            parse(), include_comments=False, include_tables=False, favor_precision=precise
        )
        return _main_lines(text)

    tree = parse()
    title = _title(tree)
    careful, generous, plain = read(True), read(False), _blocks(tree)
    lines = careful if _prose(careful) >= 0.6 * _prose(generous) else generous
    if _prose(lines) < 0.4 * _prose(plain):
        lines = plain
    return title, "\n".join(lines)
