"""Step keep: one rank decides which documents stay, how often they count, and which are held out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from corpus import minhash
from corpus.config import weights_of
from corpus.dedup import clusters, unique_pairs
from corpus.job import (
    CLUSTERS,
    KEEP,
    REJECTED,
    Job,
    block_files,
    columns_of,
    copies_of,
    counts_path,
    share_of,
    write_table,
)
from corpus.steps.match import signatures_of
from provenance import write_json

EXAMPLES = 100  # documents of each kind kept as examples


def _clusters(job: Job) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Documents in clusters, ascending; for each its leader, the similarity to it, whether they are equal."""
    pairs = [np.load(path) for path in sorted((job.work / "pairs").glob("*.npy"))]
    found = unique_pairs(np.concatenate([np.empty((2, 0), dtype=np.int64), *pairs], axis=1))
    members = np.unique(found)
    fingerprints = np.concatenate([np.load(path) for path in block_files(job, "fingerprints", "npy")])[
        members
    ]
    near = job.config.near_duplicates
    signatures = signatures_of(job, members) if near else fingerprints[None]
    documents, leaders = clusters(found, signatures, job.config.min_similarity)
    places, of_leader = np.searchsorted(members, documents), np.searchsorted(members, leaders)
    equal = fingerprints[places] == fingerprints[of_leader]
    similar = minhash.similarity(signatures[:, places], signatures[:, of_leader])
    return documents, leaders, np.where(equal, 1.0, similar), equal


def keep_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """The first of each cluster in input order stays; at least one document is held out."""
    weights = weights_of(job.config)
    documents, leaders, similar, equal = _clusters(job)
    cluster = np.unique(leaders, return_inverse=True)[1]
    totals: Counter[str] = Counter()
    examples: list[dict[str, str]] = []
    members: list[dict[str, Any]] = []
    keeps: list[tuple[str, list[bool], list[float], list[int]]] = []
    first = 0
    for path in block_files(job, "signed"):
        table = pq.read_table(path, columns=["id", "source", "han", "emptied", "text"])
        ids, sources, han = (table[name].to_pylist() for name in ("id", "source", "han"))
        reasons = ["emptied" if emptied else "" for emptied in table["emptied"].to_pylist()]
        here = range(*np.searchsorted(documents, [first, first + len(ids)]))
        for i in here:
            if leaders[i] != documents[i]:
                reasons[documents[i] - first] = "duplicate" if equal[i] else "near_duplicate"
        for i in here:
            place = documents[i] - first
            members.append(
                {
                    "id": ids[place],
                    "cluster": cluster[i],
                    "kept": not reasons[place],
                    "similarity": similar[i],
                }
            )
        for place, reason in enumerate(reasons):
            if reason:
                totals.update({reason: 1, f"{reason}_han": han[place]})
                if totals[reason] <= EXAMPLES:
                    text = table["text"][place].as_py()[:2000]
                    examples.append({"id": ids[place], "rule": reason, "text": text})
        keep = [not reason for reason in reasons]
        shares = [share_of(f"held-out/{key}") for key in ids]
        copies = [copies_of(key, weights.get(source, 1.0)) for key, source in zip(ids, sources, strict=True)]
        keeps.append((path.name, keep, shares, copies))
        first += len(ids)
    staying = sorted(s for _, keep, shares, _ in keeps for k, s in zip(keep, shares, strict=True) if k)
    threshold = job.config.held_out
    if threshold > 0 and len(staying) > 1 and staying[0] >= threshold:
        threshold = (staying[0] + staying[1]) / 2
    for name, keep, shares, copies in keeps:
        held_out = [share < threshold for share in shares]
        times = [1 if held else n for held, n in zip(held_out, copies, strict=True)]
        write_table(job.work / "keep" / name, {"keep": keep, "held_out": held_out, "copies": times}, KEEP)
    write_table(job.work / "clusters.parquet", columns_of(members, CLUSTERS), CLUSTERS)
    write_table(job.work / "rejected" / "duplicates.parquet", columns_of(examples, REJECTED), REJECTED)
    write_json(counts_path(job, "keep", rank), {"totals": totals})
