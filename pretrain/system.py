"""What an objective consists of: its networks, its losses and when which network is trained.

Losses are sums and counts, never means: these can be added over micro-batches and processes before anything
is divided; a mean of means differs as soon as two processes hold different numbers of masked tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch

from pretrain.config import PretrainConfig
from pretrain.data import Batch
from pretrain.masking import ELECTRA_HIDING, Hiding
from pretrain.model import Electra, Part
from pretrain.optim import learning_rate


class Loss(NamedTuple):
    """One term of an objective."""

    total: torch.Tensor
    """Scalar sum, nats."""
    over: Literal["chosen", "tokens"]
    """What the sum is divided by: chosen positions, or tokens that are no padding."""
    weight: float = 1.0
    """In the sum of all terms; 0 for what is only logged."""


@dataclass
class Outputs:
    """What one forward pass yields."""

    losses: dict[str, Loss]
    """By the name of the network that each trains, or a name that the log is to show."""
    guessed: dict[str, torch.Tensor] = field(default_factory=dict)
    """(chosen,) most likely ids by network; only without gradients."""
    sampled: torch.Tensor | None = None
    """(chosen,) ids that a generator put in place of the originals."""
    logits: torch.Tensor | None = None
    """Of the discriminator: (rows, tokens), or (chosen,) where its head works at these alone."""
    replaced: torch.Tensor | None = None
    """bool of that shape: its labels."""

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
    """``loss`` (the weighted sum) and ``<name>_loss`` of summed terms, nats."""
    counts = {"chosen": chosen, "tokens": tokens}
    means = {name: float(term.total) / max(1.0, counts[term.over]) for name, term in terms.items()}
    weighted = sum(term.weight * means[name] for name, term in terms.items())
    return {"loss": weighted, **{f"{name}_loss": mean for name, mean in means.items()}}


class Stage(NamedTuple):
    """A stretch of a run in which the same networks are trained, with a learning-rate schedule of its own."""

    first: int
    """Step it begins with."""
    end: int
    """Step that is no longer part of it."""
    trained: tuple[str, ...]
    """Networks whose weights change."""
    run: tuple[str, ...] = ()
    """Networks that are only run: their weights stay, and nothing that changes may be shared with them."""
    begin: Callable[[Electra], None] | None = None
    """What is done with the networks before its first step."""

    def rate(self, config: PretrainConfig, step: int) -> float:
        """Learning rate at ``step`` of the run."""
        return learning_rate(
            step - self.first,
            peak=config.learning_rate,
            total=self.end - self.first,
            warmup=config.warmup,
            schedule=config.schedule,
            decay=config.decay,
        )


@dataclass(frozen=True)
class System:
    """An objective with the networks it trains. The loop, the log, the held-out metrics, the operations
    counted, the command line and the export follow from these."""

    forward: Callable[[Electra, Batch, PretrainConfig, int], Outputs]
    """Of the networks, a batch, the settings and the step."""
    parts: Mapping[str, Part]
    """Networks by name; the first is the one that users fine-tune."""
    hiding: Hiding = ELECTRA_HIDING
    """What the chosen positions become in ``Batch.masked_ids``."""
    staged: Callable[[PretrainConfig], Sequence[Stage]] | None = None
    """The stages of a run, by their steps; None: one, in which every network is trained."""
    given: tuple[str, ...] = ()
    """Networks whose weights must be given (``--continue-from``)."""
    options: tuple[str, ...] = ()
    """Settings of :class:`PretrainConfig` that no other objective reads."""
    equal_sizes: bool = False
    """The networks must have one shape."""

    def stages(self, config: PretrainConfig) -> Sequence[Stage]:
        """The stages of a run of ``config``."""
        return self.staged(config) if self.staged else (Stage(0, config.steps, tuple(self.parts)),)

    def stage(self, config: PretrainConfig, step: int) -> Stage:
        """The stage that ``step`` belongs to."""
        return [stage for stage in self.stages(config) if stage.first <= step][-1]

    def trained(self, config: PretrainConfig) -> list[str]:
        """Networks that a run of ``config`` trains, in the order of ``parts``: those it exports."""
        names = {name for stage in self.stages(config) for name in stage.trained}
        return [name for name in self.parts if name in names]

    @property
    def judged(self) -> Literal["chosen", "tokens"]:
        """What a discriminator's fake rate is counted over."""
        return next((part.at for part in self.parts.values() if part.head == "detection"), "tokens")
