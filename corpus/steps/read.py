"""Step read: the parts of inputs that are one rank's become blocks of raw documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.config import weights_of
from corpus.inputs.documents import Document, Tally
from corpus.inputs.sources import read_documents
from corpus.job import RAW, REJECTED, Job, counts_path, write_table
from corpus.script import count_han
from provenance import write_json

BLOCK = 4_000_000  # characters of raw text in a block: the unit of work after reading
_SOURCES = 1000  # names of sources that a rank reports; those with a weight always


def _storable(text: str) -> str:
    """``text`` without the lone surrogates that JSON can express and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _write_block(path: Path, documents: Sequence[Document]) -> None:
    columns = {name: [getattr(document, name) for document in documents] for name in RAW.names}
    try:
        write_table(path, columns, RAW)
    except UnicodeEncodeError:
        write_table(path, {name: list(map(_storable, column)) for name, column in columns.items()}, RAW)


def read_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Cut what one rank reads into blocks of about ``BLOCK`` characters."""
    folder = job.work / "raw" / f"{rank:05d}"
    weighted = weights_of(job.config).keys()
    files: list[dict[str, Any]] = []
    failed: list[Document] = []
    sources: set[str] = set()
    block: list[Document] = []
    number = size = 0
    for part in job.parts[rank]:
        tally, texts, han = Tally(), list[str](), 0
        for document in read_documents(part, job.config, tally):
            block.append(document)
            texts.append(document.text)
            size += len(document.text)
            if len(sources) < _SOURCES or document.source in weighted:
                sources.add(_storable(document.source))
            if size >= BLOCK:
                _write_block(folder / f"{number:05d}.parquet", block)
                han += count_han("".join(texts))  # many short ones at once: several times as fast
                number, size = number + 1, 0
                block.clear()
                texts.clear()
        han += count_han("".join(texts))
        documents = tally.counts["documents"]
        files.append({"file": part.label, "documents": documents, "han": han, "skipped": tally.counts})
        failed += tally.failed
    if block:
        _write_block(folder / f"{number:05d}.parquet", block)
        number += 1
    if failed:
        columns = {
            "id": [_storable(page.id) for page in failed],
            "rule": ["failed_page"] * len(failed),
            "text": [_storable(page.text[:2000]) for page in failed],
        }
        write_table(job.work / "rejected" / f"read-{rank:05d}.parquet", columns, REJECTED)
    write_json(counts_path(job, "read", rank), {"files": files, "blocks": number, "sources": sorted(sources)})
