"""What is read: a part of an input, its documents, and a tally of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from corpus.config import CorpusConfig
from corpus.inputs.compression import SUFFIXES
from corpus.inputs.hub import Dataset

FORMATS = (".xml", ".warc", ".wet", ".html", ".htm", ".jsonl", ".json", ".txt", ".parquet")
MAX_DOCUMENT = 32 * 2**20  # bytes; what is larger is no document, and would take memory without bound
_NAMED = 20  # failed pages that are kept as examples


@dataclass(frozen=True)
class Document:
    """One document: ``id`` is unique within its file, ``source`` names where it comes from."""

    id: str
    source: str
    title: str
    text: str


@dataclass(frozen=True)
class Part:
    """What one reader call reads: a whole input or a part of it.

    Attributes:
        path: a file or a dataset.
        start: where the part begins, and ``end`` where the next one does (None: all that follows): bytes of
            the file, row groups of Parquet, shards of a dataset.
        line: number of the first line.
        number: number of the first document (text, Parquet).
    """

    path: Path | Dataset
    start: int = 0
    end: int | None = None
    line: int = 1
    number: int = 1

    @property
    def file(self) -> Path:
        """The path of an input that is a file."""
        assert isinstance(self.path, Path)
        return self.path

    @property
    def label(self) -> str:
        """What reports call the input."""
        return self.path.name if isinstance(self.path, Path) else str(self.path)


@dataclass
class Tally:
    """What was read and what was skipped, and the first pages that failed (as they were)."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[Document] = field(default_factory=list)

    def skip(self, reason: str) -> None:
        self.counts[f"skipped: {reason}"] += 1

    def fail(self, page: Document) -> None:
        """A page that could not be read must not end a build."""
        self.skip("failed page")
        if len(self.failed) < _NAMED:
            self.failed.append(page)


Reader = Callable[[Part, CorpusConfig, Tally], Iterator[Document]]


def stem(path: Path) -> str:
    """The file's name without the suffixes that say its format: ``a.b.jsonl.gz`` -> ``a.b``."""
    name = path.name
    for suffix in (*SUFFIXES, *reversed(FORMATS)):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name or path.name


def file_format(path: Path) -> str | None:
    """The suffix that says a file's format, without that of its compression; None if it is not known."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in FORMATS else None
