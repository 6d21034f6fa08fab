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
    sampled: (chosen,) ids the generator drew. logits: (rows, tokens) of the discriminator.
    replaced: (rows, tokens) bool labels. guessed: (chosen,) most likely ids.
    """

    generator_sum: torch.Tensor
    discriminator_sum: torch.Tensor
    sampled: torch.Tensor
    logits: torch.Tensor
    replaced: torch.Tensor
    guessed: torch.Tensor | None = None


@torch.no_grad()
def sample(logits: torch.Tensor) -> torch.Tensor:
    """One id per row of ``logits`` (rows, vocabulary), drawn at temperature 1.

    The same distribution as the Gumbel maximum, by inverting the cumulative sum: one uniform number a row in
    place of one per vocabulary entry. Always in fp32; an id of probability 0 is never drawn.
    """
    cumulative = functional.softmax(logits, dim=-1, dtype=torch.float32).cumsum(dim=-1)
    # Stay a rounding step below 1, else the product could reach the total and fall off the end.
    uniform = torch.rand(len(logits), 1, device=logits.device).clamp(max=1 - 2**-23)
    return torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True).squeeze(1)


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


def rtd(model: Electra, batch: Batch, guess: bool = False) -> Outputs:
    """Replaced token detection (Clark et al. 2020): the generator fills in, the discriminator finds where.

    Args:
        model: both networks.
        batch: original and masked ids with the chosen positions.
        guess: also return the generator's most likely ids.
    """
    input_ids, positions = batch.input_ids, batch.positions
    attention_mask, types = batch.attention_mask, batch.token_type_ids
    logits = model.generator_logits(batch.masked_ids, attention_mask, types, positions).float()
    generator_sum = functional.cross_entropy(logits, input_ids.flatten()[positions], reduction="sum")
    sampled = sample(logits.detach())
    corrupted, replaced = corrupt(input_ids, positions, sampled)

    scores = model.discriminator_logits(corrupted, attention_mask, types).float()
    losses = functional.binary_cross_entropy_with_logits(scores, replaced.float(), reduction="none")
    if attention_mask is not None:
        losses = losses * attention_mask
    guessed = logits.detach().argmax(dim=-1) if guess else None
    return Outputs(generator_sum, losses.sum(), sampled, scores.detach(), replaced, guessed)


class Objective(nn.Module):
    """``model`` under an entry of :data:`OBJECTIVES`: what data parallelism wraps, both networks in one module."""

    def __init__(self, model: Electra, name: str) -> None:
        super().__init__()
        self.model = model
        self.name = name

    def forward(self, batch: Batch) -> Outputs:
        """See the objective's function."""
        return OBJECTIVES[self.name](self.model, batch)


OBJECTIVES: dict[str, Callable[..., Outputs]] = {"rtd": rtd}
