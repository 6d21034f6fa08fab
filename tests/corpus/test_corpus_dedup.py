"""Duplicates: which documents are compared, and which of a cluster stays."""

import numpy as np

from corpus.dedup import candidates, clusters


def test_candidates_are_first_and_previous() -> None:
    keys = np.array([7, 9, 7, 7, 8, 9], dtype=np.uint64)
    assert candidates(keys).T.tolist() == [[0, 2], [0, 3], [1, 5], [2, 3]]
    assert candidates(np.empty(0, dtype=np.uint64)).shape == (2, 0)


def test_a_chain_does_not_merge_its_ends() -> None:
    """3 is like 2, which is like 1, but 3 is unlike 1: 3 stays, and takes 4 with it."""
    alike_pairs = {(1, 2), (2, 3), (3, 4), (5, 9)}

    def alike(one: int, others: np.ndarray) -> np.ndarray:
        return np.array([1.0 if (one, other) in alike_pairs else 0.5 for other in others.tolist()])

    pairs = np.array(sorted(alike_pairs)).T
    documents, leaders = clusters(pairs, alike, 0.7)
    assert dict(zip(documents.tolist(), leaders.tolist(), strict=True)) == {
        1: 1,
        2: 1,
        3: 3,
        4: 3,
        5: 5,
        9: 5,
    }
    lonely = clusters(np.array([[1, 2], [2, 3]]), alike, 0.7)  # pairs 1-2 and 2-3: 3 is left alone
    assert lonely.T.tolist() == [[1, 1], [2, 1]]
    assert clusters(np.empty((2, 0), dtype=np.int64), alike, 0.7).shape == (2, 0)
