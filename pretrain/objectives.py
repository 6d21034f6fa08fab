"""Training objectives: functions that return sums and counts, never means.

Sums and counts can be added over micro-batches and processes before anything is divided; a mean of means
differs as soon as two processes hold different numbers of masked tokens.
A new objective is one function and one entry in :data:`OBJECTIVES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from pretrain.data import Batch
from pretrain.model import Electra


@dataclass
class Outputs:
    """What one forward pass yields.

    generator_sum, discriminator_sum: scalar sums of nats, over chosen positions and all but padding.
    sampled, guessed: (chosen,) ids the generator drew and held most likely (that without gradients only).
    logits: (rows, tokens) of the discriminator. replaced: (rows, tokens) bool labels.
    """

    generator_sum: torch.Tensor
    discriminator_sum: torch.Tensor
    sampled: torch.Tensor
    guessed: torch.Tensor
    logits: torch.Tensor
    replaced: torch.Tensor


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


def rtd(model: Electra, batch: Batch) -> Outputs:
    """Replaced token detection (Clark et al. 2020): the generator fills in, the discriminator finds where.

    No gradient passes from the discriminator's loss through the drawn ids to the generator.
    """
    input_ids, positions = batch.input_ids, batch.positions
    attention_mask, types = batch.attention_mask, batch.token_type_ids
    labels = input_ids.flatten()[positions]
    generator_sum, sampled, guessed = model.generator_loss(
        batch.masked_ids, attention_mask, types, positions, labels
    )
    corrupted, replaced = corrupt(input_ids, positions, sampled)
    logits = model.discriminator_logits(corrupted, attention_mask, types)
    losses = functional.binary_cross_entropy_with_logits(logits, replaced.float(), reduction="none")
    if attention_mask is not None:
        losses = losses * attention_mask
    return Outputs(generator_sum, losses.sum(), sampled, guessed, logits.detach(), replaced)


class Objective(nn.Module):
    """``model`` under an entry of :data:`OBJECTIVES`: the one module that data parallelism wraps."""

    def __init__(self, model: Electra, name: str) -> None:
        super().__init__()
        self.model = model
        self.name = name

    def forward(self, batch: Batch) -> Outputs:
        """See the objective's function."""
        return OBJECTIVES[self.name](self.model, batch)


OBJECTIVES: dict[str, Callable[..., Outputs]] = {"rtd": rtd}
