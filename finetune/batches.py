"""Rows of different lengths into batches: padding, and an order that puts equal lengths together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


def pad(rows: Sequence[np.ndarray], value: int) -> torch.Tensor:
    """Rows of int64 as one (rows, longest) tensor, filled up with ``value``."""
    out = np.full((len(rows), max(map(len, rows))), value, dtype=np.int64)
    for line, row in zip(out, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(out)


def model_inputs(
    rows: Sequence[tuple[np.ndarray, np.ndarray]], padding: int, *, with_types: bool
) -> dict[str, torch.Tensor]:
    """``input_ids``, ``attention_mask`` and, if asked, ``token_type_ids`` of rows of (ids, types)."""
    lengths = torch.tensor([len(ids) for ids, _ in rows])
    inputs = {"input_ids": pad([ids for ids, _ in rows], padding)}
    inputs["attention_mask"] = (torch.arange(int(lengths.max()))[None, :] < lengths[:, None]).long()
    if with_types:
        inputs["token_type_ids"] = pad([types for _, types in rows], 0)
    return inputs


def training_order(
    lengths: Sequence[int], batch_size: int, sort_within: int, generator: torch.Generator
) -> list[list[int]]:
    """One epoch: each index once, in ceil(n / batch_size) batches of similar length.

    A random order is cut into stretches of ``sort_within`` batches, each sorted by length (equal lengths
    stay in random order) and cut into batches; then the batches are shuffled. Only one batch can be short.
    """
    order = torch.randperm(len(lengths), generator=generator).tolist()
    stretch = sort_within * batch_size
    batches = [
        part[i : i + batch_size]
        for start in range(0, len(order), stretch)
        for part in [sorted(order[start : start + stretch], key=lambda index: lengths[index])]
        for i in range(0, len(part), batch_size)
    ]
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def prediction_order(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Each index once, longest first, so that a batch that does not fit in memory fails at once."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
