"""Step pack: one block's documents are tokenized and packed into rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow.parquet as pq

from corpus.job import DOCUMENTS, Job, columns_of, counts_path, write_table
from corpus.pack import pack_document
from corpus.rows import RowBuffer, write_rows
from corpus.vocab import UNK
from corpus.words import encode
from provenance import write_json

BATCH = 256  # documents tokenized at once


def batched(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def pack_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Tokenize and pack one block's documents; write them and their rows."""
    config = job.config
    name = f"{rank:05d}"
    table = pq.read_table(job.work / "clean" / f"{name}.parquet")
    keep = pq.read_table(job.work / "keep" / f"{name}.parquet")
    table = table.append_column("held_out", keep["held_out"]).filter(keep["keep"])
    writers = {(n, split): RowBuffer() for n in config.lengths for split in ("train", "heldout")}
    totals = {n: Counter[str]() for n in config.lengths}
    groups: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    for records in batched(table.to_pylist(), BATCH):
        pieces_of = encode([record["text"] for record in records], job.vocab, config.segmenter)
        for record, pieces in zip(records, pieces_of, strict=True):
            split = "heldout" if record["held_out"] else "train"
            key = f"{config.seed}/{record['id']}"
            for n in config.lengths:
                for row in pack_document(
                    pieces,
                    n,
                    key=key,
                    packing=config.packing,
                    min_fragment=config.min_fragment,
                    counts=totals[n],
                ):
                    writers[n, split].add(row)
                    totals[n][f"rows_{split}"] += 1
                    totals[n][f"tokens_{split}"] += len(row.input_ids)
            tokens = sum(map(len, pieces))
            unk = sum(list(piece.ids).count(UNK) for piece in pieces)
            group = groups.setdefault(f"{record['source']}\t{record['script']}", Counter())
            group.update(documents=1, han=record["han"], tokens=tokens, unk=unk, held_out=record["held_out"])
            sizes[str(max(0, (len(record["text"])).bit_length()))] += 1
    write_table(
        job.work / "documents" / f"{name}.parquet", columns_of(table.to_pylist(), DOCUMENTS), DOCUMENTS
    )
    for (n, split), writer in writers.items():
        write_rows(job.work / f"rows-{n}" / split / f"{name}.arrow", writer.table())
    write_json(
        counts_path(job, "pack", rank),
        {
            "documents": table.num_rows,
            "rows": totals,
            "groups": groups,
            "sizes": sizes,
        },
    )
