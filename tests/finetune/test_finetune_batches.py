"""Batches: orders, parts of similar length, padding."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from finetune.batches import PassCost, pad, padded_length, parts_of, prediction_order, random_batches


def test_an_epoch_holds_every_example_once() -> None:
    batches = random_batches(5003, 32, torch.Generator().manual_seed(1))
    assert len(batches) == 157  # ceil(5003 / 32)
    assert [len(batch) for batch in batches] == [32] * 156 + [11]
    assert sorted(i for batch in batches for i in batch) == list(range(5003))


def test_order_follows_the_seed() -> None:
    """The same seed gives the same order, another seed and the next epoch another one."""
    one, again = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    first = random_batches(200, 8, one)
    assert first == random_batches(200, 8, again)
    assert first != random_batches(200, 8, torch.Generator().manual_seed(2))
    assert first != random_batches(200, 8, one)


def padded(lengths: list[int], parts: list[list[int]]) -> int:
    return sum(len(part) * padded_length(max(lengths[i] for i in part), 512) for part in parts)


@given(lengths=st.lists(st.integers(1, 512), min_size=1, max_size=70), fixed=st.integers(0, 5000))
def test_parts_hold_each_row_once_and_are_worth_their_price(lengths: list[int], fixed: int) -> None:
    parts = parts_of(lengths, 512, PassCost(fixed, 4096))
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))
    for shorter, longer in itertools.pairwise(parts):
        assert max(lengths[i] for i in shorter) <= min(lengths[i] for i in longer)
    assert all(padded(lengths, [part]) <= 4096 for part in parts)  # 512 tokens of one row fit
    whole = [list(range(len(lengths)))]
    if padded(lengths, whole) <= 4096:
        assert padded(lengths, parts) + fixed * len(parts) <= padded(lengths, whole) + fixed


def test_parts_by_hand() -> None:
    """Four rows of 16 and four of 64: 256 + 64 tokens in two passes, 512 in one."""
    lengths = [16, 64] * 4
    assert parts_of(lengths, 512, PassCost(0, 512)) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert parts_of(lengths, 512, PassCost(191, 512)) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert parts_of(lengths, 512, PassCost(193, 512)) == [[0, 2, 4, 6, 1, 3, 5, 7]]
    assert [len(part) for part in parts_of(lengths, 512, PassCost(193, 128))] == [2, 2, 2, 2]
    assert parts_of([600], 600, PassCost(1, 512)) == [[0]]
    for rows in range(2, 34):  # each of these alone has more tokens than a pass should: no two go together
        assert parts_of([600] * rows, 600, PassCost(1000, 512)) == [[row] for row in range(rows)]


def test_prediction_order_holds_all_rows() -> None:
    """33 rows, batches of 32: two batches, none lost."""
    batches = prediction_order(list(range(33)), 32)
    assert [len(batch) for batch in batches] == [32, 1]
    assert sorted(i for batch in batches for i in batch) == list(range(33))


def test_padding() -> None:
    assert pad([np.array([1, 2]), np.array([3])], 9, 3).tolist() == [[1, 2, 9], [3, 9, 9]]


def test_few_lengths() -> None:
    """Every shape costs memory: 512 lengths become 32, and little is filled up."""
    found = {longest: padded_length(longest, 512) for longest in range(1, 513)}
    assert len(set(found.values())) == 32
    assert all(n <= length < n + max(8, n / 8) for n, length in found.items())
    assert [found[n] for n in (5, 65, 129, 257, 500, 512)] == [8, 72, 144, 288, 512, 512]
    assert padded_length(129, 130) == 130  # no more than the model takes
