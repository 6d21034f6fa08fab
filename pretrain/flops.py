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
from pretrain.data import mask_fraction
from pretrain.masking import masked_count
from pretrain.model import ELECTRA, Part, generator_shape
from pretrain.objectives import OBJECTIVES

Accounting = Literal["torch", "paper"]
# Passes over a network: forward and, where it is trained, backward, which costs twice that; the paper's
# accounting has it cost the same.
TRAINED: dict[Accounting, int] = {"torch": 3, "paper": 2}
PAPER_MASKED = 0.15625  # share of chosen tokens in the paper's accounting where 0.15 are asked for
# Operations per element as the paper's authors count them (google-research/electra, flops_computation.py).
DROPOUT, LAYER_NORM, GELU, SOFTMAX = 4, 5, 8, 5


@dataclass(frozen=True)
class Network:
    """A network of a system; ``ffn`` is the inner width of its feed-forward layers."""

    part: Part
    layers: int
    hidden: int
    heads: int
    embedding: int
    ffn: int


def network(part: Part, size: Size) -> Network:
    """``part`` at ``size``."""
    width, heads = generator_shape(size) if part.narrow else (size.hidden, size.heads)
    return Network(part, size.layers, width, heads, size.embedding, 4 * width)


def _matrix_products(net: Network, length: int) -> int:
    """Forward multiply-adds of one row in the layers and the embedding projection, times 2."""
    h, s = net.hidden, length
    layer = 4 * h * h + 2 * h * net.ffn + 2 * s * h  # projections; feed-forward; scores and weighted sum
    projection = net.embedding * h if net.embedding != h else 0
    return 2 * s * (net.layers * layer + projection)


def torch_row(
    size: Size,
    length: int,
    masked: int,
    parts: Mapping[str, Part] = ELECTRA,
    passes: Mapping[str, int] | None = None,
) -> int:
    """Matrix-product operations of one row's training step.

    Args:
        masked: chosen positions of a row.
        passes: forward passes that each network's work amounts to; default: all are trained.
    """
    total = 0
    for name, part in parts.items():
        net = network(part, size)
        positions = masked if part.at == "chosen" else length
        forward = _matrix_products(net, length)
        if part.head == "detection":
            forward += 2 * positions * (net.hidden**2 + net.hidden)
        else:
            forward += 2 * positions * (net.hidden * size.embedding + size.embedding * size.vocab_size)
        if part.unit:
            forward += 2 * positions * net.hidden
        total += (TRAINED["torch"] if passes is None else passes[name]) * forward
    return total


def _paper_layer(net: Network, length: int) -> int:
    """Operations per token of one layer."""
    h, s = net.hidden, length
    attention = 3 * (2 * h * h + h) + 2 * h * s + (SOFTMAX + DROPOUT + 1) * s * net.heads + 2 * h * s
    attention_output = 2 * h * h + (1 + DROPOUT + 1 + LAYER_NORM) * h
    feed_forward = 4 * h * net.ffn + (GELU + 1) * net.ffn + (1 + DROPOUT + 1 + LAYER_NORM) * h
    return attention + attention_output + feed_forward


def paper_row(
    size: Size,
    length: int,
    masked_share: float = PAPER_MASKED,
    parts: Mapping[str, Part] = ELECTRA,
    passes: Mapping[str, int] | None = None,
) -> float:
    """Operations of one row's training step in the paper's accounting; arguments as :func:`torch_row`."""
    total = 0.0
    for name, part in parts.items():
        net = network(part, size)
        h, e, v = net.hidden, net.embedding, size.vocab_size
        share = masked_share if part.at == "chosen" else 1.0
        forward = float(net.layers * _paper_layer(net, length))
        forward += 2 * e * v + 2 * e * (length + 2) + (2 + LAYER_NORM + DROPOUT) * e
        forward += 2 * h * e + h if h != e else 0
        if part.head == "detection":
            forward += share * (2 * h * h + h + GELU * h + 2 * h)
        else:
            forward += share * (2 * e * v + 2 * h * e + e + (GELU + LAYER_NORM) * e + (SOFTMAX + 2) * v)
        if part.unit:
            forward += share * 2 * h
        total += (TRAINED["paper"] if passes is None else passes[name]) * forward
    return total * length


def step_flops(config: PretrainConfig, accounting: Accounting = "torch", step: int = 0) -> int:
    """Operations of optimiser step ``step`` over full rows."""
    system = OBJECTIVES[config.objective]
    stage, fraction = system.stage(config, step), mask_fraction(config, step)
    passes = {**dict.fromkeys(stage.run, 1), **dict.fromkeys(stage.trained, TRAINED[accounting])}
    parts = {name: part for name, part in system.parts.items() if name in passes}
    if accounting == "paper":
        share = PAPER_MASKED * fraction / 0.15
        return round(config.batch_size * paper_row(config.shape, config.length, share, parts, passes))
    masked = masked_count(config.length, config.length, fraction)
    return config.batch_size * torch_row(config.shape, config.length, masked, parts, passes)


def run_flops(config: PretrainConfig, steps: int, accounting: Accounting = "torch") -> int:
    """Operations of the first ``steps`` optimiser steps."""
    total = 0
    for stage in OBJECTIVES[config.objective].stages(config):
        span = range(min(stage.first, steps), min(stage.end, steps))
        if config.final_mask_fraction is None:
            total += len(span) * step_flops(config, accounting, stage.first)
        else:
            total += sum(step_flops(config, accounting, step) for step in span)
    return total
