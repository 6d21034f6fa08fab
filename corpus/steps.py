"""The steps of a corpus build, as datatrove runs them: functions of (data, rank, world size, job).

read        one rank an input file    raw/<file>/<block>.parquet
clean       one rank a block          clean/<rank>.parquet, rejected/<rank>.parquet
duplicates  one rank                  keep/<rank>.parquet
pack        one rank a block          documents/<rank>.parquet, rows-<length>/<split>/<rank>.arrow

How many ranks a step has depends on the input alone. Each rank writes its files atomically, then its
counts: ``counts/<step>-<rank>.json`` is there when the rank is done.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from corpus import decontaminate, dedup, rules
from corpus.config import CorpusConfig
from corpus.job import (
    CLEAN,
    DOCUMENTS,
    KEEP,
    RAW,
    REJECTED,
    Job,
    blocks,
    columns_of,
    counts_path,
    write_table,
)
from corpus.pack import pack_document
from corpus.rows import RowBuffer, write_rows
from corpus.script import converter, count_han, script_of
from corpus.sources import read_documents
from corpus.vocab import UNK
from corpus.words import encode
from provenance import atomic_file, write_json

BLOCK = 4_000_000  # characters of raw text in a block: the unit of work after reading
BATCH = 256  # documents tokenized at once
EXAMPLES = 3  # changed documents a rank keeps for the report
SAMPLES = 100  # duplicates kept as examples


# --- read -----------------------------------------------------------------------------------------


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


# --- clean ----------------------------------------------------------------------------------------


def share_of(key: str) -> float:
    """A number in [0, 1) that ``key`` alone decides (its sha256)."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64


def sample_shares(config: CorpusConfig) -> dict[str, float]:
    """``("history=0.3",)`` as a dict."""
    return {name: float(share) for name, _, share in (entry.partition("=") for entry in config.sample)}


@cache
def _benchmark_table(folder: Path) -> np.ndarray:
    return np.load(folder / "benchmark.npy")


def clean_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Sample, clean, convert, look for benchmark text, tell the script; for one block."""
    config, shares = job.config, sample_shares(job.config)
    convert = converter(config.convert) if config.convert != "none" else None
    tally = rules.Tally()
    totals: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    changed: list[dict[str, str]] = []
    found: list[np.ndarray] = []
    for record in pq.read_table(blocks(job)[rank]).to_pylist():
        han = count_han(record["text"])
        totals.update(documents_in=1, han_in=han)
        if share_of(f"sample/{record['id']}") >= shares.get(record["source"], 1.0):
            totals.update(not_sampled=1, not_sampled_han=han)
            continue
        text = rules.clean(record["text"], config, tally, record["id"])
        if text is None:
            totals.update(rejected=1, rejected_han=han)
            continue
        if convert:
            text = convert(text)
        if job.benchmark:
            shared, own = decontaminate.overlap(text, _benchmark_table(job.work))
            found.append(shared)
            if decontaminate.is_contaminated(len(shared), own):
                totals.update(contaminated=1, contaminated_han=count_han(text))
                tally.sample("contaminated", record["id"], text)
                if config.contaminated == "drop":
                    continue
        if text != record["text"] and len(changed) < EXAMPLES and len(text) > 60:
            changed.append({"id": record["id"], "before": record["text"][:600], "after": text[:600]})
        kept_han = count_han(text)
        totals.update(cleaned=1, cleaned_han=kept_han)
        kept.append(
            {
                **record,
                "text": text,
                "script": script_of(text),
                "fingerprint": dedup.fingerprint(text),
                "han": kept_han,
            }
        )
    write_table(job.work / "clean" / f"{rank:05d}.parquet", columns_of(kept, CLEAN), CLEAN)
    samples = [{"id": key, "rule": rule, "text": text[:2000]} for rule, key, text in tally.samples]
    write_table(job.work / "rejected" / f"{rank:05d}.parquet", columns_of(samples, REJECTED), REJECTED)
    if job.benchmark:
        with atomic_file(job.work / "found" / f"{rank:05d}.npy") as partial, open(partial, "wb") as file:
            np.save(file, np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64))
    write_json(counts_path(job, "clean", rank), {"totals": totals, "rules": tally.counts, "changed": changed})


# --- duplicates -----------------------------------------------------------------------------------


def duplicates_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """The first of each set of duplicates in input order stays; at least one document is held out."""
    seen: set[bytes] = set()
    keeps: list[tuple[str, list[bool], list[float]]] = []
    totals: Counter[str] = Counter()
    examples: list[dict[str, str]] = []
    for path in sorted((job.work / "clean").glob("*.parquet")):
        table = pq.read_table(path, columns=["id", "fingerprint", "han", "text"])
        ids, han = table["id"].to_pylist(), table["han"].to_pylist()
        fingerprints = table["fingerprint"].to_pylist()
        keep = dedup.first_of_each(fingerprints, seen) if job.config.dedup else [True] * len(ids)
        for i, kept in enumerate(keep):
            if not kept:
                totals.update(duplicates=1, duplicates_han=han[i])
                if len(examples) < SAMPLES:
                    examples.append(
                        {"id": ids[i], "rule": "duplicate", "text": table["text"][i].as_py()[:2000]}
                    )
        keeps.append((path.name, keep, [share_of(f"held-out/{key}") for key in ids]))
    shares = sorted(s for _, keep, values in keeps for k, s in zip(keep, values, strict=True) if k)
    threshold = job.config.held_out
    if threshold > 0 and len(shares) > 1 and shares[0] >= threshold:
        threshold = (shares[0] + shares[1]) / 2
    for name, keep, values in keeps:
        columns = {"keep": keep, "held_out": [value < threshold for value in values]}
        write_table(job.work / "keep" / name, columns, KEEP)
    write_table(job.work / "rejected" / "duplicates.parquet", columns_of(examples, REJECTED), REJECTED)
    write_json(counts_path(job, "duplicates", rank), {"totals": totals})


# --- pack -----------------------------------------------------------------------------------------


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
