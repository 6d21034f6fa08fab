"""Step match: one rank finds, in one band of all signatures, the documents that are alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpus.config import CorpusConfig
from corpus.duplicates import minhash
from corpus.duplicates.clusters import candidates
from corpus.job import Job, block_files, counts_path, write_array
from provenance import write_json


def bands(config: CorpusConfig) -> int:
    """Ranks of this step: the bands of the signatures, then one for equal fingerprints."""
    return minhash.BANDS * config.near_duplicates + config.dedup


def match_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Write pairs (2, n) of documents, numbered over all blocks, that this band finds alike."""
    if rank == world_size - 1 and job.config.dedup:
        keys = [np.load(path) for path in block_files(job, "fingerprints", "npy")]
        pairs = candidates(np.concatenate(keys))
    else:
        rows = slice(rank * minhash.ROWS, (rank + 1) * minhash.ROWS)
        files = [np.load(path, mmap_mode="r") for path in block_files(job, "signatures", "npy")]
        pairs = candidates(np.concatenate([minhash.band_keys(file[rows]) for file in files]))
        pairs = pairs[:, similarities(job, pairs) >= job.config.min_similarity]
    write_array(job.work / "pairs" / f"{rank:05d}.npy", pairs)
    write_json(counts_path(job, "match", rank), {"pairs": pairs.shape[1]})


def similarities(job: Job, pairs: np.ndarray) -> np.ndarray:
    """float32 (n,): the estimated similarity of each pair (2, n)."""
    documents, places = np.unique(pairs, return_inverse=True)
    found = signatures_of(job, documents)
    places = places.reshape(pairs.shape)
    chunks = [
        minhash.similarity(found[:, places[0, i : i + CHUNK]], found[:, places[1, i : i + CHUNK]])
        for i in range(0, pairs.shape[1], CHUNK)
    ]
    return np.concatenate(chunks) if chunks else np.empty(0, dtype=np.float32)


CHUNK = 100_000  # pairs compared at once


def signatures_of(job: Job, documents: np.ndarray) -> np.ndarray:
    """uint32 (HASHES, n): the signatures of documents, given by ascending number over all blocks."""
    found = [np.empty((minhash.HASHES, 0), dtype=np.uint32)]
    first = 0
    for path in block_files(job, "signatures", "npy"):
        file = np.load(path, mmap_mode="r")
        begin, end = np.searchsorted(documents, [first, first + file.shape[1]])
        if begin < end:
            found.append(file[:, documents[begin:end] - first])
        first += file.shape[1]
    return np.concatenate(found, axis=1)
