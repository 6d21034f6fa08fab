"""Step duplicates: one rank decides which documents stay, and which are held out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow.parquet as pq

from corpus import dedup
from corpus.job import KEEP, REJECTED, Job, columns_of, counts_path, share_of, write_table
from provenance import write_json

SAMPLES = 100  # duplicates kept as examples


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
