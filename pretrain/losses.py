"""Pieces that objectives are made of: replacing, telling apart, copying."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn import functional

from pretrain.config import PretrainConfig
from pretrain.data import Batch
from pretrain.model import Electra
from pretrain.system import Loss, Outputs


def corrupt(
    input_ids: torch.Tensor, positions: torch.Tensor, sampled: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sampled ids put at the chosen positions, and the labels: replaced where the id is another than before.

    Args:
        input_ids: (rows, tokens) original ids.
        positions: (chosen,) indices into the flattened rows.
        sampled: (chosen,) ids.

    Returns:
        (rows, tokens) ids and (rows, tokens) bool; a lucky guess is original.
    """
    corrupted = input_ids.flatten().index_put((positions,), sampled).view_as(input_ids)
    return corrupted, corrupted != input_ids


def detection_loss(
    logits: torch.Tensor, replaced: torch.Tensor, attention_mask: torch.Tensor | None
) -> torch.Tensor:
    """Sum of the binary cross-entropies of (rows, tokens) over all tokens but padding, nats."""
    losses = functional.binary_cross_entropy_with_logits(logits, replaced.float(), reduction="none")
    return losses.sum() if attention_mask is None else (losses * attention_mask).sum()


def tell_apart(
    model: Electra,
    batch: Batch,
    config: PretrainConfig,
    sampled: torch.Tensor,
    losses: Mapping[str, Loss] | None = None,
    guessed: Mapping[str, torch.Tensor] | None = None,
) -> Outputs:
    """The discriminator looks for ``sampled`` (chosen,) among all tokens; its loss comes after ``losses``."""
    corrupted, replaced = corrupt(batch.input_ids, batch.positions, sampled)
    logits = model.detect("discriminator", corrupted, batch)
    found = detection_loss(logits, replaced, batch.attention_mask)
    return Outputs(
        losses={**(losses or {}), "discriminator": Loss(found, "tokens", config.discriminator_weight)},
        guessed=dict(guessed or {}),
        sampled=sampled if guessed else None,
        logits=logits.detach(),
        replaced=replaced,
    )


def copying_loss(nll: torch.Tensor, copy: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
    """Negative log likelihoods where the token seen is the original with the copy probability.

    ``-ln(D · [seen is the original] + (1 - D) · p)`` with ``D = sigmoid(copy)`` and ``p = exp(-nll)``.

    Args:
        nll: (positions,) of the original under the softmax alone.
        copy: (positions,) logits of copying.
        same: (positions,) bool: the token seen is the original.
    """
    predicted = functional.logsigmoid(-copy) - nll
    return -torch.where(same, torch.logaddexp(functional.logsigmoid(copy), predicted), predicted)
