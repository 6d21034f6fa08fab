"""Web pages to plain text: the main text, without menus, share bars, comments and other lists of links.

Sentences are worth their length; links, labels and every step through the tree from one block of text to the
next cost. The main text is the run of blocks that is worth most: the maximum subarray of these values, found
in one pass (Kadane's algorithm). What lies outside the element that holds nearly all of the run is left off
(disclaimers, calls to subscribe), and neighbours of the same kind as its paragraphs are let in (a signature,
a date). ``docs/corpus.md`` compares the result with those of extraction libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise

from corpus.inputs.encoding import decode
from corpus.script import count_han
from corpus.web.blocks import Block, Page, read_page

MAX_BYTES = 8 * 2**20  # larger pages are data

# Costs in characters of prose. Other values near these give the same texts.
STEP = 12  # for each element between two blocks, beyond what two paragraphs side by side need
LINK = 3  # for each character in a link
LABEL = 10  # for each block without a clause
HEADLINE = 8  # characters; a block that begins with links of this length is a headline with a summary
MOST = 0.8  # the element that holds this share of a run's Han characters is the article

_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META_AREA = 4096  # bytes at the beginning of a page
_PARTS = ("p", "pre", "ul", "ol", "dl", "blockquote")  # never an article of their own
_INSERTS = ("pre", "td", "th")
_SEPARATOR = re.compile(r" ?(?:[-_|:,·–—：，]|$)")  # before the name of the site or the section


def charset_labels(payload: bytes, content_type: str | None) -> list[str]:
    """The encodings that the HTTP header and the page's own head name, in this order."""
    found = [match[1] for match in _CHARSET.finditer(content_type or "")]
    return found + [match[1].decode("ascii", "replace") for match in _META.finditer(payload[:_META_AREA])]


def _value(block: Block, title: str) -> int:
    """What a block adds to a run: its length if it is prose, less what its links cost."""
    teaser = block.begins_with_link and block.linked >= HEADLINE
    if block.prose and not teaser and not title.startswith(block.text):
        return len(block.text) - LINK * block.linked
    return -LABEL - LINK * block.linked


def _insert(page: Page, block: Block) -> bool:
    """Whether a block is a line of code or a cell of a table: it says nothing about where the text ends."""
    return not block.prose and not block.linked and page.kinds[block.element].tag in _INSERTS


def _best_run(page: Page) -> tuple[int, int]:
    """Start and end of the run of blocks that is worth most; (0, 0) if none is worth anything."""
    best, most = (0, 0), 0
    start, worth, depth, low = 0, 0, 0, 0
    for i, block in enumerate(page.blocks):
        low = min(low, block.low)
        if _insert(page, block):
            continue
        worth -= STEP * max(0, depth + block.depth - 2 * low - 2)
        depth = low = block.depth
        if worth <= 0:
            start, worth = i, 0
        worth += _value(block, page.title)
        if worth > most:
            best, most = (start, i + 1), worth
    return best


def _inmost(page: Page, start: int, stop: int) -> tuple[int, int]:
    """The part of a run in the inmost element that holds ``MOST`` of its Han characters.

    One of several of a kind (a post in a thread) is not entered, nor is a paragraph or a list.
    """
    first, blocks = start, page.blocks
    han = [0, *accumulate(count_han(block.text) for block in blocks[start:stop])]

    def size(part: tuple[int, int]) -> int:
        return han[part[1] - first] - han[part[0] - first]

    while stop - start > 1:
        level = min(block.low for block in blocks[start + 1 : stop])
        cuts = [i for i in range(start + 1, stop) if blocks[i].low == level]
        parts = list(pairwise([start, *cuts, stop]))
        largest = max(parts, key=size)
        kinds = [page.ancestor(blocks[part[0]], level + 1) for part in parts]
        inner = kinds[parts.index(largest)]
        if size(largest) < MOST * han[-1] or kinds.count(inner) > 1 or inner.tag in _PARTS:
            break
        start, stop = largest
    return start, stop


def _with_kin(page: Page, start: int, stop: int) -> list[int]:
    """The numbers of a run's blocks and of its kin: those in an element of the run, or in a brother of one.

    Beyond a gap (an advert, a share bar) kin begin with prose, and the gap stays out.
    """
    blocks, kinds = page.blocks, page.kinds
    family = {kinds[block.element] for block in blocks[start:stop]}
    level = min((block.low for block in blocks[start + 1 : stop]), default=0)
    if stop - start == 1:
        level = blocks[start].depth - 1

    def kin(others: Iterable[int], step: int) -> Iterator[int]:
        adjacent = True
        for i in others:
            if blocks[i + step].low < level:  # the element that holds the run ends
                return
            block = blocks[i]
            related = kinds[block.element] in family and not _mostly_links(block)
            adjacent = related and (adjacent or block.prose)
            if adjacent:
                yield i

    if start == stop:
        return []
    before = [*kin(range(start - 1, -1, -1), 1)][::-1]
    return [*before, *range(start, stop), *kin(range(stop, len(blocks)), 0)]


def _mostly_links(block: Block) -> bool:
    return block.linked > 0.5 * len(block.text)


def _lines(page: Page, numbers: Iterable[int]) -> Iterator[str]:
    """The text of blocks without links, what announces them, and cells of tables that hold no clause."""
    for i in numbers:
        block, after = page.blocks[i], page.blocks[i + 1 : i + 2]
        announces = block.text.endswith(("：", ":")) and any(map(_mostly_links, after))
        cell = _insert(page, block) and page.kinds[block.element].tag != "pre"
        if not (_mostly_links(block) or announces or cell):
            yield block.text


def _headline(page: Page) -> str:
    """The longest block that begins the title and is followed by a separator there, else the title."""
    headlines = [
        block.text
        for block in page.blocks
        if page.title.startswith(block.text)
        and 3 * len(block.text) > len(page.title)
        and _SEPARATOR.match(page.title, len(block.text))
    ]
    return max(headlines, key=len, default=page.title)


def html_to_text(payload: bytes, *, content_type: str | None = None) -> tuple[str, str]:
    """Title and main text of an HTML page, one paragraph a line; the text is empty where none was found.

    The title is the headline on the page where that begins its ``<title>``, which often names the site too.

    Raises:
        ValueError: the page cannot be decoded (UnicodeError),
            is larger than ``MAX_BYTES`` or in more than ``MAX_PIECES`` pieces.
    """
    if len(payload) > MAX_BYTES:
        raise ValueError(f"the page has {len(payload)} bytes, more than {MAX_BYTES}")
    page = read_page(decode(payload, *charset_labels(payload, content_type)))
    article = _with_kin(page, *_inmost(page, *_best_run(page)))
    return _headline(page), "\n".join(_lines(page, article))
