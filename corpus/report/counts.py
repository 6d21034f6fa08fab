"""What the steps counted, added up over ranks: the same for any number of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from corpus.duplicates import decontaminate
from corpus.job import Job, block_files, blocks, read_counts

MOST = 100  # lines, characters that are listed


def added(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Nested counters added up."""
    total: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping):
                total[key] = added([total.get(key, {}), value])
            else:
                total[key] = total.get(key, 0) + value
    return total


def by_file(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was read, an entry a file: of a large file every part counted for itself."""
    files: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        files.setdefault(entry["file"], []).append({k: v for k, v in entry.items() if k != "file"})
    return [{"file": name, **added(parts)} for name, parts in files.items()]


def most(counts: Mapping[str, int]) -> dict[str, int]:
    """The ``MOST`` largest, in descending order; equal ones in the order of their names."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST])


def summarize(job: Job, benchmark: decontaminate.Benchmark | None = None) -> dict[str, Any]:
    """Everything the steps counted.

    Of dropped lines and unknown characters each rank counted the most frequent alone, so that their sums are
    lower bounds.
    """
    read, clean = read_counts(job, "read"), read_counts(job, "clean")
    sign, keep, pack = (read_counts(job, step) for step in ("sign", "keep", "pack"))
    inputs = by_file([entry for part in read for entry in part["files"]])
    packed = added([{k: v for k, v in part.items() if k != "documents"} for part in pack])
    summary: dict[str, Any] = {
        "inputs": inputs,
        "skipped": added([entry["skipped"] for entry in inputs]),
        "read": added([part["read"] for part in clean]),
        "totals": added([part["totals"] for part in [*clean, *sign, *keep]]),
        "rules": added([part["rules"] for part in [*clean, *sign]]),
        "lines": most(added([part["lines"] for part in [*clean, *sign]])),
        "packed": packed | {"unknown": most(packed.get("unknown", {}))},
        "documents": sum(part["documents"] for part in pack),
        "changed": [example for part in clean for example in part["changed"]],
        "blocks": len(blocks(job)),
    }
    if benchmark is not None:
        summary["overlap"] = overlap_report(job, benchmark)
    return summary


def overlap_report(job: Job, benchmark: decontaminate.Benchmark) -> dict[str, dict[str, int]]:
    """Benchmark strings found in the corpus, for each file of the data folder."""
    found, left = (
        np.concatenate([np.load(path) for path in block_files(job, folder, "npy")])
        for folder in ("found", "left")
    )
    return decontaminate.hits_per_file(benchmark, found, left)


def all_groups(summary: Mapping[str, Any]) -> Counter[str]:
    """Documents, Han characters, tokens, unknown tokens and held-out documents of the whole corpus."""
    total: Counter[str] = Counter()
    for group in summary["packed"].get("groups", {}).values():
        total.update(group)
    return total
