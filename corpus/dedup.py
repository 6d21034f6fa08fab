"""Duplicates: from keys that equal documents share to clusters in which the first document stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def candidates(keys: np.ndarray) -> np.ndarray:
    """int64 (2, n): pairs (earlier, later) of documents with equal keys.

    Each document is paired with the first of its key and with the one before it, not with all: that grows
    with the documents, however many share a key.

    Args:
        keys: uint64 (documents,), in input order.
    """
    order = np.argsort(keys, kind="stable")
    known = keys[order]
    starts = np.concatenate([[True], known[1:] != known[:-1]]) if len(keys) else np.empty(0, dtype=bool)
    first = order[np.flatnonzero(starts)][np.cumsum(starts) - 1] if len(keys) else order
    later = np.flatnonzero(~starts)
    pairs = np.concatenate(
        [np.stack([first[later], order[later]]), np.stack([order[later - 1], order[later]])], axis=1
    )
    return unique_pairs(pairs)


def unique_pairs(pairs: np.ndarray) -> np.ndarray:
    """The pairs (2, n) in ascending order, each once; numbers are below 2**32."""
    both = np.unique(pairs[0].astype(np.uint64) << np.uint64(32) | pairs[1].astype(np.uint64))
    return np.stack([both >> np.uint64(32), both & np.uint64(0xFFFFFFFF)]).astype(np.int64)


def clusters(pairs: np.ndarray, alike: Callable[[int, np.ndarray], np.ndarray], least: float) -> np.ndarray:
    """Which documents lead and which follow; int64 (2, n), ascending by document: document, its leader.

    Documents that pairs connect are looked at in input order: the first leads and takes with it those
    alike to it; the first of the rest leads the next; so nobody follows a document unlike itself, as along a
    chain of pairs. Only clusters of two or more are given, leaders with themselves as leader.

    Args:
        pairs: int64 (2, n) documents found alike.
        alike: of a document and an ascending array of documents: their similarity to it.
        least: the similarity from which on a document follows.
    """
    documents, places = np.unique(pairs, return_inverse=True)
    first, second = places.reshape(pairs.shape)
    graph = coo_array((np.ones(len(first), dtype=bool), (first, second)), shape=(len(documents),) * 2)
    labels = connected_components(graph, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    leaders = documents.copy()
    for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        while len(group) > 1:
            follows = np.concatenate([[True], alike(int(documents[group[0]]), documents[group[1:]]) >= least])
            leaders[group[follows]] = documents[group[0]]
            group = group[~follows]
    sizes = np.bincount(np.searchsorted(documents, leaders), minlength=len(documents))
    whole = sizes[np.searchsorted(documents, leaders)] > 1
    return np.stack([documents, leaders])[:, whole]
