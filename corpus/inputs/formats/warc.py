"""Responses and extracted texts of a web archive (WARC, WET), streamed, with cut archives found out."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeadersParser

from corpus.inputs.compression import DAMAGE
from provenance import UserError

MAX_RECORD = 32 * 2**20  # bytes that one record may hold, and may expand to
_CHUNK = 1 << 20
_LENGTH = re.compile("[0-9]{1,18}")
_HTTP = StatusAndHeadersParser(["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/2.0"])


@dataclass(frozen=True)
class Record:
    """One record; ``address`` and below are there for conversions and for responses that could be parsed."""

    number: int  # from 1, in the order of the archive
    kind: str  # the WARC-Type
    address: str = ""
    status: str = ""
    content_type: str = ""
    payload: bytes = b""  # without transfer and content encoding
    oversized: bool = False  # larger than MAX_RECORD: the payload is left out


class _CutError(Exception):
    pass


class _Stream:
    """What warcio needs of a file; ``read1`` gives all whole records before the place where a file is cut."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        try:
            return self.file.read1(size)
        except EOFError:  # warcio would take this for the end of the archive
            raise _CutError from None


def _response(number: int, record: Any, block: bytes) -> Record:
    address = record.rec_headers.get_header("WARC-Target-URI") or ""
    try:
        stream = io.BytesIO(block)
        headers = _HTTP.parse(stream)
        page = ArcWarcRecord(
            "warc", "response", record.rec_headers, stream, headers, None, len(block) - stream.tell()
        )
        payload = _read(page.content_stream(), MAX_RECORD + 1)
    except Exception:  # whatever a server sent, it must not end a build
        return Record(number, "response", address)
    content_type = headers.get_header("content-type") or ""
    if len(payload) > MAX_RECORD:
        return Record(number, "response", address, oversized=True)
    return Record(number, "response", address, headers.get_statuscode(), content_type, payload)


def _read(stream: Any, size: int) -> bytes:
    """At most ``size`` bytes, as far as the stream has them."""
    pieces = []
    while size > 0 and (piece := stream.read(min(size, _CHUNK))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _rest(stream: Any) -> int:
    """The number of bytes left, which are read and forgotten."""
    count = 0
    while piece := stream.read(_CHUNK):
        count += len(piece)
    return count


def read_records(file: Any, name: str | Path) -> Iterator[Record]:
    """All records of an archive, one in memory at a time.

    warcio takes a cut archive for a whole one. So gzip is undone (and its check sums checked) before it, and
    each record's declared length is compared with what is there.

    Args:
        file: the archive's uncompressed bytes, a buffered binary file.
        name: what errors call it.

    Raises:
        UserError: not a WARC, or cut in the middle of a record (its number is named).
    """
    number = 0
    try:
        for number, record in enumerate(ArchiveIterator(_Stream(file), no_record_parse=True), 1):
            block = _read(record.raw_stream, MAX_RECORD)
            length = len(block) + _rest(record.raw_stream)
            declared = record.rec_headers.get_header("Content-Length") or ""  # a cut header may lack it
            if not _LENGTH.fullmatch(declared.strip()) or length < int(declared):
                number -= 1
                raise _CutError
            if length > len(block):
                yield Record(number, record.rec_type or "", oversized=True)
            elif record.rec_type == "response":
                yield _response(number, record, block)
            elif record.rec_type == "conversion":
                address, kind = (
                    record.rec_headers.get_header(name) or "" for name in ("WARC-Target-URI", "Content-Type")
                )
                yield Record(number, "conversion", address, "", kind, block)
            else:
                yield Record(number, record.rec_type or "")
    except _CutError:
        raise UserError(f"{name} record {number + 1} is cut off; download or make it again") from None
    except UserError:
        raise
    except DAMAGE as error:
        raise UserError(f"{name} record {number + 1} is damaged ({error}); download it again") from None
    except Exception as error:  # what is not a WARC makes warcio raise anything
        reason = str(error).strip().split("\n")[0][:100]
        raise UserError(f"{name} record {number + 1} is no WARC record ({reason}); give a WARC") from None
    if number == 0:
        raise UserError(f"{name} holds no WARC record; give a WARC")
