"""Training objectives.

A new objective is one function and one entry in :data:`OBJECTIVES`: nothing else knows its name. The entry,
a :class:`pretrain.system.System`, says which networks it trains, when, and what its chosen positions become;
the function names its losses, what each is counted over and its weight.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from pretrain.config import PretrainConfig, ramp
from pretrain.data import Batch
from pretrain.losses import copying_loss, corrupt, detection_loss, tell_apart
from pretrain.masking import BERT_HIDING
from pretrain.model import DISCRIMINATOR, ELECTRA, GENERATOR, Electra, Part, generator_shape
from pretrain.neighbours import look_at_neighbours
from pretrain.projection import draw
from pretrain.sharing import SHARINGS
from pretrain.system import Loss, Outputs, Stage, System
from provenance import UserError


def rtd(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """Replaced token detection (Clark et al. 2020): the generator fills in, the discriminator finds where.

    No gradient passes from the discriminator's loss through the drawn ids to the generator.
    """
    filling, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch)
    losses = {"generator": Loss(filling, "chosen")}
    return tell_apart(model, batch, config, sampled, losses, {"generator": guessed})


def mlm(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """Masked language model (Devlin et al. 2019): one network, as large as ELECTRA's discriminator."""
    total, _, guessed = model.fill_in("encoder", batch.masked_ids, batch)
    return Outputs(losses={"encoder": Loss(total, "chosen")}, guessed={"encoder": guessed})


def rtd_masked(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """The paper's ELECTRA 15 %: the discriminator is asked at the chosen positions only (section 3.5)."""
    filling, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch)
    corrupted, replaced = corrupt(batch.input_ids, batch.positions, sampled)
    asked = replaced.flatten()[batch.positions]
    logits = model.detect("discriminator", corrupted, batch, batch.positions)
    found = detection_loss(logits, asked, None)
    return Outputs(
        losses={
            "generator": Loss(filling, "chosen"),
            "discriminator": Loss(found, "chosen", config.discriminator_weight),
        },
        guessed={"generator": guessed},
        sampled=sampled,
        logits=logits.detach(),
        replaced=asked,
    )


def replace_mlm(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """The encoder predicts the originals of tokens that the generator drew, and never sees [MASK] (3.5)."""
    filling, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch)
    corrupted, _ = corrupt(batch.input_ids, batch.positions, sampled)
    total, _, again = model.fill_in("encoder", corrupted, batch)
    return Outputs(
        losses={"generator": Loss(filling, "chosen"), "encoder": Loss(total, "chosen")},
        guessed={"generator": guessed, "encoder": again},
        sampled=sampled,
    )


def all_tokens_mlm(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """:func:`replace_mlm` at every position, with a probability per token of copying what is seen (3.5).

    Its likeliest id is what it sees where it copies with more than one half. ``encoder`` is the loss at the
    chosen positions alone, to set beside that of others.
    """
    filling, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch)
    corrupted, replaced = corrupt(batch.input_ids, batch.positions, sampled)
    filled = model.predict("encoder", corrupted, batch)
    copy = model.unit("encoder", filled.hidden)
    losses = copying_loss(filled.nll, copy, ~replaced.flatten())
    present = losses if batch.attention_mask is None else losses * batch.attention_mask.flatten()
    again = torch.where(copy > 0, corrupted.flatten(), filled.guessed)
    return Outputs(
        losses={
            "generator": Loss(filling, "chosen"),
            "all_tokens": Loss(present.sum(), "tokens"),
            "encoder": Loss(losses.detach()[batch.positions].sum(), "chosen", 0.0),
        },
        guessed={"generator": guessed, "encoder": again[batch.positions]},
        sampled=sampled,
    )


def random(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """No generator: replacements are drawn without looking at the text (the paper's unigram generator)."""
    sampled = torch.multinomial(model.shares, max(1, len(batch.positions)), replacement=True)
    return tell_apart(model, batch, config, sampled[: len(batch.positions)])


def _frozen_generator(
    model: Electra, batch: Batch, config: PretrainConfig, temperature: float = 1.0
) -> Outputs:
    """:func:`rtd` with a generator that stays as it is; its loss is only logged."""
    with model.frozen("generator"):
        filling, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch, temperature)
    losses = {"generator": Loss(filling, "chosen", 0.0)}
    return tell_apart(model, batch, config, sampled, losses, {"generator": guessed})


def two_stages(config: PretrainConfig) -> tuple[Stage, Stage]:
    """The generator's stage; then the discriminator's, which starts from the generator's weights."""
    switch = max(1, round(config.switch * config.steps))
    begin = partial(Electra.copy_encoder, source="generator", target="discriminator")
    return (
        Stage(0, switch, ("generator",)),
        Stage(switch, config.steps, ("discriminator",), ("generator",), begin),
    )


def two_stage(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """First the generator alone, then the discriminator against the generator as it is then (3.2)."""
    if step >= two_stages(config)[1].first:
        return _frozen_generator(model, batch, config)
    filling, _, guessed = model.fill_in("generator", batch.masked_ids, batch)
    return Outputs(losses={"generator": Loss(filling, "chosen")}, guessed={"generator": guessed})


def adversarial(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """The generator is rewarded with the discriminator's loss at what it drew (appendix F; Williams 1992).

    A policy gradient over one draw per position, which is held to act on its own. The baseline is
    ``-ln sigmoid(b)`` of an output ``b`` of the generator, fitted to the reward by the cross-entropy with
    ``exp(-reward)``; it does not train the rest of the generator. ``generator`` is the loss of the originals,
    only logged.
    """
    hidden = model.hidden_states("generator", batch.masked_ids, batch).flatten(0, 1)[batch.positions]
    log_probabilities = model.log_probabilities("generator", hidden)
    sampled = draw(log_probabilities.detach().exp(), torch.rand(len(hidden), device=hidden.device))
    original = batch.input_ids.flatten()[batch.positions]
    filling = -log_probabilities.detach().gather(1, original.unsqueeze(1)).sum()
    guessed = {"generator": log_probabilities.argmax(dim=-1)}
    found = tell_apart(model, batch, config, sampled, {"generator": Loss(filling, "chosen", 0.0)}, guessed)

    assert found.logits is not None
    assert found.replaced is not None
    logits, replaced = (x.flatten()[batch.positions] for x in (found.logits, found.replaced))
    reward = functional.binary_cross_entropy_with_logits(logits, replaced.float(), reduction="none")
    baseline = model.unit("generator", hidden.detach())
    advantage = reward - functional.softplus(-baseline.detach())
    policy = -(advantage * log_probabilities.gather(1, sampled.unsqueeze(1)).squeeze(1)).sum()
    fit = functional.binary_cross_entropy_with_logits(baseline, torch.exp(-reward), reduction="sum")
    found.losses |= {"policy": Loss(policy, "chosen"), "baseline": Loss(fit, "chosen")}
    return found


def only_the_discriminator(config: PretrainConfig) -> tuple[Stage]:
    """One stage, in which the generator is only run."""
    return (Stage(0, config.steps, ("discriminator",), ("generator",)),)


def frozen(model: Electra, batch: Batch, config: PretrainConfig, step: int) -> Outputs:
    """A generator from elsewhere that is never updated; the temperature of its draws follows a schedule.

    Fast-ELECTRA (Dong et al. 2023, arXiv:2310.07347), whose temperature falls, so that the task gets harder.
    """
    temperature = ramp(config.temperature, config.final_temperature, step, config.steps)
    return _frozen_generator(model, batch, config, temperature)


ENCODER = {"encoder": Part("vocabulary"), "generator": GENERATOR}
OBJECTIVES: dict[str, System] = {
    "rtd": System(rtd, ELECTRA),
    "mlm": System(mlm, {"encoder": Part("vocabulary")}, BERT_HIDING),
    "rtd-masked": System(rtd_masked, {**ELECTRA, "discriminator": Part("detection", at="chosen")}),
    "replace-mlm": System(replace_mlm, ENCODER),
    "all-tokens-mlm": System(
        all_tokens_mlm, {**ENCODER, "encoder": Part("vocabulary", at="tokens", unit=True)}
    ),
    "random": System(random, {"discriminator": DISCRIMINATOR}, options=("replacements",)),
    "two-stage": System(two_stage, ELECTRA, staged=two_stages, options=("switch",), equal_sizes=True),
    "adversarial": System(adversarial, {**ELECTRA, "generator": dataclasses.replace(GENERATOR, unit=True)}),
    "frozen": System(
        frozen,
        ELECTRA,
        staged=only_the_discriminator,
        given=("generator",),
        options=("temperature", "final_temperature"),
    ),
}


def check(config: PretrainConfig) -> None:
    """Whether the settings fit the objective and each other.

    Raises:
        UserError: networks that must be of one size are not; a network that stays as it is shares weights
            with one that is trained; a setting of another objective is given.
    """
    system, sharing = OBJECTIVES[config.objective], SHARINGS[config.sharing]
    wanting = [f"objective {config.objective}"] * system.equal_sizes
    wanting += [f"sharing {config.sharing}"] * (sharing.equal_sizes and len(system.parts) > 1)
    ours, theirs = (config.shape.hidden, config.shape.heads), generator_shape(config.shape)
    if wanting and ours != theirs:
        raise UserError(
            f"{wanting[0]} needs networks of one size, and here they are {ours[0]} and {theirs[0]} wide; "
            "give --generator-fraction 1"
        )
    still = [name for stage in system.stages(config) for name in stage.run]
    if still and sharing.couples:
        others = ", ".join(name for name, way in SHARINGS.items() if not way.couples)
        raise UserError(
            f"objective {config.objective} leaves its {still[0]} as it is, which then cannot share weights "
            f"that are trained (sharing {config.sharing}); give --sharing {others.replace(', ', ' or ')}"
        )
    defaults = {field.name: field.default for field in dataclasses.fields(PretrainConfig)}
    for name, other in OBJECTIVES.items():
        for option in other.options:
            if option not in system.options and getattr(config, option) != defaults[option]:
                raise UserError(f"{option} is a setting of objective {name}, not of {config.objective}")


class Objective(nn.Module):
    """``model`` under the entry of :data:`OBJECTIVES` that ``config`` names: what data parallelism wraps."""

    def __init__(self, model: Electra, config: PretrainConfig) -> None:
        super().__init__()
        self.model = model
        self.config = config

    def forward(self, batch: Batch, step: int = 0) -> Outputs:
        """See the objective's function."""
        return OBJECTIVES[self.config.objective].forward(self.model, batch, self.config, step)


def build_model(config: PretrainConfig, cheap_dropout: bool = False) -> Electra:
    """The networks of ``config``, with random weights that follow ``torch.manual_seed``.

    Those that it never trains need no gradient.

    Raises:
        UserError: see :func:`check`.
    """
    check(config)
    system = OBJECTIVES[config.objective]
    model = Electra(config.shape, cheap_dropout, system.parts, config.sharing, config.initial_fake_rate)
    if config.neighbour_heads:
        for electra in {network.electra: None for network in model.networks()}:
            look_at_neighbours(electra)
    for name in set(system.parts) - set(system.trained(config)):
        getattr(model, name).requires_grad_(False)
    return model
