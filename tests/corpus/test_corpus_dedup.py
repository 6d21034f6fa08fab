"""Duplicates: which documents are compared, and which of a cluster stays."""

import numpy as np
import pytest

from corpus.duplicates.clusters import candidates, clusters, unique_pairs
from corpus.duplicates.minhash import similarity


def test_candidates_are_first_and_previous() -> None:
    keys = np.array([7, 9, 7, 7, 8, 9], dtype=np.uint64)
    assert candidates(keys).T.tolist() == [[0, 2], [0, 3], [1, 5], [2, 3]]
    assert candidates(np.empty(0, dtype=np.uint64)).shape == (2, 0)


def test_a_chain_does_not_merge_its_ends() -> None:
    """3 is like 2, which is like 1, but 3 is unlike 1: 3 stays, and takes 4 with it."""
    pairs = np.array([(1, 2), (2, 3), (3, 4), (5, 9)]).T
    signatures = ["0000000000", "1110000000", "1112220000", "1112223330", "9999999999", "9999999999"]
    columns = np.array([list(map(int, signature)) for signature in signatures]).T
    documents, leaders = clusters(pairs, columns, 0.7)
    assert dict(zip(documents.tolist(), leaders.tolist(), strict=True)) == {
        1: 1,
        2: 1,
        3: 3,
        4: 3,
        5: 5,
        9: 5,
    }
    lonely = clusters(pairs[:, :2], columns[:, :3], 0.7)  # pairs 1-2 and 2-3: 3 is left alone
    assert lonely.T.tolist() == [[1, 1], [2, 1]]
    nothing = np.empty((2, 0), dtype=np.int64)
    assert clusters(nothing, columns[:, :0], 0.7).shape == (2, 0)


@pytest.mark.parametrize("changed", [0.1, 0.01, 0.0])
def test_long_chains_take_little_work(changed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 3,000 documents differs from the one before it in ``changed`` of its hashes: those that share
    no hash with a leader need no comparison, and the clusters are the same as with all of them."""
    steps = np.random.default_rng(0).random((80, 3000)) < changed
    signatures = np.cumsum(steps, axis=1).astype(np.uint32)
    chain = unique_pairs(np.stack([np.arange(2999), np.arange(1, 3000)]))
    compared = []

    def counted(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        compared.append(second.shape[1])
        return similarity(first, second)

    monkeypatch.setattr("corpus.duplicates.clusters.similarity", counted)
    found = clusters(chain, signatures, 0.7)
    assert sum(compared) < 50 * 3000
    monkeypatch.setattr("corpus.duplicates.clusters.FEW", 3000)
    assert np.array_equal(clusters(chain, signatures, 0.7), found)
