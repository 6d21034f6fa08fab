"""Step recurring: one rank finds, for a slice of all hashes, the lines that recur across documents."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from corpus.duplicates.recurring import group_sizes, lines_to_drop
from corpus.job import Job, blocks, counts_path, read_counts, write_array
from provenance import write_json

BLOCKS = 32  # blocks whose lines a rank holds in memory at once, in sum


def hash_parts(job: Job) -> int:
    """Ranks of this step: the input's size alone decides."""
    return -(-len(blocks(job)) // BLOCKS)


def sum_groups(job: Job) -> None:
    """Write how many documents each site or source has, once for all ranks; sites may be millions."""
    documents: Counter[str] = Counter()
    for part in read_counts(job, "clean"):
        documents.update(part["groups"])
    write_array(job.work / "groups.npy", group_sizes(documents))


def recurring_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Write the places of the lines to drop whose hash is in this rank's part of the hash space."""
    edges = [np.uint64(min((part << 64) // world_size, (1 << 64) - 1)) for part in (rank, rank + 1)]
    parts = []
    for path in sorted((job.work / "lines").glob("*.npy")):
        records = np.load(path, mmap_mode="r")
        first, last = np.searchsorted(records[0], edges)
        parts.append(np.array(records[:, first : last if rank + 1 < world_size else None]))
    sizes = np.load(job.work / "groups.npy", mmap_mode="r")
    found = lines_to_drop(parts, sizes, job.config)
    write_array(job.work / "recurring" / f"{rank:05d}.npy", found)
    write_json(counts_path(job, "recurring", rank), {"lines": found.shape[1]})


def dropped_lines(job: Job, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Ascending numbers of the lines of a block to drop, and for each the index of its rule."""
    found = []
    for path in sorted((job.work / "recurring").glob("*.npy")):
        drops = np.load(path, mmap_mode="r")
        first, last = np.searchsorted(drops[0], [np.uint32(rank), np.uint32(rank + 1)])
        found.append(np.array(drops[1:, first:last]))
    lines, rules = np.concatenate(found, axis=1)
    order = np.argsort(lines)
    return lines[order], rules[order]
