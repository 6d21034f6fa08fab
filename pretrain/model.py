"""The networks that are trained together, as one module, on transformers' Electra parts."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining, PreTrainedModel

from corpus.vocab import CLS, MASK, PAD, SEP
from pretrain.config import Size
from pretrain.data import Batch
from pretrain.dropout import use_cheap_dropout
from pretrain.projection import vocabulary_loss
from pretrain.sharing import SHARINGS, Disentangled, word_table


@dataclass(frozen=True)
class Part:
    """One network of a system: what it predicts and how wide it is."""

    head: Literal["vocabulary", "detection"]
    """What the original token is, or whether it was replaced."""
    narrow: bool = False
    """Of the generator's width (``Size.generator_fraction``) in place of the full one."""
    at: Literal["chosen", "tokens"] = "chosen"
    """Where its head works: at the chosen positions, or at every token."""
    unit: bool = False
    """It has one more output, :meth:`Electra.unit`, which is no part of what is exported."""


GENERATOR = Part("vocabulary", narrow=True)
DISCRIMINATOR = Part("detection", at="tokens")
ELECTRA = {"discriminator": DISCRIMINATOR, "generator": GENERATOR}
FILLED_UP = 32  # chosen positions are filled up to a multiple of this
# Keys of the word table in the weights of a network.
WORDS = ("electra.embeddings.word_embeddings.weight", "generator_lm_head.weight")


class Filled(NamedTuple):
    """What a network says of some positions."""

    nll: torch.Tensor
    """(positions,) negative log likelihoods of the originals, nats."""
    sampled: torch.Tensor
    """(positions,) ids drawn."""
    guessed: torch.Tensor
    """(positions,) most likely ids; only without gradients."""
    hidden: torch.Tensor
    """(positions, width) last layer."""


def discriminator_config(size: Size) -> ElectraConfig:
    """The discriminator's transformers configuration, and that of every network of full width."""
    return ElectraConfig(
        vocab_size=size.vocab_size,
        embedding_size=size.embedding,
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.hidden,
        max_position_embeddings=size.max_positions,
        hidden_dropout_prob=size.dropout,
        attention_probs_dropout_prob=size.dropout,
        initializer_range=size.initializer_range,
    )


def generator_shape(size: Size) -> tuple[int, int]:
    """Width and heads of the generator: the width scaled, heads of 64 (google-research/electra).

    At full width it has the discriminator's heads.
    """
    width = round(size.hidden * size.generator_fraction)
    return width, size.heads if width == size.hidden else max(1, width // 64)


def generator_config(size: Size) -> ElectraConfig:
    """The generator's transformers configuration: all layers, :func:`generator_shape`."""
    config = discriminator_config(size)
    config.hidden_size, config.num_attention_heads = generator_shape(size)
    config.intermediate_size = 4 * config.hidden_size
    return config


def build(part: Part, size: Size) -> PreTrainedModel:
    """``part`` with random weights."""
    config = generator_config(size) if part.narrow else discriminator_config(size)
    return ElectraForMaskedLM(config) if part.head == "vocabulary" else ElectraForPreTraining(config)


def token_shares(counts: np.ndarray) -> np.ndarray:
    """(vocabulary,) shares of ids that stand ``counts`` times in the corpus.

    Special tokens, which are never asked for, have none.
    """
    counts = np.where(np.isin(np.arange(len(counts)), (PAD, CLS, SEP, MASK)), 0, counts)
    return counts / counts.sum()


def _in_autocast_dtype(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
    """Forward hook: without it a network that projects no embeddings casts every layer's input anew."""
    kind = output.device.type
    return output.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else output


def _filled_up(rows: torch.Tensor) -> torch.Tensor:
    """``rows`` and as many of zeros after them as make a multiple of :data:`FILLED_UP`.

    How many positions are chosen differs from step to step. For every new shape of a bf16 product oneDNN
    keeps a kernel of half a MiB, which lies between the tensors on the heap: a run grew by 6 MiB a step.
    """
    return functional.pad(rows, (*(0, 0) * (rows.dim() - 1), 0, -len(rows) % FILLED_UP))


class Electra(nn.Module):
    """The networks of a system; each is an attribute under its name.

    Args:
        size: shape of the networks.
        cheap_dropout: see :func:`pretrain.dropout.use_cheap_dropout`.
        parts: the networks by name; the first is the one that users fine-tune.
        sharing: an entry of :data:`pretrain.sharing.SHARINGS`.
        fake_rate: the share of replaced tokens that detection heads start from: their last bias is its logit.
    """

    def __init__(
        self,
        size: Size,
        cheap_dropout: bool = False,
        parts: Mapping[str, Part] = ELECTRA,
        sharing: str = "embeddings",
        fake_rate: float = 0.5,
    ) -> None:
        super().__init__()
        self.parts, self.sharing = dict(parts), sharing
        for name, part in parts.items():
            network: Any = build(part, size)
            if part.head == "detection":
                bias = network.discriminator_predictions.dense_prediction.bias
                nn.init.constant_(bias, math.log(fake_rate / (1 - fake_rate)))
            setattr(self, name, network)
        self.units = nn.ModuleDict(
            {name: nn.Linear(getattr(self, name).config.hidden_size, 1) for name in parts if parts[name].unit}
        )
        # What ids are drawn from where no network draws: all alike, until the corpus's shares are put here.
        self.shares: torch.Tensor
        alike = torch.from_numpy(token_shares(np.ones(size.vocab_size))).float()
        self.register_buffer("shares", alike, persistent=False)
        if cheap_dropout:
            use_cheap_dropout(self)
        self.tie()
        for embeddings in {network.electra.embeddings for network in self.networks()}:
            embeddings.register_forward_hook(_in_autocast_dtype)

    def networks(self) -> list[Any]:
        """In the order of ``parts``."""
        return [getattr(self, name) for name in self.parts]

    def tie(self) -> None:
        """Share what is shared; again after anything that may have copied parameters."""
        SHARINGS[self.sharing].tie(self.networks())
        for network in self.networks():
            network.tie_weights()  # the output over the vocabulary is the word table

    def standalone(self, name: str) -> PreTrainedModel:
        """A copy of network ``name`` that stands for itself, as transformers knows it."""
        network = copy.deepcopy(getattr(self, name))
        words = network.get_input_embeddings()
        if isinstance(words, Disentangled):
            plain = nn.Embedding.from_pretrained(
                word_table(network).detach().clone(), freeze=False, padding_idx=words.padding_idx
            )
            network.set_input_embeddings(plain)
        network.tie_weights()
        return cast(PreTrainedModel, network)

    def load_network(self, name: str, weights: Mapping[str, torch.Tensor], strict: bool = True) -> None:
        """Put ``weights``, as :meth:`standalone` has them, into network ``name``.

        Raises:
            RuntimeError: ``strict``, and a weight is missing or left over.
        """
        network = getattr(self, name)
        words = network.get_input_embeddings()
        if isinstance(words, Disentangled):
            weights = {k: v - words.base() if k in WORDS else v for k, v in weights.items()}
        network.load_state_dict(weights, strict)

    def copy_encoder(self, source: str, target: str) -> None:
        """Network ``target`` gets the encoder's weights of ``source``, which has the same shape."""
        weights = self.standalone(source).state_dict()
        self.load_network(
            target, {k: v for k, v in weights.items() if k.startswith("electra.")}, strict=False
        )

    @contextlib.contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """Meanwhile network ``name`` is run without dropout and without gradients."""
        network = getattr(self, name)
        training = network.training
        network.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            network.train(training)

    def start_at_frequencies(self, counts: np.ndarray, but: Collection[str] = ()) -> None:
        """Set the bias of outputs over the vocabulary to the log frequency of each token.

        So what needs no context is known before the first step (Meister et al. 2023, arXiv:2212.09686). A
        thousandth goes to all ids alike, so that none is impossible.

        Args:
            counts: (vocabulary,) occurrences, not all 0.
            but: networks that keep theirs.
        """
        shares = 0.999 * token_shares(counts) + 0.001 / len(counts)
        for name, part in self.parts.items():
            if part.head == "vocabulary" and name not in but:
                with torch.no_grad():
                    getattr(self, name).generator_lm_head.bias.copy_(torch.from_numpy(np.log(shares)))

    def hidden_states(self, name: str, input_ids: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Last layer of network ``name`` over ``input_ids`` of ``batch``'s shape: (rows, tokens, width)."""
        electra = getattr(self, name).electra
        return cast(
            torch.Tensor,
            electra(
                input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids
            ).last_hidden_state,
        )

    def predict(
        self,
        name: str,
        input_ids: torch.Tensor,
        batch: Batch,
        positions: torch.Tensor | None = None,
        temperature: float = 1.0,
    ) -> Filled:
        """Network ``name`` predicts the originals at ``positions`` from ``input_ids``.

        Args:
            positions: into the flattened rows; None: at all of them, padding included.
            temperature: of the draws.
        """
        network = getattr(self, name)
        hidden = self.hidden_states(name, input_ids, batch).flatten(0, 1)
        labels = batch.input_ids.flatten()
        if positions is not None:
            hidden, labels = hidden[positions], labels[positions]
        head = network.generator_predictions(_filled_up(hidden))
        bias = network.generator_lm_head.bias
        found = vocabulary_loss(head, word_table(network), bias, _filled_up(labels), temperature)
        nll, sampled, guessed = (values[: len(labels)] for values in found)
        return Filled(nll, sampled, guessed, hidden)

    def fill_in(
        self, name: str, input_ids: torch.Tensor, batch: Batch, temperature: float = 1.0
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Network ``name`` predicts the originals at the chosen positions only, from ``input_ids``.

        Returns:
            Sum of the negative log likelihoods, nats; ids drawn and most likely ids, as in :class:`Filled`.
        """
        filled = self.predict(name, input_ids, batch, batch.positions, temperature)
        return filled.nll.sum(), filled.sampled, filled.guessed

    def log_probabilities(self, name: str, hidden: torch.Tensor) -> torch.Tensor:
        """(positions, vocabulary) fp32, from the last layer ``hidden`` of network ``name``, all in memory."""
        network = getattr(self, name)
        head = network.generator_predictions(_filled_up(hidden))
        logits = functional.linear(head, word_table(network), network.generator_lm_head.bias)
        return logits[: len(hidden)].float().log_softmax(dim=-1)

    def unit(self, name: str, hidden: torch.Tensor) -> torch.Tensor:
        """(positions,) fp32: the further output of network ``name`` from its last layer ``hidden``."""
        with torch.autocast(hidden.device.type, enabled=False):
            return cast(torch.Tensor, self.units[name](hidden.float()).squeeze(-1))

    def detect(
        self, name: str, input_ids: torch.Tensor, batch: Batch, positions: torch.Tensor | None = None
    ) -> torch.Tensor:
        """(rows, tokens) fp32 logits of network ``name``; above 0 means replaced.

        With ``positions``, into the flattened rows, (positions,) there alone. The last unit runs in fp32:
        bf16 would round logits near -2 to steps of 0.008, more than a young discriminator tells tokens apart
        by.
        """
        head = getattr(self, name).discriminator_predictions
        hidden = self.hidden_states(name, input_ids, batch)
        if positions is not None:
            hidden = _filled_up(hidden.flatten(0, 1)[positions])
        hidden = head.activation(head.dense(hidden))
        with torch.autocast(hidden.device.type, enabled=False):
            logits = cast(torch.Tensor, head.dense_prediction(hidden.float()).squeeze(-1))
        return logits if positions is None else logits[: len(positions)]
