"""Step keep: one rank decides which documents stay, how often they count, and which are held out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import weights_of
from corpus.duplicates import minhash
from corpus.duplicates.clusters import clusters, unique_pairs
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


def _texts(path: Path, places: list[int]) -> list[str]:
    """The beginnings of some documents of a block; where there are none, it is not read."""
    column = pq.read_table(path, columns=["text"])["text"] if places else []
    return [column[place].as_py()[:2000] for place in places]


def _threshold(shares: np.ndarray, held_out: float) -> float:
    """The share below which a document is held out: one at least of two or more."""
    if held_out == 0 or len(np.unique(shares)) < 2:
        return held_out
    return max(held_out, float(np.nextafter(shares.min(), 1)))


def keep_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """The first of each cluster in input order stays; at least one document is held out.

    One rank sees all documents: of each it holds some 20 bytes, and no text but that of the examples.
    """
    weights = weights_of(job.config)
    documents, leaders, similar, equal = _clusters(job)
    cluster = np.unique(leaders, return_inverse=True)[1]
    totals: Counter[str] = Counter()
    examples: list[dict[str, str]] = []
    members = [CLUSTERS.empty_table()]
    keeps: list[tuple[str, np.ndarray, np.ndarray, np.ndarray]] = []
    first = 0
    for path in block_files(job, "signed"):
        table = pq.read_table(path, columns=["id", "source", "han", "emptied"])
        ids, sources, han = (table[name].to_pylist() for name in ("id", "source", "han"))
        reasons = ["emptied" if emptied else "" for emptied in table["emptied"].to_pylist()]
        here = slice(*np.searchsorted(documents, [first, first + len(ids)]))
        places = documents[here] - first
        for place, follows, same in zip(places, leaders[here] != documents[here], equal[here], strict=True):
            if follows:
                reasons[place] = "duplicate" if same else "near_duplicate"
        keep = np.array([not reason for reason in reasons], dtype=bool)
        columns = [[ids[place] for place in places], cluster[here], keep[places], similar[here]]
        members.append(pa.table(dict(zip(CLUSTERS.names, columns, strict=True)), schema=CLUSTERS))
        shown = []
        for place, reason in enumerate(reasons):
            if reason:
                totals.update({reason: 1, f"{reason}_han": han[place]})
                if totals[reason] <= EXAMPLES:
                    shown.append(place)
        texts = _texts(job.work / "clean" / path.name, shown)  # as it was before lines were dropped
        examples += [
            {"id": ids[place], "rule": reasons[place], "text": text}
            for place, text in zip(shown, texts, strict=True)
        ]
        shares = np.array([share_of(f"held-out/{key}") for key in ids])
        copies = [copies_of(key, weights.get(source, 1.0)) for key, source in zip(ids, sources, strict=True)]
        keeps.append((path.name, keep, shares, np.array(copies, dtype=np.int32)))
        first += len(ids)
    threshold = _threshold(
        np.concatenate([shares[keep] for _, keep, shares, _ in keeps]), job.config.held_out
    )
    for name, keep, shares, repeated in keeps:
        held_out = shares < threshold
        times = np.where(held_out, 1, repeated)
        write_table(job.work / "keep" / name, {"keep": keep, "held_out": held_out, "copies": times}, KEEP)
    joined = pa.concat_tables(members)
    write_table(job.work / "clusters.parquet", {name: joined[name] for name in CLUSTERS.names}, CLUSTERS)
    write_table(job.work / "rejected" / "duplicates.parquet", columns_of(examples, REJECTED), REJECTED)
    write_json(counts_path(job, "keep", rank), {"totals": totals})
