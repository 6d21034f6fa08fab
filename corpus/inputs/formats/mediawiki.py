"""Pages of a MediaWiki XML export, streamed: one page in memory at a time, whatever the size of the dump.

A large export is read in parts. Each part has the pages whose ``<page>`` lies in its bytes; in an export that
tag is never text, since ``<`` is escaped there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from corpus.inputs.compression import opened
from provenance import UserError

MAX_PAGE = 32 * 2**20  # bytes; the software's own limit on a page is 2 MiB
_MAX_DEPTH = 100
_MAX_TAG = 2**20  # bytes
_CHUNK = 1 << 18
_PAGE, _BEGIN, _END = b"<page>", b"<mediawiki>", b"</mediawiki>"
_CUT = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
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
    oversized: bool = False  # larger than MAX_PAGE: what it held is gone


class _Reader:
    """Expat handlers that turn elements into finished pages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path: list[str] = []
        self.page = Page()
        self.pieces: list[str] = []
        self.finished: list[Page] = []
        self.fed = 0
        self.size = 0  # bytes since the page began
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.buffer_size = _CHUNK
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
        if len(self.path) > _MAX_DEPTH:
            raise UserError(
                f"{self.name} line {self.parser.CurrentLineNumber} nests elements over {_MAX_DEPTH} deep, "
                "which no MediaWiki export does; give an unaltered dump"
            )
        if len(self.path) == 2 and tag == "page":
            self.page, self.size = Page(), 0
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
            if last and self.path and error.code in _CUT:
                raise UserError(f"{where} ends in the middle ({reason}); download it again") from None
            raise UserError(f"{where} is not XML ({reason}); give a MediaWiki export") from None
        except (LookupError, ValueError) as error:
            raise UserError(
                f"{self.name} says it is in another encoding ({error}); give an export in UTF-8, as all are"
            ) from None
        self.fed += len(data)
        self.size += len(data)
        if self.size > MAX_PAGE and len(self.path) > 1:
            self.pieces.clear()
            self.page = Page(namespace=self.page.namespace, id=self.page.id, oversized=True)
        if not last and self.fed - self.parser.CurrentByteIndex > _MAX_TAG:
            line = self.parser.CurrentLineNumber
            raise UserError(f"{self.name} line {line} has a tag that does not end; give an unaltered dump")
        pages, self.finished = self.finished, []
        return pages


def check_head(head: bytes, name: str | Path, *, whole: bool) -> None:
    """Raise the :class:`UserError` that reading a file with these first bytes (all, if whole) would raise."""
    _Reader(str(name)).feed(head, last=whole)


def read_pages(chunks: Iterable[bytes], name: str | Path) -> Iterator[Page]:
    """All pages of an export, in its order.

    Args:
        chunks: the export's uncompressed bytes, as :func:`chunks_of` gives them.
        name: what errors call it.

    Raises:
        UserError: not XML, XML of something else, cut off, or with entity declarations.
    """
    reader = _Reader(str(name))
    for data in chunks:
        yield from reader.feed(data, last=False)
    yield from reader.feed(b"", last=True)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while data := file.read(_CHUNK):
        yield data


def _from_page(file: BinaryIO) -> Generator[bytes, None, bytes | None]:
    """The first ``<page>`` and what follows; without one nothing, and the last bytes are returned."""
    held = b""
    for data in _chunks(file):
        held = held[1 - len(_PAGE) :] + data
        if (found := held.find(_PAGE)) >= 0:
            yield _BEGIN + held[found:]
            yield from _chunks(file)
            return None
    return held[1 - len(_PAGE) :]


def _before_page(file: BinaryIO, held: bytes) -> Generator[bytes, None, bool]:
    """``held`` and what precedes the first ``<page>``; returns whether there is one."""
    for data in _chunks(file):
        held += data
        if (found := held.find(_PAGE)) >= 0:
            yield held[:found]
            return True
        yield held[: 1 - len(_PAGE)]
        held = held[1 - len(_PAGE) :]
    yield held
    return False


def chunks_of(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The uncompressed bytes of an export, or an export of those of its pages that begin in a part of it.

    A page begins where the first byte of its ``<page>`` is, and may end in a later part.

    Args:
        path: the export.
        start: first byte of the part in the file; for ``.bz2`` that of a stream.
        end: first byte of the next part, None for the last.
    """
    held: bytes | None = None  # where no page has begun: the last bytes of this part
    with opened(path, start, end) as file:
        if start:
            held = yield from _from_page(file)
        else:
            yield from _chunks(file)
    if end is None:
        if held is not None:
            yield _BEGIN + _END
        return
    with opened(path, end) as file:
        rest = b""
        if held is not None:
            _, begun, rest = (held + file.read(len(_PAGE) - 1)).partition(_PAGE)
            yield _BEGIN + begun
            if not begun:
                yield _END
                return
        if (yield from _before_page(file, rest)):
            yield _END
