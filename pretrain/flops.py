"""Floating point operations of a training step, counted from the shapes.

Two accountings. ``torch``: matrix products only, 2 per multiply-add, forward and twice that backward, as
``torch.utils.flop_counter`` counts what this code runs. ``paper``: as the ELECTRA paper's table counts (every
operation, embeddings looked up as matrix products, backward as much as forward), to set a run beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pretrain.config import PretrainConfig, Size
from pretrain.masking import masked_count
from pretrain.model import ELECTRA, Part
from pretrain.objectives import OBJECTIVES

# Operations per element as the paper's authors count them (google-research/electra, flops_computation.py).
DROPOUT, LAYER_NORM, GELU, SOFTMAX = 4, 5, 8, 5


@dataclass(frozen=True)
class Network:
    """A network of a system; ``ffn`` is the inner width of its feed-forward layers."""

    head: str
    layers: int
    hidden: int
    heads: int
    embedding: int
    ffn: int


def network(part: Part, size: Size) -> Network:
    """``part`` at ``size``."""
    width = round(size.hidden * size.generator_fraction) if part.narrow else size.hidden
    heads = max(1, width // 64) if part.narrow else size.heads
    return Network(part.head, size.layers, width, heads, size.embedding, 4 * width)


def _matrix_products(net: Network, length: int) -> int:
    """Forward multiply-adds of one row in the layers and the embedding projection, times 2."""
    h, s = net.hidden, length
    layer = 4 * h * h + 2 * h * net.ffn + 2 * s * h  # projections; feed-forward; scores and weighted sum
    projection = net.embedding * h if net.embedding != h else 0
    return 2 * s * (net.layers * layer + projection)


def torch_row(size: Size, length: int, masked: int, parts: Mapping[str, Part] = ELECTRA) -> int:
    """Matrix-product operations of one row's training step."""
    forward = 0
    for net in (network(part, size) for part in parts.values()):
        forward += _matrix_products(net, length)
        if net.head == "detection":
            forward += 2 * length * (net.hidden**2 + net.hidden)
        else:
            forward += 2 * masked * (net.hidden * size.embedding + size.embedding * size.vocab_size)
    return 3 * forward


def _paper_layer(net: Network, length: int) -> int:
    """Operations per token of one layer."""
    h, s = net.hidden, length
    attention = 3 * (2 * h * h + h) + 2 * h * s + (SOFTMAX + DROPOUT + 1) * s * net.heads + 2 * h * s
    attention_output = 2 * h * h + (1 + DROPOUT + 1 + LAYER_NORM) * h
    feed_forward = 4 * h * net.ffn + (GELU + 1) * net.ffn + (1 + DROPOUT + 1 + LAYER_NORM) * h
    return attention + attention_output + feed_forward


def paper_row(
    size: Size, length: int, masked_share: float = 0.15625, parts: Mapping[str, Part] = ELECTRA
) -> float:
    """Operations of one row's training step in the paper's accounting, all networks."""
    total = 0.0
    for net in (network(part, size) for part in parts.values()):
        h, e, v = net.hidden, net.embedding, size.vocab_size
        total += net.layers * _paper_layer(net, length)
        total += 2 * e * v + 2 * e * (length + 2) + (2 + LAYER_NORM + DROPOUT) * e
        total += 2 * h * e + h if h != e else 0
        if net.head == "detection":
            total += 2 * h * h + h + GELU * h + 2 * h
        else:
            total += masked_share * (2 * e * v + 2 * h * e + e + (GELU + LAYER_NORM) * e + (SOFTMAX + 2) * v)
    return 2 * total * length


def step_flops(config: PretrainConfig, accounting: Literal["torch", "paper"] = "torch") -> int:
    """Operations of one optimiser step over full rows."""
    parts = OBJECTIVES[config.objective].parts
    if accounting == "paper":
        return round(config.batch_size * paper_row(config.shape, config.length, parts=parts))
    masked = masked_count(config.length, config.length, config.mask_fraction)
    return config.batch_size * torch_row(config.shape, config.length, masked, parts)
