"""The inputs of a build: what the user names, checked, cut into parts, and read as documents."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from corpus.config import CorpusConfig
from corpus.inputs.compression import DAMAGE, SUFFIXES, damaged, opened, stream_starts
from corpus.inputs.documents import FORMATS, MAX_DOCUMENT, Document, Part, Reader, Tally, file_format
from corpus.inputs.formats.lines import HEAD, encoding_of, read_json_lines, read_text
from corpus.inputs.formats.mediawiki import check_head
from corpus.inputs.formats.tables import parquet_file, read_dataset, read_parquet
from corpus.inputs.formats.web import read_html, read_warc
from corpus.inputs.formats.wiki import read_mediawiki
from corpus.inputs.hub import PREFIX, Dataset, find_dataset
from provenance import UserError, sha256_file

READERS: dict[str, Reader] = {
    ".xml": read_mediawiki,
    ".warc": read_warc,
    ".wet": read_warc,
    ".html": read_html,
    ".htm": read_html,
    ".jsonl": read_json_lines,
    ".json": read_json_lines,
    ".txt": read_text,
    ".parquet": read_parquet,
}
PART = 32 * 2**20  # bytes of a file that one rank reads
_RANKS = 256  # small inputs share ranks as soon as there are more of them
_NOT_UTF8 = re.compile("[\ud800-\udfff]")  # as Python spells such bytes in a name
_INDEX = "-multistream-index"  # of a dump: a list of places, not text

# --- what the user names --------------------------------------------------------------------------


def _is_input(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".") and _INDEX not in path.name


def expand_inputs(patterns: Sequence[str]) -> list[Path | Dataset]:
    """The inputs that ``patterns`` name, each once: files, globs, folders and ``datasets:`` ids.

    Folders and globs are taken in sorted order. A folder means all files of a known format in it and below.

    Raises:
        UserError: a pattern names nothing, or a file of no known format, or a dataset that is not there.
    """
    inputs: dict[Path | Dataset, Path | Dataset] = {}  # by their real paths: links may lead in circles
    for pattern in patterns:
        found: list[Path | Dataset]
        if pattern.startswith(PREFIX):
            found = [find_dataset(pattern)]
        elif pattern and Path(pattern).is_dir():
            found = [p for p in sorted(Path(pattern).rglob("*")) if _is_input(p) and file_format(p)]
        elif Path(pattern).is_file():
            found = [Path(pattern)]
        else:
            found = [p for p in map(Path, sorted(glob.glob(pattern, recursive=True))) if _is_input(p)]
        if not found:
            raise UserError(f"no input: {pattern!r} names no file; give files, folders or a quoted glob")
        for path in found:
            _reader(path)
            if _NOT_UTF8.search(str(path)):
                raise UserError(f"the name of {path} is not UTF-8; rename it")
            inputs.setdefault(path.resolve() if isinstance(path, Path) else path, path)
    return list(inputs.values())


def _reader(path: Path | Dataset) -> Reader:
    if isinstance(path, Dataset):
        return read_dataset
    known = file_format(path)
    if known is None:
        formats, packed = ", ".join(FORMATS), ", ".join(SUFFIXES)
        raise UserError(f"{path} is of no known format; give {formats}, also with {packed}")
    return READERS[known]


def input_identity(path: Path | Dataset) -> dict[str, str]:
    """What tells inputs apart: a file's name and the sha256 of its bytes, a dataset's name and revision."""
    if isinstance(path, Dataset):
        return {"name": str(path), "revision": path.revision}
    return {"name": path.name, "sha256": sha256_file(path)}


def validate_input(path: Path | Dataset, config: CorpusConfig | None = None) -> None:
    """Read the beginning of an input and check that it is what its name says; costs milliseconds.

    Raises:
        UserError: the input is missing, empty, not readable, of another format, or lacks the text column.
    """
    config, reader = config or CorpusConfig(), _reader(path)
    if isinstance(path, Dataset):
        next(reader(Part(path), config, Tally()), None)
        return
    known = file_format(path)
    with opened(path) as file:
        try:
            head = file.read(HEAD)
        except DAMAGE as error:
            raise damaged(path, error) from None
    if not head:
        raise UserError(f"{path} is empty; leave it out")
    if known == ".xml":
        check_head(head, path, whole=len(head) < HEAD)
    elif known in (".warc", ".wet") and not head.startswith(b"WARC/"):
        raise UserError(f"{path} holds no WARC record; give a WARC")
    elif known in (".jsonl", ".json", ".txt", ".parquet"):
        next(reader(Part(path), config, Tally()), None)


# --- parts ----------------------------------------------------------------------------------------


def _at_bytes(path: Path, starts: Sequence[int]) -> list[Part]:
    return [Part(path, start, end) for start, end in zip([0, *starts], [*starts, None], strict=True)]


def _at_lines(path: Path, config: CorpusConfig) -> list[Part]:
    """Cut before a line; where blank lines divide documents, only behind one of these."""
    text, blank_divides = file_format(path) == ".txt", config.text_documents == "blank"
    with opened(path) as file:
        encoding = encoding_of(file.read(HEAD), config) or "utf-8"
    parts = [Part(path)]
    offset, line, number = 0, 1, 1
    fresh, blank = True, True  # whether a line begins here, and whether a blank one ends here
    with open(path, "rb") as file:
        while piece := file.readline(MAX_DOCUMENT):
            if fresh:
                if offset - parts[-1].start >= PART and (blank or not (text and blank_divides)):
                    parts[-1] = replace(parts[-1], end=offset)
                    parts.append(Part(path, offset, None, line, number))
                follows, blank = blank, text and not piece.decode(encoding, "replace").strip()
                number += not blank and (follows or not blank_divides)
            fresh = piece.endswith(b"\n")
            line += fresh
            offset += len(piece)
    return parts


def _at_row_groups(path: Path) -> list[Part]:
    parts, size, number = [Part(path)], 0, 1
    with parquet_file(path) as table:
        for group in range(table.num_row_groups):
            if size >= PART:
                parts[-1] = replace(parts[-1], end=group)
                parts.append(Part(path, group, None, number=number))
                size = 0
            facts = table.metadata.row_group(group)
            size, number = size + facts.total_byte_size, number + facts.num_rows
    return parts


def parts_of(path: Path | Dataset, config: CorpusConfig) -> list[Part]:
    """The parts in which an input is read, in order; they depend on the input alone.

    Their documents are those of the whole input, in its order. What cannot be cut is one part: gzip, xz and
    zstandard streams, archives, pages.
    """
    if isinstance(path, Dataset):
        return [Part(path, shard, shard + 1) for shard in range(path.shards)]
    size, known, packing = path.stat().st_size, file_format(path), path.suffix.lower()
    if size > PART and known == ".xml" and packing == ".bz2":
        return _at_bytes(path, stream_starts(path, PART))
    if size > PART and packing not in SUFFIXES:
        if known == ".xml":
            return _at_bytes(path, range(PART, size, PART))
        if known in (".jsonl", ".json") or (known == ".txt" and config.text_documents != "file"):
            return _at_lines(path, config)
        if known == ".parquet":
            return _at_row_groups(path)
    return [Part(path)]


def size_of(part: Part) -> int:
    """About how many bytes ``part`` has."""
    whole = isinstance(part.path, Path) and part.start == 0 and part.end is None
    return part.file.stat().st_size if whole else PART


def plan(inputs: Sequence[Path | Dataset], config: CorpusConfig) -> tuple[tuple[Part, ...], ...]:
    """What each rank of the read step reads. Large inputs take several ranks; many small ones share them."""

    parts = [part for path in inputs for part in parts_of(path, config)]
    share = min(PART, sum(map(size_of, parts)) // _RANKS)
    ranks: list[list[Part]] = []
    filled = 0
    for part in parts:
        if not ranks or filled + size_of(part) > share:
            ranks.append([])
            filled = 0
        ranks[-1].append(part)
        filled += size_of(part)
    return tuple(map(tuple, ranks))


def read_documents(
    source: Path | Dataset | Part, config: CorpusConfig | None = None, tally: Tally | None = None
) -> Iterator[Document]:
    """The documents of an input or of a part of one, in constant memory.

    Args:
        source: ``.xml`` (MediaWiki export), ``.warc``, ``.wet``, ``.html``, ``.jsonl`` or ``.json`` (one
            object a line), ``.txt``, ``.parquet``; each also with ``.gz``, ``.bz2``, ``.xz`` or ``.zst``; a
            dataset.
        config: says the text column, the encoding, how text is divided, what becomes of disambiguation pages.
        tally: gets what was read and what was skipped, and why.

    Raises:
        UserError: an input that is missing, damaged, cut off, not in its encoding or format (with the line),
            or that expands as no text does.
    """
    part = source if isinstance(source, Part) else Part(source)
    tally = Tally() if tally is None else tally
    for document in _reader(part.path)(part, config or CorpusConfig(), tally):
        if not document.text.strip():
            tally.skip("empty")
        elif len(document.text) > MAX_DOCUMENT:
            tally.skip("too large")
        else:
            tally.counts["documents"] += 1
            yield document
