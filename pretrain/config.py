"""Sizes and recipes.

A new size is one entry in :data:`SIZES` and one in :data:`PRESETS`. What changes the numbers is in
:class:`PretrainConfig` and hashed to the config id; what does not is in :class:`Runtime`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import tyro

from corpus.vocab import VOCAB_SIZE
from provenance import UserError, plain


@dataclass(frozen=True)
class Size:
    """Shape of the two networks; the generator keeps all layers and scales the width."""

    layers: int
    """Of both networks."""
    hidden: int
    """Width of the discriminator's layers; feed-forward layers are four times as wide."""
    heads: int
    """Attention heads of the discriminator; a narrower generator's are 64 wide."""
    embedding: int
    """Width of the shared embeddings."""
    generator_fraction: float = 0.25
    """Width of the generator as a share of the discriminator's."""
    vocab_size: int = VOCAB_SIZE
    """Entries of the vocabulary: those of the corpus."""
    max_positions: int = 512
    """Tokens that a row may have at most, in fine-tuning too."""
    dropout: float = 0.1
    """Dropout rate of hidden states and of attention probabilities."""
    initializer_range: float = 0.02
    """Standard deviation of the normal distribution that weights are drawn from."""

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "embedding", "generator_fraction", "initializer_range"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout {self.dropout} is not a rate from 0 to below 1")
        if self.hidden % self.heads:
            raise UserError(f"hidden {self.hidden} does not divide into {self.heads} heads")


@dataclass(frozen=True)
class PretrainConfig:
    """Everything that changes the weights a run ends with."""

    shape: Size
    steps: int
    """Optimiser steps of the whole schedule."""
    learning_rate: float
    """Peak learning rate."""
    batch_size: int
    """Rows in one step over all processes and micro-batches."""
    length: int = 512
    """Tokens in a row; the corpus must hold rows of this length."""
    warmup: int = 10_000
    """Steps the learning rate rises for."""
    schedule: str = "linear"
    """Of the learning rate: an entry of pretrain.optim.SCHEDULES (linear, wsd)."""
    decay: float = 0.1
    """Share of the run in which the rate of wsd decays."""
    objective: str = "rtd"
    """Training objective, an entry of pretrain.objectives.OBJECTIVES:
    rtd (ELECTRA), mlm (BERT), rtd-masked (loss at chosen positions only), replace-mlm and all-tokens-mlm
    (originals of drawn tokens, at chosen or at all positions), random (no generator), two-stage (generator
    first), adversarial (generator rewarded for fooling), frozen (generator from a folder)."""
    sharing: str = "embeddings"
    """What the networks share, an entry of pretrain.sharing.SHARINGS:
    embeddings, none, all (one encoder, two heads; needs equal sizes), gdes (the generator's word table,
    detached, plus a residual)."""
    masking: str = "token"
    """What is masked as one unit, an entry of pretrain.masking.MASKINGS:
    token, word, ngram (1 to 4 words)."""
    mask_fraction: float = 0.15
    """Share of a row's tokens that is chosen."""
    final_mask_fraction: float | None = None
    """That share at the end of the run, reached in a straight line; default: it stays."""
    replacements: Literal["uniform", "unigrams"] = "uniform"
    """What random draws from: all ids alike, or as often as they stand in the corpus."""
    switch: float = 0.5
    """Share of the run after which two-stage freezes its generator and trains its discriminator."""
    temperature: float = 1.0
    """Of the draws from frozen's generator; above 1 they are more random."""
    final_temperature: float | None = None
    """That temperature at the end of the run, reached in a straight line; default: it stays."""
    discriminator_weight: float = 50.0
    """Of the discriminator's loss in the sum with the generator's (both in nats per token)."""
    initial_unigrams: bool = False
    """Start the bias of outputs over the vocabulary at the logarithm of the corpus's token frequencies."""
    initial_fake_rate: float = 0.5
    """Share of replaced tokens that the discriminator's last bias starts from; 0.5 is a bias of 0."""
    neighbour_heads: bool = False
    """Start with heads in the first layer that look at a token's neighbours; see pretrain.neighbours."""
    word_rate: float = 1.0
    """Learning rate of the word table, as a multiple of that of the other weights."""
    weight_decay: float = 0.01
    """Decoupled, times the learning rate; none for biases and LayerNorms."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's decay rates of the two moments."""
    eps: float = 1e-6
    """Adam's, added outside the root."""
    clip: float = 1.0
    """Global gradient norm."""
    dtype: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic of matrix products; auto is bf16 where the machine is fast at it. Weights are fp32."""
    cheap_dropout: bool = True
    """On CPUs, dropout masks from random bytes (rate in 256ths) in place of PyTorch's."""
    seed: int = 0
    """Of weights, order, masks, draws and dropout."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "length"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.warmup < 0 or not 0 < self.learning_rate < math.inf:
            raise UserError("warmup must not be negative and learning_rate must be a number above 0")
        for name in ("mask_fraction", "final_mask_fraction", "switch", "decay", "initial_fake_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise UserError(f"{name} {value} is not a share between 0 and 1")
        for name in ("temperature", "final_temperature", "word_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"{name} {value} is not a number above 0")
        if self.neighbour_heads and self.shape.embedding % 2:
            raise UserError(
                f"embedding is {self.shape.embedding}, and neighbour heads need an even one; change it, "
                "or give --no-neighbour-heads"
            )
        if self.length > self.shape.max_positions:
            raise UserError(
                f"length {self.length} is above the model's {self.shape.max_positions} positions; lower it"
            )


def ramp(first: float, last: float | None, step: int, steps: int) -> float:
    """A setting that moves in a straight line over a run; ``first`` for good where ``last`` is None."""
    return first if last is None else first + (last - first) * step / steps


@dataclass(frozen=True)
class Runtime:
    """How a run is carried out: recorded, never hashed."""

    micro_batch: int | None = None
    """Rows in one forward pass of one process; default: as many as make 16,384 tokens."""
    threads: int | None = None
    """CPU threads of each process; default: OMP_NUM_THREADS, else PyTorch's choice (all cores)."""
    log_every: int = 20
    """Steps between two lines of log.jsonl."""
    eval_every: int | None = None
    """Steps between two held-out evaluations; default: a twentieth of the run, 100 to 5,000."""
    eval_rows: int = 256
    """Held-out rows an evaluation reads."""
    save_every: int | None = None
    """Steps between two checkpoints, the last two stay; default: a twentieth of the run, 100 to 5,000."""
    milestone_every: int | None = None
    """Checkpoints at multiples of this many steps stay for good; default: none does."""
    compile: bool = False
    """Compile the layers with torch.compile: minutes at the start, then faster; equal within rounding."""
    tensorboard: bool = True
    """Write TensorBoard curves under OUT/tensorboard."""
    name: str | None = None
    """Name of the exported model; default zh-electra-SIZE."""

    def __post_init__(self) -> None:
        for name in ("threads", "log_every", "eval_every", "save_every", "milestone_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}; it must be at least 1")
        if self.eval_rows < 0:
            raise UserError(f"eval_rows is {self.eval_rows}; it must not be negative")


SIZES: dict[str, Size] = {
    "tiny": Size(layers=4, hidden=128, heads=2, embedding=128, generator_fraction=1.0),
    "mini": Size(layers=4, hidden=256, heads=4, embedding=128, generator_fraction=1.0),
    "small": Size(layers=12, hidden=256, heads=4, embedding=128),
    "small-ex": Size(layers=24, hidden=256, heads=4, embedding=256),
    "base": Size(layers=12, hidden=768, heads=12, embedding=768),
    "large": Size(layers=24, hidden=1024, heads=16, embedding=1024),
}


def _for_cpus(size: str, steps: int, warmup: int) -> PretrainConfig:
    """Ours: what leaves the line of the fake rate soonest on two cores (docs/pretraining.md, the study)."""
    return PretrainConfig(
        replace(SIZES[size], dropout=0.0, initializer_range=0.04),
        steps=steps,
        learning_rate=5e-4,
        batch_size=8,
        length=128,
        warmup=warmup,
        sharing="all",
        mask_fraction=0.3,
        discriminator_weight=2.0,
        initial_unigrams=True,
        initial_fake_rate=0.26,
        neighbour_heads=True,
        word_rate=10.0,
    )


PRESETS: dict[str, PretrainConfig] = {
    "tiny": _for_cpus("tiny", steps=400, warmup=40),
    "mini": _for_cpus("mini", steps=40_000, warmup=400),
    # As HFL trained theirs (github.com/ymcui/Chinese-ELECTRA).
    "small": PretrainConfig(SIZES["small"], steps=1_000_000, learning_rate=5e-4, batch_size=1024),
    "small-ex": PretrainConfig(SIZES["small-ex"], steps=2_000_000, learning_rate=5e-4, batch_size=384),
    "base": PretrainConfig(SIZES["base"], steps=1_000_000, learning_rate=2e-4, batch_size=256),
    "large": PretrainConfig(SIZES["large"], steps=2_000_000, learning_rate=1e-4, batch_size=96),
}

if TYPE_CHECKING:
    SizeName = str
else:  # what the command lines accept
    SizeName = tyro.extras.literal_type_from_choices(PRESETS)


def config_from(mapping: Mapping[str, Any]) -> PretrainConfig:
    """The configuration stored under ``config`` in a manifest.

    Raises:
        UserError: an entry is missing or unknown.
    """
    try:
        values = dict(mapping)
        return PretrainConfig(**{**values, "shape": Size(**values["shape"]), "betas": tuple(values["betas"])})
    except (KeyError, TypeError) as error:
        raise UserError(f"this is not a pretraining configuration of this version ({error})") from None


def differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    """Settings that differ, one line each: ``name: old -> new``."""
    old, new = plain(old), plain(new)
    lines: list[str] = []
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            lines += differences(a, b, f"{prefix}{key}.")
        elif a != b:
            lines.append(f"{prefix}{key}: {a} -> {b}")
    return lines


def micro_batch(config: PretrainConfig, runtime: Runtime, processes: int) -> int:
    """Rows of one forward pass; divides the global batch exactly.

    Raises:
        UserError: ``batch_size`` does not divide into processes and micro-batches.
    """
    local, rest = divmod(config.batch_size, processes)
    if rest:
        raise UserError(f"batch_size {config.batch_size} does not divide by {processes} processes")
    if runtime.micro_batch is None:
        limit = max(1, 16_384 // config.length)
        return max(n for n in range(1, min(limit, local) + 1) if local % n == 0)
    if runtime.micro_batch < 1 or local % runtime.micro_batch:
        raise UserError(
            f"the {local} rows of one process do not divide into micro-batches of {runtime.micro_batch}"
        )
    return runtime.micro_batch


def every(value: int | None, steps: int, parts: int) -> int:
    """``value`` in steps; default the run divided into ``parts``, but 100 to 5,000 steps."""
    return min(5000, max(100, steps // parts)) if value is None else max(1, value)
