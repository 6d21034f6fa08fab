"""Near duplicates: MinHash signatures of character 5-grams, and bands of them for locality-sensitive hashing.

Broder, "On the resemblance and containment of documents" (1997); banding after Leskovec, Rajaraman and
Ullman, "Mining of Massive Datasets", chapter 3.
"""

from __future__ import annotations

import numpy as np

from corpus.hashing import Letters, mixed, segment_hashes, window_hashes

GRAM = 5  # letters or digits; a shorter text is one shingle
BANDS, ROWS = 16, 5  # 1 - (1 - J**5)**16: 0.998 at J = 0.8, 0.94 at 0.7, 0.40 at 0.5, 0.04 at 0.3
HASHES = BANDS * ROWS
_FACTORS = np.random.default_rng(5).integers(0, 1 << 31, HASHES, dtype=np.uint32) * np.uint32(2) + np.uint32(
    1
)


def shingles(letters: Letters) -> tuple[np.ndarray, np.ndarray]:
    """uint64 hashes of the 5-grams of each segment in turn, and how many (at least one) each segment has."""
    sizes = letters.sizes
    counts = np.maximum(sizes - GRAM + 1, 1)
    short = sizes < GRAM
    hashes = np.empty(counts.sum(), dtype=np.uint64)
    of_short = np.repeat(short, counts)
    hashes[of_short] = segment_hashes(letters)[short]
    starts = np.repeat(letters.ends - sizes - (np.cumsum(counts) - counts), counts) + np.arange(len(hashes))
    hashes[~of_short] = window_hashes(letters.codes, GRAM)[starts[~of_short]]
    return hashes, counts


def signatures(letters: Letters) -> np.ndarray:
    """uint32 (HASHES, segments): for each hash function the least value over a segment's 5-grams."""
    hashes, counts = shingles(letters)
    starts = np.cumsum(counts) - counts
    values = (hashes >> np.uint64(32)).astype(np.uint32)
    return np.stack([np.minimum.reduceat(values * factor, starts) for factor in _FACTORS])


def band_keys(rows: np.ndarray) -> np.ndarray:
    """uint64 (documents,) of the ROWS rows (ROWS, documents) of one band: equal where all rows are."""
    keys = np.zeros(rows.shape[1], dtype=np.uint64)
    for row in rows:
        keys = mixed(keys * np.uint64(0x9E3779B97F4A7C15) + row)
    return keys


def similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float32 (n,): the estimated Jaccard similarity of documents with signatures (HASHES, n)."""
    return (first == second).mean(axis=0, dtype=np.float32)
