"""Floating point operations of a training step, counted from the shapes.

Two accountings. ``torch``: matrix products only, 2 per multiply-add, forward and twice that backward, as
``torch.utils.flop_counter`` counts what this code runs. ``paper``: as the ELECTRA paper's table counts (every
operation, embeddings looked up as matrix products, backward as much as forward), to set a run beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pretrain.config import PretrainConfig, Size
from pretrain.masking import masked_count

# Operations per element as the paper's authors count them (google-research/electra, flops_computation.py).
DROPOUT, LAYER_NORM, GELU, SOFTMAX = 4, 5, 8, 5


@dataclass(frozen=True)
class Network:
    """One of the two networks; ``ffn`` is the inner width of its feed-forward layers."""

    layers: int
    hidden: int
    heads: int
    embedding: int
    ffn: int


def networks(size: Size) -> tuple[Network, Network]:
    """Generator and discriminator of ``size``."""
    width = round(size.hidden * size.generator_fraction)
    return (
        Network(size.layers, width, max(1, width // 64), size.embedding, 4 * width),
        Network(size.layers, size.hidden, size.heads, size.embedding, 4 * size.hidden),
    )


def _matrix_products(net: Network, length: int) -> int:
    """Forward multiply-adds of one row in the layers and the embedding projection, times 2."""
    h, s = net.hidden, length
    layer = 4 * h * h + 2 * h * net.ffn + 2 * s * h  # projections; feed-forward; scores and weighted sum
    projection = net.embedding * h if net.embedding != h else 0
    return 2 * s * (net.layers * layer + projection)


def torch_row(size: Size, length: int, masked: int) -> int:
    """Matrix-product operations of one row's training step."""
    generator, discriminator = networks(size)
    head = masked * (generator.hidden * size.embedding + size.embedding * size.vocab_size)
    detector = length * (discriminator.hidden**2 + discriminator.hidden)
    forward = (
        _matrix_products(generator, length) + _matrix_products(discriminator, length) + 2 * (head + detector)
    )
    return 3 * forward


def _paper_layer(net: Network, length: int) -> int:
    """Operations per token of one layer."""
    h, s = net.hidden, length
    attention = 3 * (2 * h * h + h) + 2 * h * s + (SOFTMAX + DROPOUT + 1) * s * net.heads + 2 * h * s
    attention_output = 2 * h * h + (1 + DROPOUT + 1 + LAYER_NORM) * h
    feed_forward = 4 * h * net.ffn + (GELU + 1) * net.ffn + (1 + DROPOUT + 1 + LAYER_NORM) * h
    return attention + attention_output + feed_forward


def paper_row(size: Size, length: int, masked_share: float = 0.15625) -> float:
    """Operations of one row's training step in the paper's accounting, both networks."""
    total = 0.0
    for net, detector in zip(networks(size), (False, True), strict=True):
        h, e, v = net.hidden, net.embedding, size.vocab_size
        token = net.layers * _paper_layer(net, length)
        token += 2 * e * v + 2 * e * (length + 2) + (2 + LAYER_NORM + DROPOUT) * e
        token += 2 * h * e + h if h != e else 0
        if detector:
            token += 2 * h * h + h + GELU * h + 2 * h
            total += token
        else:
            head = 2 * e * v + 2 * h * e + e + (GELU + LAYER_NORM) * e + (SOFTMAX + 2) * v
            total += token + masked_share * head
    return 2 * total * length


def step_flops(config: PretrainConfig, accounting: Literal["torch", "paper"] = "torch") -> int:
    """Operations of one optimiser step over full rows."""
    if accounting == "paper":
        return round(config.batch_size * paper_row(config.shape, config.length))
    masked = masked_count(config.length, config.length, config.mask_fraction)
    return config.batch_size * torch_row(config.shape, config.length, masked)
