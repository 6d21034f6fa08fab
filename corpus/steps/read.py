"""Step read: one input file becomes blocks of raw documents."""

from __future__ import annotations

from collections import Counter
from typing import Any

from corpus.job import RAW, Job, columns_of, counts_path, write_table
from corpus.script import count_han
from corpus.sources import read_documents
from provenance import write_json

BLOCK = 4_000_000  # characters of raw text in a block: the unit of work after reading


def read_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Cut one input file into blocks of about ``BLOCK`` characters."""
    folder = job.work / "raw" / f"{rank:05d}"
    skipped: Counter[str] = Counter()
    documents = number = han = size = 0
    waiting: list[dict[str, str]] = []

    def write() -> None:
        nonlocal number, size
        write_table(folder / f"{number:05d}.parquet", columns_of(waiting, RAW), RAW)
        number, size = number + 1, 0
        waiting.clear()

    for document in read_documents(job.inputs[rank], counts=skipped):
        fields = (document.id, document.source, document.title, document.text)
        waiting.append(
            {k: v.encode("utf-8", "replace").decode() for k, v in zip(RAW.names, fields, strict=True)}
        )
        documents, han, size = documents + 1, han + count_han(document.text), size + len(document.text)
        if size >= BLOCK:
            write()
    if waiting:
        write()
    write_json(
        counts_path(job, "read", rank),
        {
            "file": job.inputs[rank].name,
            "documents": documents,
            "han": han,
            "blocks": number,
            "skipped": skipped,
        },
    )
