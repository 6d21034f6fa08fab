"""Batches: padding, and orders that put equal lengths together."""

from __future__ import annotations

import numpy as np
import torch

from finetune.batches import pad, prediction_order, training_order


def test_bucketed_order_has_as_many_updates_as_a_plain_one() -> None:
    lengths = np.random.default_rng(0).integers(3, 100, 5003).tolist()
    padded = {}
    for within in (1, 8):
        batches = training_order(lengths, 32, within, torch.Generator().manual_seed(1))
        assert len(batches) == 157  # ceil(5003 / 32)
        assert sorted(i for batch in batches for i in batch) == list(range(5003))
        padded[within] = sum(max(lengths[i] for i in batch) * len(batch) for batch in batches) / sum(lengths)
    assert padded[1] > 1.8
    assert padded[8] < 1.2


def test_batches_differ_in_length_no_more_than_a_stretch_sorts() -> None:
    """Rows of one stretch of 8 batches are sorted together, those of another are not: no epoch by length."""
    lengths = list(range(64 * 32))
    batches = training_order(lengths, 32, 8, torch.Generator().manual_seed(1))
    spans = [max(batch) - min(batch) for batch in batches]
    assert min(spans) > 3 * 32  # a whole epoch sorted would have spans of 31


def test_order_follows_the_seed() -> None:
    """The same seed gives the same order, another seed and the next epoch another one."""
    lengths = [5] * 200
    one, again = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    first = training_order(lengths, 8, 8, one)
    assert first == training_order(lengths, 8, 8, again)
    assert first != training_order(lengths, 8, 8, torch.Generator().manual_seed(2))
    assert first != training_order(lengths, 8, 8, one)


def test_prediction_order_holds_all_rows() -> None:
    """33 rows, batches of 32: two batches, none lost."""
    batches = prediction_order(list(range(33)), 32)
    assert [len(batch) for batch in batches] == [32, 1]
    assert sorted(i for batch in batches for i in batch) == list(range(33))


def test_padding() -> None:
    assert pad([np.array([1, 2]), np.array([3])], 9).tolist() == [[1, 2], [3, 9]]
