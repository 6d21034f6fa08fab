"""Duplicates: from keys that equal documents share to clusters in which the first document stays."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from corpus.duplicates.minhash import similarity

FEW = 500  # documents of a group that are all compared with one another
CHUNK = 100_000  # documents compared at once


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


def clusters(pairs: np.ndarray, signatures: np.ndarray, least: float) -> np.ndarray:
    """Which documents lead and which follow; int64 (2, n), ascending by document: document, its leader.

    Documents that pairs connect are looked at in input order: the first leads and takes with it those
    alike to it; the first of the rest leads the next; so nobody follows a document unlike itself, as along a
    chain of pairs. Only clusters of two or more are given, leaders with themselves as leader.

    Args:
        pairs: int64 (2, n) documents found alike.
        signatures: (hashes, documents) of the documents in pairs, in ascending order.
        least: the share of equal hashes from which on a document follows.
    """
    documents, places = np.unique(pairs, return_inverse=True)
    first, second = places.reshape(pairs.shape)
    graph = coo_array((np.ones(len(first), dtype=bool), (first, second)), shape=(len(documents),) * 2)
    labels = connected_components(graph, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    leaders = np.arange(len(documents))
    for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        if len(group) > 1:
            leaders[group] = group[_leaders(signatures[:, group], least)]
    whole = np.bincount(leaders, minlength=len(documents))[leaders] > 1
    return np.stack([documents, documents[leaders]])[:, whole]


def _leaders(signatures: np.ndarray, least: float) -> np.ndarray:
    """int64 (documents,): the leader of each document of one group of connected ones.

    A chain of pairs may connect a million documents of which each is like a few. So in a large group a
    leader is compared only with those that share a hash with it in some rows of the signatures: so many
    rows that no document alike differs in all of them.
    """
    hashes, count = signatures.shape
    large = count > FEW and least > 0
    rows = signatures[: hashes - int(least * hashes) + 1] if large else signatures[:0]
    orders = np.argsort(rows, axis=1, kind="stable")
    known = np.take_along_axis(rows, orders, axis=1)
    leaders = np.full(count, -1)
    for leader in range(count):
        if leaders[leader] >= 0:
            continue
        leaders[leader] = leader
        values = rows[:, leader]
        begins = [np.searchsorted(row, value) for row, value in zip(known, values, strict=True)]
        ends = [np.searchsorted(row, value, side="right") for row, value in zip(known, values, strict=True)]
        if large and sum(ends) - sum(begins) < count:
            runs = [order[i:j] for order, i, j in zip(orders, begins, ends, strict=True)]
            others = np.unique(np.concatenate(runs))
            others = others[leaders[others] < 0]
        else:
            others = np.flatnonzero(leaders < 0)
        for i in range(0, len(others), CHUNK):
            part = others[i : i + CHUNK]
            alike = similarity(signatures[:, [leader]], signatures[:, part]) >= least
            leaders[part[alike]] = leader
    return leaders
