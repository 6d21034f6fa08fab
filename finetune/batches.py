"""Rows of different lengths into batches, batches into parts of similar length, parts into padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch


def pad(rows: Sequence[np.ndarray], value: int, length: int) -> torch.Tensor:
    """Rows of int64 as one (rows, length) tensor, filled up with ``value``."""
    out = np.full((len(rows), length), value, dtype=np.int64)
    for line, row in zip(out, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(out)


def padded_length(longest: int, limit: int) -> int:
    """Tokens of a batch whose longest row has ``longest``: of a few lengths, at most ``limit``.

    oneDNN compiles and keeps kernels for every shape it meets: with any length a run on CMRC 2018 grew to
    8 GB. These are the multiples of 8 up to 128, and eight to an octave above.
    """
    step = max(8, (1 << longest.bit_length()) // 16)
    return max(longest, min(-(-longest // step) * step, limit))


def model_inputs(
    rows: Sequence[tuple[np.ndarray, np.ndarray]], padding: int, limit: int, *, with_types: bool
) -> dict[str, torch.Tensor]:
    """``input_ids``, ``attention_mask`` and, if asked, ``token_type_ids`` of rows of (ids, types).

    Each is (rows, tokens), the tokens as :func:`padded_length` has them.
    """
    lengths = torch.tensor([len(ids) for ids, _ in rows])
    length = padded_length(int(lengths.max()), limit)
    inputs = {"input_ids": pad([ids for ids, _ in rows], padding, length)}
    inputs["attention_mask"] = (torch.arange(length)[None, :] < lengths[:, None]).long()
    if with_types:
        inputs["token_type_ids"] = pad([types for _, types in rows], 0, length)
    return inputs


def random_batches(count: int, batch_size: int, generator: torch.Generator) -> list[list[int]]:
    """One epoch: each index once, in random order, in ceil(count / batch_size) batches."""
    return [batch.tolist() for batch in torch.randperm(count, generator=generator).split(batch_size)]


@dataclass(frozen=True)
class PassCost:
    """What a pass over a part of a batch costs, in the time of a token."""

    fixed: int
    """Tokens' worth of time that a pass takes whatever its size."""
    most: int
    """Most tokens of a pass, padding counted: in a larger one a token costs no less, or memory ends."""


# CPU: `mini`, one thread, bf16: a pass costs 12 ms and 0.08 ms a token, with 8 x 512 tokens 0.096, with
# 32 x 512 0.125. GPU: not measured; cut only where it saves much.
PASS_COST = {"cpu": PassCost(128, 4096), "cuda": PassCost(4096, 32 * 512)}


def pass_cost(device_type: str) -> PassCost:
    """What a pass costs on a kind of device, as torch names it; whatever is no CPU counts as a GPU."""
    return PASS_COST["cpu" if device_type == "cpu" else "cuda"]


def parts_of(lengths: Sequence[int], limit: int, cost: PassCost) -> list[list[int]]:
    """A batch sorted by length and cut into equal parts: indices into ``lengths``, the shortest rows first.

    The gradients of the parts add up to that of the batch, so that padding is saved and nothing else changes.
    (Whole batches of one length cost up to four points, docs/benchmarks.md.) The batch is halved as often as
    costs least, down to single rows; only one row alone may have more tokens than a pass should.

    Args:
        lengths: tokens of each row.
        limit: as in :func:`padded_length`.
    """
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])

    def cut(rows: int) -> list[list[int]]:
        return [order[start : start + rows] for start in range(0, len(order), rows)]

    def price(parts: list[list[int]]) -> tuple[bool, int]:
        tokens = [len(part) * padded_length(lengths[part[-1]], limit) for part in parts]
        return max(tokens) > cost.most and len(parts) < len(order), sum(tokens) + cost.fixed * len(parts)

    halvings = range((len(order) - 1).bit_length() + 1)
    return min((cut(-(-len(order) >> halving)) for halving in halvings), key=price)


def prediction_order(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Each index once, longest first, so that a batch that does not fit in memory fails at once."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
