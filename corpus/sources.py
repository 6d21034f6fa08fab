"""Documents out of files: MediaWiki exports, web archives, JSON lines, plain text and Parquet.

What is yielded is plain text (markup is resolved) that no cleaning rule has touched.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from corpus.mediawiki import check_head, read_pages
from corpus.script import script_of
from corpus.wikitext import wikitext_to_text
from provenance import UserError


@dataclass(frozen=True)
class Document:
    """One document: ``id`` is unique within its file, ``source`` names where it comes from."""

    id: str
    source: str
    title: str
    text: str


_REDIRECT = re.compile(r"\s*#\s*(?:redirect|重定向)", re.IGNORECASE)
_BRACES = re.compile(r"\{[^{}]*\}")
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_HEAD = 1 << 16  # bytes that validate_input looks at
_DAMAGE = (EOFError, OSError, zlib.error)  # what gzip and bz2 raise for cut or altered files

# --- files ----------------------------------------------------------------------------------------


def stem(path: Path) -> str:
    """The file's name without the suffixes that say its format: ``a.b.jsonl.gz`` -> ``a.b``."""
    name = path.name
    for suffix in (".gz", ".bz2", *_READERS):
        name = name.removesuffix(suffix)
    return name or path.name


def _format(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2"):
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in _READERS else None


def expand_inputs(patterns: Sequence[str]) -> list[Path]:
    """The files that ``patterns`` (files, globs, folders) name, each once, folders and globs in sorted order.

    A folder means all files of a known format in it and below.

    Raises:
        UserError: a pattern names nothing, or a file of no known format.
    """
    paths: dict[Path, None] = {}
    for pattern in patterns:
        if Path(pattern).is_dir():
            inside = sorted(path for path in Path(pattern).rglob("*") if path.is_file())
            found = [p for p in inside if _format(p) and not any(x.startswith(".") for x in p.parts[-1:])]
        elif Path(pattern).is_file():
            found = [Path(pattern)]
        else:
            found = [p for p in map(Path, sorted(glob.glob(pattern, recursive=True))) if p.is_file()]
        if not found:
            raise UserError(f"no input: {pattern} names no file; give files, folders or a quoted glob")
        paths |= dict.fromkeys(found)
    for path in paths:
        _reader(path)
    return list(paths)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file's uncompressed bytes. Damage shows while reading: see ``_damaged``."""
    if not path.is_file():
        raise UserError(f"{path} does not exist; give files, folders or a quoted glob")
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    try:
        file: BinaryIO = openers.get(path.suffix.lower(), open)(path, "rb")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error})") from None
    with file:
        yield file


def _damaged(path: Path, error: BaseException, where: str = "") -> UserError:
    state = "is cut off" if isinstance(error, EOFError) else f"is damaged or not what its name says ({error})"
    return UserError(f"{path}{where} {state}; download or make it again")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends; only ``\\n`` ends a line (U+2028 does not); no byte order mark."""
    number = 0
    with _opened(path) as file:
        try:
            for number, raw in enumerate(file, 1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise UserError(
                        f"{path} line {number} is not UTF-8 (at its byte {error.start + 1}); convert the file"
                    ) from None
                yield number, line.rstrip("\r\n")
        except _DAMAGE as error:
            raise _damaged(path, error, f" after line {number}") from None


# --- one reader for each format -------------------------------------------------------------------


def _read_mediawiki(path: Path, text_key: str, counts: Counter[str]) -> Iterator[Document]:
    with _opened(path) as file:
        try:
            for page in read_pages(file, path):
                counts["pages"] += 1
                if page.namespace.strip() != "0":
                    counts["skipped: namespace"] += 1
                elif page.redirect or _REDIRECT.match(page.text):
                    counts["skipped: redirect"] += 1
                elif page.model not in ("wikitext", ""):
                    counts["skipped: not wikitext"] += 1
                else:
                    prose = _BRACES.sub("", page.text)  # -{zh-hans:...;zh-hant:...}- has both scripts
                    script = "hant" if script_of(prose) == "hant" else "hans"
                    text = wikitext_to_text(page.text, title=page.title, script=script)
                    yield Document(f"wiki/{page.id}", "wiki", page.title, text)
        except _DAMAGE as error:
            raise _damaged(path, error) from None


def _is_html(content_type: str, payload: bytes) -> bool:
    if content_type:
        return "html" in content_type.lower()
    return bool(_HTML.search(payload[:2048]))


def _read_warc(path: Path, text_key: str, counts: Counter[str]) -> Iterator[Document]:
    from corpus.warc import read_records  # with the next one half a second, which other formats need not wait
    from corpus.web import html_to_text

    with _opened(path) as file:
        for record in read_records(file, path):
            counts["records"] += 1
            if record.kind != "response":
                counts["skipped: not a response"] += 1
            elif record.status[:1] not in ("2", ""):
                counts["skipped: status"] += 1
            elif not _is_html(record.content_type, record.payload):
                counts["skipped: not HTML"] += 1
            else:
                counts["pages"] += 1
                try:
                    title, text = html_to_text(record.payload, content_type=record.content_type)
                except Exception:  # a page from the open web must not end a build: any failure is counted
                    counts["skipped: failed page"] += 1
                    continue
                yield Document(record.address or f"{stem(path)}/{record.number}", "web", title, text)


def _document(path: Path, number: int, entry: dict[str, object], text: str) -> Document:
    def value(key: str, default: str) -> str:
        given = entry.get(key)
        return default if given is None or given == "" else str(given)

    return Document(
        value("id", f"{stem(path)}/{number}"), value("source", stem(path)), value("title", ""), text
    )


def _read_json_lines(path: Path, text_key: str, counts: Counter[str]) -> Iterator[Document]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path} line {number} is not JSON ({error}); give one object a line") from None
        text = entry.get(text_key) if isinstance(entry, dict) else None
        if not isinstance(text, str):
            raise UserError(f'{path} line {number} has no text under "{text_key}"; give objects that have')
        yield _document(path, number, entry, text)


def _read_text(path: Path, text_key: str, counts: Counter[str]) -> Iterator[Document]:
    paragraphs: list[str] = []
    number = 1
    for _, line in _lines(path):
        if line.strip():
            paragraphs.append(line)
        elif paragraphs:
            yield _document(path, number, {}, "\n".join(paragraphs))
            number += 1
            paragraphs = []
    if paragraphs:
        yield _document(path, number, {}, "\n".join(paragraphs))


def _read_parquet(path: Path, text_key: str, counts: Counter[str]) -> Iterator[Document]:
    import pyarrow
    import pyarrow.parquet

    with _opened(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(file)
            present = table.schema_arrow.names
            if text_key not in present:
                raise UserError(f'{path} has no column "{text_key}" (it has {", ".join(present)})')
            columns = [key for key in ("id", "source", "title", text_key) if key in present]
            number = 0
            for batch in table.iter_batches(batch_size=1024, columns=columns):
                for entry in batch.to_pylist():
                    number += 1
                    text = entry.get(text_key)
                    if text is not None and not isinstance(text, str):
                        raise UserError(f'{path} row {number} has no text under "{text_key}"')
                    yield _document(path, number, entry, text or "")
        except (pyarrow.ArrowException, *_DAMAGE) as error:
            raise _damaged(path, error) from None


Reader = Callable[[Path, str, Counter[str]], Iterator[Document]]
_READERS: dict[str, Reader] = {
    ".xml": _read_mediawiki,
    ".warc": _read_warc,
    ".jsonl": _read_json_lines,
    ".json": _read_json_lines,
    ".txt": _read_text,
    ".parquet": _read_parquet,
}


def _reader(path: Path) -> Reader:
    known = _format(path)
    if known is None:
        raise UserError(f"{path} is of no known format; give {', '.join(_READERS)}, also with .gz or .bz2")
    return _READERS[known]


def read_documents(
    path: Path, *, text_key: str = "text", counts: Counter[str] | None = None
) -> Iterator[Document]:
    """The documents of one file, read as its suffix says, in constant memory.

    Args:
        path: ``.xml`` (MediaWiki export), ``.warc``, ``.jsonl`` or ``.json`` (one object a line), ``.txt``
            (documents divided by blank lines), ``.parquet``; each also with ``.gz`` or ``.bz2``.
        text_key: the key or column of JSON lines and Parquet that holds the text.
        counts: gets what was read and what was skipped, and why.

    Raises:
        UserError: a file that is missing, damaged, cut off, not UTF-8 or not of its format (with the line).
    """
    counts = Counter() if counts is None else counts
    for document in _reader(path)(path, text_key, counts):
        if document.text.strip():
            counts["documents"] += 1
            yield document
        else:
            counts["skipped: empty"] += 1


def validate_input(path: Path) -> None:
    """Read the beginning of a file and check that it is what its suffix says; costs milliseconds.

    Raises:
        UserError: the file is missing, empty, not readable, or of another format.
    """
    reader = _reader(path)
    with _opened(path) as file:
        try:
            head = file.read(_HEAD)
        except _DAMAGE as error:
            raise _damaged(path, error) from None
    if not head:
        raise UserError(f"{path} is empty; leave it out")
    if reader is _read_mediawiki:
        check_head(head, path, whole=len(head) < _HEAD)
    elif reader is _read_warc and not head.startswith(b"WARC/"):
        raise UserError(f"{path} holds no WARC record; give a WARC")
    elif reader is _read_parquet and not head.startswith(b"PAR1"):
        raise UserError(f"{path} is no Parquet file")
    elif reader in (_read_json_lines, _read_text):
        next(reader(path, "text", Counter()), None)
