"""Weights to start from under which the first layer's heads look at the neighbours of a token.

A transformer finds out where a token's neighbours are only from the rows it reads, and until it has, its
generator predicts little more than how frequent tokens are. Heads that look one or two tokens to the left or
right appear in the first layers of every trained BERT (Clark et al. 2019, arXiv:1906.04341, section 3.1);
here they are there before the first step. What is built is an ordinary ELECTRA: only its numbers differ.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

OFFSETS = (-1, 1, -2, 2)
"""Where each head looks, by turns: tokens to the right of its own."""
SHARPNESS = 2.0
"""Factor on queries and keys: some 0.7 of a head's attention falls on the neighbour in rows of 100 tokens,
some 0.45 in rows of 512."""
VALUE_GAIN = 1.5
"""Of the values: what a head sees changes a token's vector by about a third."""


def _waves(positions: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sines, then cosines of all positions, (positions, width), and their frequencies, (width // 2,).

    Each of the ``width // 2`` equal parts of (0, π) has one frequency, drawn at random but the same for all
    networks, which may share the table. So the vectors of two positions have little in common; with one in
    the middle of each part they would come again after ``2 · width`` positions.
    """
    places = torch.rand(width // 2, generator=torch.Generator().manual_seed(0))
    frequencies = math.pi * (torch.arange(width // 2) + places) / (width // 2)
    angles = torch.arange(positions)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1), frequencies


def _head(frequencies: torch.Tensor, size: int, offset: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key, each (size, width): a query is most like the key that stands ``offset`` further on.

    The key of a head is ``size // 2`` of the waves, drawn at random. The query is the same waves turned by
    ``offset``: sin(a + d) = sin a · cos d + cos a · sin d, cos(a + d) = cos a · cos d - sin a · sin d.
    """
    half = len(frequencies)
    picked = torch.randperm(half)[: size // 2]
    sines, cosines = torch.arange(len(picked)), torch.arange(len(picked)) + len(picked)
    turn = offset * frequencies[picked]
    query, key = torch.zeros(size, 2 * half), torch.zeros(size, 2 * half)
    key[sines, picked] = key[cosines, half + picked] = 1.0
    query[sines, picked], query[sines, half + picked] = turn.cos(), turn.sin()
    query[cosines, half + picked], query[cosines, picked] = turn.cos(), -turn.sin()
    return query, key


@torch.no_grad()
def look_at_neighbours(electra: Any) -> None:
    """Set the positions' table and the first layer's attention of a transformers ``ElectraModel``.

    Positions become waves of the size that ``initializer_range`` asks for. The weights follow
    ``torch.manual_seed``. Layers narrower than the embeddings see the waves in part, and their heads are
    blurred.
    """
    table = electra.embeddings.position_embeddings.weight
    waves, frequencies = _waves(*table.shape)
    table.copy_(electra.config.initializer_range * math.sqrt(2) * waves)
    first = electra.encoder.layer[0].attention
    # The layer reads the embeddings through their projection, where there is one.
    projection = getattr(electra, "embeddings_project", None)
    back = torch.eye(table.shape[1]) if projection is None else torch.linalg.pinv(projection.weight)
    heads, size = first.self.num_attention_heads, first.self.attention_head_size
    for head in range(heads):
        rows = slice(head * size, (head + 1) * size)
        query, key = _head(frequencies, size, OFFSETS[head % len(OFFSETS)])
        first.self.query.weight[rows] = SHARPNESS * query @ back
        first.self.key.weight[rows] = SHARPNESS * key @ back
    nn.init.orthogonal_(first.self.value.weight, gain=VALUE_GAIN)
    nn.init.orthogonal_(first.output.dense.weight)
