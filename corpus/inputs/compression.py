"""Files as streams of uncompressed bytes, whole or from one place to another; bombs are refused."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import mmap
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from provenance import UserError

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)  # what reading a cut or altered file raises
RATIO = 250  # no text expands so far; bombs of gzip reach 1,030, of the others many thousands
FREE = 256 * 2**20  # bytes that even the smallest file may expand to
_XZ_MEMORY = 256 * 2**20  # bytes: `xz -9` asks for a quarter of it, a header may ask for 4 GiB
_CHUNK = 1 << 18
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")  # head of a bzip2 stream and of its first block


class _Slice(io.RawIOBase):
    """The bytes of a file from ``start`` to ``end`` (None: its end)."""

    def __init__(self, path: Path, start: int, end: int | None) -> None:
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115
        self.file.seek(start)
        self.left = path.stat().st_size - start if end is None else end - start
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(memoryview(buffer)[: min(len(buffer), self.left)]) or 0
        self.left -= count
        self.taken += count
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


class _Streams(io.RawIOBase):
    """Compressed streams that follow one another, as bzip2 and xz files hold them.

    Python's own readers take a damaged second stream for the end, and set xz no limit on memory.
    """

    def __init__(self, file: Any, new: Callable[[], Any]) -> None:
        self.file, self.new = file, new
        self.decoder = new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            data = b""
            if self.decoder.eof:
                data = self.decoder.unused_data.lstrip(b"\0")  # zeros may follow an xz stream
                while not data and (more := self.file.read(_CHUNK)):
                    data = more.lstrip(b"\0")
                if not data:
                    return 0
                self.decoder = self.new()
            elif self.decoder.needs_input and not (data := self.file.read(_CHUNK)):
                raise EOFError("the compressed data ends in the middle")
            if found := self.decoder.decompress(data, len(buffer)):
                buffer[: len(found)] = found
                return len(found)


class _Guard(io.RawIOBase):
    """Uncompressed bytes, as long as their number is in proportion to the compressed ones."""

    def __init__(self, path: Path, compressed: _Slice, plain: Any) -> None:
        self.path, self.compressed, self.plain = path, compressed, plain
        # what is at hand: what precedes a damaged place must come before the error
        self.fill = getattr(plain, "readinto1", plain.readinto)
        self.count = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.count

    def readinto(self, buffer: Any) -> int:
        count: int = self.fill(buffer)
        self.count += count
        if self.count > FREE and self.count > RATIO * self.compressed.taken:
            raise UserError(
                f"{self.path} expands to more than {RATIO} times its size, as no text does; leave it out"
            )
        return count


def _zstd(file: _Slice) -> Any:
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")


_DECODERS: dict[str, Callable[[_Slice], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=cast(BinaryIO, file)),
    ".bz2": lambda file: _Streams(file, bz2.BZ2Decompressor),
    ".xz": lambda file: _Streams(file, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY)),
    ".zst": _zstd,
}


@contextmanager
def opened(path: Path, start: int = 0, end: int | None = None) -> Iterator[BinaryIO]:
    """The uncompressed bytes of a file, or of its part from ``start`` to ``end`` (whole streams).

    Damage shows while reading, as one of ``DAMAGE``: see :func:`damaged`.

    Raises:
        UserError: the file is missing or unreadable; while reading: it expands as no text does.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist; give files, folders or a quoted glob")
    try:
        file = _Slice(path, start, end)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error})") from None
    with file:
        decoder = _DECODERS.get(path.suffix.lower())
        raw = file if decoder is None else _Guard(path, file, decoder(file))
        with io.BufferedReader(raw, _CHUNK) as plain:
            yield plain


def damaged(path: Path, error: BaseException, where: str = "") -> UserError:
    """What to tell the user about an error of ``DAMAGE``."""
    reason = " ".join(str(error).split())[:300]  # pyarrow's may have several lines
    cut = isinstance(error, EOFError) or "Truncated" in reason  # the latter is what pyarrow says
    state = "is cut off" if cut else f"is damaged or not what its name says ({reason})"
    return UserError(f"{path}{where} {state}; download or make it again")


def _is_stream(data: bytes) -> bool:
    try:
        bz2.BZ2Decompressor().decompress(data)
    except OSError:
        return False
    return True


def stream_starts(path: Path, step: int) -> list[int]:
    """Where to cut a ``.bz2`` file of several streams: at the first one behind each ``step`` bytes.

    A multistream dump comes with an index of its streams, which is not needed: the ten bytes that a stream
    begins with are found nowhere else, and the block that follows them has a check sum.
    """
    starts: list[int] = []
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = step
        while match := _STREAM.search(data, at):
            if _is_stream(data[match.start() : match.start() + 2**20]):
                starts.append(match.start())
                at = (match.start() // step + 1) * step
            else:
                at = match.start() + 1
    return starts
