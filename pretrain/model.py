"""Generator and discriminator as one module, on transformers' Electra parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from pretrain.config import Size
from pretrain.dropout import use_cheap_dropout
from pretrain.projection import vocabulary_loss


def discriminator_config(size: Size) -> ElectraConfig:
    """The discriminator's transformers configuration."""
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


def _in_autocast_dtype(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
    """Forward hook: without it a network that projects no embeddings casts every layer's input anew."""
    kind = output.device.type
    return output.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else output


class Electra(nn.Module):
    """Both networks; embeddings with their LayerNorm are one module, the MLM output uses the word table.

    Args:
        size: shape of the networks.
        cheap_dropout: see :func:`pretrain.dropout.use_cheap_dropout`.
    """

    def __init__(self, size: Size, cheap_dropout: bool = False) -> None:
        super().__init__()
        self.discriminator = ElectraForPreTraining(discriminator_config(size))
        self.generator = ElectraForMaskedLM(generator_config(size))
        if cheap_dropout:
            use_cheap_dropout(self)
        self.tie()
        self.discriminator.electra.embeddings.register_forward_hook(_in_autocast_dtype)

    def tie(self) -> None:
        """Share what is shared; again after anything that may have copied parameters."""
        self.generator.electra.embeddings = self.discriminator.electra.embeddings
        self.generator.generator_lm_head.weight = self.discriminator.electra.embeddings.word_embeddings.weight

    def generator_loss(
        self,
        masked_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        token_type_ids: torch.Tensor,
        positions: torch.Tensor,
        labels: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The masked language model at the chosen positions only.

        Args:
            masked_ids, attention_mask, token_type_ids: (rows, tokens); no mask means no padding.
            positions: (chosen,) indices into the flattened rows.
            labels: (chosen,) original ids.

        Returns:
            As :func:`pretrain.projection.vocabulary_loss`.
        """
        hidden = self.generator.electra(
            masked_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        chosen = self.generator.generator_predictions(hidden.flatten(0, 1)[positions])
        head = self.generator.generator_lm_head
        return vocabulary_loss(chosen, head.weight, head.bias, labels)

    def discriminator_logits(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """(rows, tokens) fp32 logits; above 0 means replaced.

        The last unit runs in fp32: bf16 would round logits near -2 to steps of 0.008, more than a young
        discriminator tells tokens apart by.
        """
        hidden = self.discriminator.electra(
            input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        head = self.discriminator.discriminator_predictions
        hidden = head.activation(head.dense(hidden))
        with torch.autocast(hidden.device.type, enabled=False):
            return head.dense_prediction(hidden.float()).squeeze(-1)
