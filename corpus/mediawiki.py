"""Pages of a MediaWiki XML export, streamed: one page in memory at a time, whatever the size of the dump."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from provenance import UserError

_CHUNK = 1 << 16
_FIELDS = {  # path below <page> -> attribute of Page
    ("title",): "title",
    ("ns",): "namespace",
    ("id",): "id",
    ("revision", "model"): "model",
    ("revision", "text"): "text",
}


@dataclass(slots=True)
class Page:
    """One ``<page>``; of several revisions the last. All values are as written in the export."""

    title: str = ""
    namespace: str = "0"
    id: str = ""
    model: str = "wikitext"
    text: str = ""
    redirect: bool = False


class _Reader:
    """Expat handlers that turn elements into finished pages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path: list[str] = []
        self.page = Page()
        self.pieces: list[str] = []
        self.finished: list[Page] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity

    def _entity(self, *_: object) -> None:
        raise UserError(
            f"{self.name} line {self.parser.CurrentLineNumber} declares an XML entity, which no MediaWiki "
            "export does; give an unaltered dump"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.path and tag != "mediawiki":
            raise UserError(
                f"{self.name} is XML but no MediaWiki export (its root is <{tag}>, not <mediawiki>); "
                "give a pages-articles dump"
            )
        self.path.append(tag)
        if len(self.path) == 2 and tag == "page":
            self.page = Page()
        elif self.path[1:2] == ["page"]:
            if tuple(self.path[2:]) in _FIELDS:
                self.pieces = []
                self.parser.CharacterDataHandler = self.pieces.append
            elif tag == "redirect" and len(self.path) == 3:
                self.page.redirect = True

    def _end(self, tag: str) -> None:
        self.parser.CharacterDataHandler = None
        if self.path[1:2] == ["page"]:
            if field := _FIELDS.get(tuple(self.path[2:])):
                setattr(self.page, field, "".join(self.pieces))
            elif len(self.path) == 2:
                self.finished.append(self.page)
        self.path.pop()

    def feed(self, data: bytes, last: bool) -> list[Page]:
        """Parse more bytes; the pages they finish."""
        try:
            self.parser.Parse(data, last)
        except expat.ExpatError as error:
            where, reason = f"{self.name} line {error.lineno}", expat.errors.messages[error.code]
            if last and self.path:
                raise UserError(f"{where} ends in the middle ({reason}); download it again") from None
            raise UserError(f"{where} is not XML ({reason}); give a MediaWiki export") from None
        pages, self.finished = self.finished, []
        return pages


def check_head(head: bytes, name: str | Path, *, whole: bool) -> None:
    """Raise the :class:`UserError` that reading a file with these first bytes (all, if whole) would raise."""
    _Reader(str(name)).feed(head, last=whole)


def read_pages(file: BinaryIO, name: str | Path) -> Iterator[Page]:
    """All pages of an export, in its order.

    Args:
        file: the export's uncompressed bytes.
        name: what errors call it.

    Raises:
        UserError: not XML, XML of something else, cut off, or with entity declarations.
    """
    reader = _Reader(str(name))
    while data := file.read(_CHUNK):
        yield from reader.feed(data, last=False)
    yield from reader.feed(b"", last=True)
