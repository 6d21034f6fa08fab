"""HTML to blocks: pieces of text between block-level tags, with their links and their place in the tree.

The page is read as a stream of tags; no tree is built, so that deep nesting, huge attributes and broken tags
cost no more than their bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from lxml import etree

from corpus.script import HAN

MAX_DEPTH = 64  # elements that are nested deeper count as this deep
MAX_TITLE = 500  # characters
MAX_PIECES = 200_000  # elements, or blocks; a page of more is data
MAX_LINK = 200  # characters; a longer link is one whose end is missing

_INLINE = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big cite code del dfn em font i img ins kbd label mark q ruby s samp small "
        "span strike strong sub sup time tt u var wbr",
    )
)
_NOT_TEXT = frozenset(
    re.findall(
        r"\w+",
        "script style noscript template textarea select button nav header footer aside iframe object svg "
        "video audio canvas math rt rp",
    )
)
_CLAUSE = re.compile("[，。！？；…]|.{12}：$")  # before a short colon stands a label
_CLAUSE_END = re.compile("[!?,;.] ?$")  # as some write Chinese, and code and other languages too
_WIDE = "\u2e80-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_WRAPPED = re.compile(rf"(?<=[{_WIDE}])[ \t\r]*\n\s*(?=[{_WIDE}])")  # browsers show no space there
_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0\u3000]+")


class Block(NamedTuple):
    """Text between two block-level tags, and where in the tree it is."""

    text: str
    linked: int  # characters of it in links
    begins_with_link: bool
    prose: bool  # it holds a clause and is no code
    element: int  # the block-level element that holds it, by its number on the page
    depth: int  # of this element
    low: int  # the least depth between the block before and this one


class Kind(NamedTuple):
    """What brothers have in common."""

    parent: int  # the number of the parent element
    tag: str
    style: str  # the class attribute


@dataclass(frozen=True)
class Page:
    """A page's title, its blocks in their order, and the kind of each element by its number."""

    title: str
    blocks: list[Block]
    kinds: list[Kind]

    def ancestor(self, block: Block, depth: int) -> Kind:
        """The kind of the element at ``depth`` that holds the block."""
        element = block.element
        for _ in range(block.depth - depth):
            element = self.kinds[element].parent
        return self.kinds[element]


def _tidy(text: str) -> str:
    return _SPACE.sub(" ", _WRAPPED.sub("", text)).strip()


class _Reader:
    """A parser target: ``lxml.etree.HTMLParser`` calls ``start``, ``end``, ``data`` and ``close``."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.kinds = [Kind(0, "", "")]
        self.path = [0]  # the numbers of the open block-level elements
        self.low = 1
        self.title = ""
        self.in_title = self.in_pre = self.in_code = self.in_link = False
        self.link_length = 0
        self.skipped = 0  # open elements in the outermost one that is not text
        self._begin()

    def _begin(self) -> None:
        self.parts: list[str] = []
        self.blank = True
        self.linked = 0
        self.begins_with_link = False

    def _finish(self) -> None:
        if max(len(self.kinds), len(self.blocks)) > MAX_PIECES:
            raise ValueError(f"the page has more than {MAX_PIECES} elements or pieces of text")
        if self.parts and (text := _tidy("".join(self.parts))):
            depth = min(len(self.path), MAX_DEPTH)
            clause = _CLAUSE.search(text) or (_CLAUSE_END.search(text) and HAN.search(text))
            prose = bool(clause) and not self.in_code
            block = Block(text, self.linked, self.begins_with_link, prose, self.path[-1], depth, self.low)
            self.blocks.append(block)
            self.low = depth
        self._begin()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.skipped or tag in _NOT_TEXT:
            self.skipped += 1
        elif tag == "a":
            self.in_link = "href" in attributes
            self.link_length = 0
        elif tag == "title":
            self.in_title = not self.title
        elif tag == "code":
            self.in_code |= self.in_pre  # a <pre> without <code> may hold a poem
        elif tag not in _INLINE:
            self._finish()
            self.kinds.append(Kind(self.path[-1], tag, attributes.get("class", "")))
            self.path.append(len(self.kinds) - 1)
            self.in_pre |= tag == "pre"

    def end(self, tag: str) -> None:
        if self.skipped:
            self.skipped -= 1
        elif tag == "a":
            self.in_link = False
        elif tag == "title":
            self.in_title = False
        elif tag not in _INLINE and len(self.path) > 1:
            self._finish()
            self.path.pop()
            self.low = min(self.low, len(self.path))
            if tag == "pre":
                self.in_pre = self.in_code = False

    def data(self, text: str) -> None:
        if self.in_title:
            self.title = (self.title + text)[:MAX_TITLE]
        elif self.in_pre and not self.skipped:
            first, *lines = text.split("\n")
            self._add(first)
            for line in lines:
                self._finish()
                self._add(line)
        elif not self.skipped:
            self._add(text)

    def _add(self, text: str) -> None:
        self.parts.append(text)
        if length := len(text.strip()):
            if self.in_link and self.link_length <= MAX_LINK:
                self.begins_with_link |= self.blank
                self.linked += length
                self.link_length += length
            self.blank = False

    def close(self) -> None:
        self._finish()


def read_page(text: str) -> Page:
    """The blocks of an HTML page, in time and memory linear in its length.

    Raises:
        ValueError: the page has more than ``MAX_PIECES`` elements or blocks.
    """
    reader = _Reader()
    parser = etree.HTMLParser(target=reader, encoding="utf-8", huge_tree=True)
    parser.feed(text.encode("utf-8", "replace"))
    parser.close()
    return Page(_tidy(reader.title), reader.blocks, reader.kinds)
