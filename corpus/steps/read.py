"""Step read: the parts of inputs that are one rank's become blocks of raw documents."""

from __future__ import annotations

from typing import Any

from corpus.config import weights_of
from corpus.documents import Document, Tally
from corpus.job import RAW, REJECTED, Job, columns_of, counts_path, write_table
from corpus.script import count_han
from corpus.sources import read_documents
from provenance import write_json

BLOCK = 4_000_000  # characters of raw text in a block: the unit of work after reading
_SOURCES = 1000  # names of sources that a rank reports; those with a weight always


def _storable(text: str) -> str:
    """``text`` without the lone surrogates that JSON can express and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _record(document: Document) -> dict[str, str]:
    return {name: _storable(getattr(document, name)) for name in RAW.names}


def read_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Cut what one rank reads into blocks of about ``BLOCK`` characters."""
    folder = job.work / "raw" / f"{rank:05d}"
    weighted = weights_of(job.config).keys()
    files: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    sources: set[str] = set()
    number = size = 0
    waiting: list[dict[str, str]] = []

    def write() -> None:
        nonlocal number, size
        write_table(folder / f"{number:05d}.parquet", columns_of(waiting, RAW), RAW)
        number, size = number + 1, 0
        waiting.clear()

    for part in job.parts[rank]:
        tally, documents, han = Tally(), 0, 0
        for document in read_documents(part, job.config, tally):
            waiting.append(_record(document))
            documents, han, size = documents + 1, han + count_han(document.text), size + len(document.text)
            if len(sources) < _SOURCES or document.source in weighted:
                sources.add(document.source)
            if size >= BLOCK:
                write()
        files.append({"file": part.label, "documents": documents, "han": han, "skipped": tally.counts})
        failed += [
            {"id": _storable(page.id), "rule": "failed_page", "text": _storable(page.text[:2000])}
            for page in tally.failed
        ]
    if waiting:
        write()
    if failed:
        path = job.work / "rejected" / f"read-{rank:05d}.parquet"
        write_table(path, columns_of(failed, REJECTED), REJECTED)
    write_json(
        counts_path(job, "read", rank),
        {"files": files, "blocks": number, "sources": sorted(map(_storable, sources))},
    )
