"""Training objectives: functions that return sums and counts, never means.

Sums and counts can be added over micro-batches and processes before anything is divided; a mean of means
differs as soon as two processes hold different numbers of masked tokens.

A new objective is one function and one entry in :data:`OBJECTIVES`: nothing else knows its name. The entry
says which networks it trains and what its chosen positions become; the function names its losses, what each
is counted over and its weight. The loop, the log, the held-out metrics, the operations counted and the export
follow from these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from pretrain.config import PretrainConfig
from pretrain.data import Batch
from pretrain.masking import BERT_HIDING, ELECTRA_HIDING, Hiding
from pretrain.model import ELECTRA, Electra, Part


class Loss(NamedTuple):
    """One term of an objective."""

    total: torch.Tensor
    """Scalar sum, nats."""
    over: Literal["chosen", "tokens"]
    """What the sum is divided by: chosen positions, or tokens that are no padding."""
    weight: float = 1.0
    """In the sum of all terms."""


@dataclass
class Outputs:
    """What one forward pass yields."""

    losses: dict[str, Loss]
    """By the name of the network that each trains."""
    guessed: dict[str, torch.Tensor] = field(default_factory=dict)
    """(chosen,) most likely ids by network; only without gradients."""
    sampled: torch.Tensor | None = None
    """(chosen,) ids put in place of the originals."""
    logits: torch.Tensor | None = None
    """(rows, tokens) of the discriminator."""
    replaced: torch.Tensor | None = None
    """(rows, tokens) bool: its labels."""

    def loss(self, chosen: float, tokens: float) -> torch.Tensor:
        """Scalar in nats: every term over its count, times its weight; a count of 0 stands for 1."""
        counts = {"chosen": chosen, "tokens": tokens}
        terms = [term.weight * term.total / max(1.0, counts[term.over]) for term in self.losses.values()]
        return torch.stack(terms).sum()


def add_losses(terms: dict[str, Loss], more: Mapping[str, Loss]) -> None:
    """Add the sums of ``more`` to those of ``terms``, without gradients."""
    for name, term in more.items():
        before = terms[name].total if name in terms else 0.0
        terms[name] = term._replace(total=term.total.detach() + before)


def mean_losses(terms: Mapping[str, Loss], chosen: float, tokens: float) -> dict[str, float]:
    """``loss`` (the weighted sum) and ``<network>_loss`` of summed terms, nats."""
    counts = {"chosen": chosen, "tokens": tokens}
    means = {name: float(term.total) / max(1.0, counts[term.over]) for name, term in terms.items()}
    weighted = sum(term.weight * means[name] for name, term in terms.items())
    return {"loss": weighted, **{f"{name}_loss": mean for name, mean in means.items()}}


@dataclass(frozen=True)
class System:
    """An objective with the networks it trains."""

    forward: Callable[[Electra, Batch, PretrainConfig, int], Outputs]
    """Of the networks, a batch, the settings and the step."""
    parts: Mapping[str, Part]
    """Networks by name; the first is the one that users fine-tune."""
    hiding: Hiding = ELECTRA_HIDING
    """What the chosen positions become in ``Batch.masked_ids``."""


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


def rtd(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """Replaced token detection (Clark et al. 2020): the generator fills in, the discriminator finds where.

    No gradient passes from the discriminator's loss through the drawn ids to the generator.
    """
    generator_sum, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch)
    corrupted, replaced = corrupt(batch.input_ids, batch.positions, sampled)
    logits = model.detect("discriminator", corrupted, batch)
    found = detection_loss(logits, replaced, batch.attention_mask)
    return Outputs(
        losses={
            "generator": Loss(generator_sum, "chosen"),
            "discriminator": Loss(found, "tokens", config.discriminator_weight),
        },
        guessed={"generator": guessed},
        sampled=sampled,
        logits=logits.detach(),
        replaced=replaced,
    )


def mlm(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """Masked language model (Devlin et al. 2019): one network, as large as ELECTRA's discriminator."""
    total, _, guessed = model.fill_in("encoder", batch.masked_ids, batch)
    return Outputs(losses={"encoder": Loss(total, "chosen")}, guessed={"encoder": guessed})


class Objective(nn.Module):
    """``model`` under the entry of :data:`OBJECTIVES` that ``config`` names: what data parallelism wraps."""

    def __init__(self, model: Electra, config: PretrainConfig) -> None:
        super().__init__()
        self.model = model
        self.config = config

    def forward(self, batch: Batch, step: int = 0) -> Outputs:
        """See the objective's function."""
        return OBJECTIVES[self.config.objective].forward(self.model, batch, self.config, step)


OBJECTIVES: dict[str, System] = {
    "rtd": System(rtd, ELECTRA),
    "mlm": System(mlm, {"encoder": Part("vocabulary")}, BERT_HIDING),
}


def build_model(config: PretrainConfig, cheap_dropout: bool = False) -> Electra:
    """The networks that ``config`` trains, with random weights that follow ``torch.manual_seed``."""
    return Electra(
        config.shape,
        cheap_dropout,
        OBJECTIVES[config.objective].parts,
        config.sharing,
        config.initial_fake_rate,
    )
