"""The networks that are trained together, as one module, on transformers' Electra parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import nn
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining, PreTrainedModel

from corpus.vocab import CLS, MASK, PAD, SEP
from pretrain.config import Size
from pretrain.data import Batch
from pretrain.dropout import use_cheap_dropout
from pretrain.projection import vocabulary_loss


@dataclass(frozen=True)
class Part:
    """One network of a system: what it predicts and how wide it is."""

    head: Literal["vocabulary", "detection"]
    """The original token at the chosen positions, or for every token whether it was replaced."""
    narrow: bool = False
    """Of the generator's width (``Size.generator_fraction``) in place of the full one."""


GENERATOR = Part("vocabulary", narrow=True)
DISCRIMINATOR = Part("detection")
ELECTRA = {"discriminator": DISCRIMINATOR, "generator": GENERATOR}


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
    )


def generator_config(size: Size) -> ElectraConfig:
    """The generator's: all layers, width scaled, heads of 64 (google-research/electra)."""
    config = discriminator_config(size)
    config.hidden_size = round(size.hidden * size.generator_fraction)
    config.num_attention_heads = max(1, config.hidden_size // 64)
    config.intermediate_size = 4 * config.hidden_size
    return config


def build(part: Part, size: Size) -> PreTrainedModel:
    """``part`` with random weights."""
    config = generator_config(size) if part.narrow else discriminator_config(size)
    return ElectraForMaskedLM(config) if part.head == "vocabulary" else ElectraForPreTraining(config)


def share_embeddings(networks: list[Any]) -> None:
    """One module of embeddings, LayerNorm included, for all networks: that of the first."""
    for network in networks:
        network.electra.embeddings = networks[0].electra.embeddings


def share_nothing(networks: list[Any]) -> None:
    """Each network has weights of its own."""


# What the networks of a system share: called after anything that may have copied parameters.
SHARINGS: dict[str, Callable[[list[Any]], None]] = {"embeddings": share_embeddings, "none": share_nothing}


def _in_autocast_dtype(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
    """Forward hook: without it a network that projects no embeddings casts every layer's input anew."""
    kind = output.device.type
    return output.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else output


class Electra(nn.Module):
    """The networks of a system; each is an attribute under its name.

    Args:
        size: shape of the networks.
        cheap_dropout: see :func:`pretrain.dropout.use_cheap_dropout`.
        parts: the networks by name; the first is the one that users fine-tune.
        sharing: an entry of :data:`SHARINGS`.
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
        SHARINGS[self.sharing](self.networks())
        for network in self.networks():
            network.tie_weights()  # the output over the vocabulary is the word table

    def start_at_frequencies(self, counts: np.ndarray) -> None:
        """Set the bias of outputs over the vocabulary to the log frequency of each token.

        So what needs no context is known before the first step (Meister et al. 2023, arXiv:2212.09686). A
        thousandth goes to all ids alike, so that none is impossible.

        Args:
            counts: (vocabulary,) occurrences, not all 0; special tokens, never asked for, do not count.
        """
        counts = np.where(np.isin(np.arange(len(counts)), (PAD, CLS, SEP, MASK)), 0, counts)
        shares = 0.999 * counts / counts.sum() + 0.001 / len(counts)
        for name, part in self.parts.items():
            if part.head == "vocabulary":
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

    def fill_in(
        self, name: str, input_ids: torch.Tensor, batch: Batch
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Network ``name`` predicts the originals at the chosen positions only, from ``input_ids``.

        Returns:
            As :func:`pretrain.projection.vocabulary_loss`.
        """
        network = getattr(self, name)
        hidden = self.hidden_states(name, input_ids, batch).flatten(0, 1)[batch.positions]
        head = network.generator_lm_head
        labels = batch.input_ids.flatten()[batch.positions]
        return vocabulary_loss(network.generator_predictions(hidden), head.weight, head.bias, labels)

    def detect(self, name: str, input_ids: torch.Tensor, batch: Batch) -> torch.Tensor:
        """(rows, tokens) fp32 logits of network ``name``; above 0 means replaced.

        The last unit runs in fp32: bf16 would round logits near -2 to steps of 0.008, more than a young
        discriminator tells tokens apart by.
        """
        head = getattr(self, name).discriminator_predictions
        hidden = head.activation(head.dense(self.hidden_states(name, input_ids, batch)))
        with torch.autocast(hidden.device.type, enabled=False):
            return cast(torch.Tensor, head.dense_prediction(hidden.float()).squeeze(-1))
