"""Classification of texts and of pairs of texts: features, loss and predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import transformers
from torch.nn import functional

from finetune.examples import TextExample
from finetune.tokens import Encoder

Row = tuple[np.ndarray, np.ndarray]


def cut_pair(length_a: int, length_b: int, budget: int) -> tuple[int, int]:
    """How many tokens of A and B stay when one at a time is cut from the longer (from B when equal)."""
    kept_a = min(length_a, max((budget + 1) // 2, budget - length_b))
    return kept_a, min(length_b, budget - kept_a)


def encode(
    examples: Sequence[TextExample], encoder: Encoder, max_length: int, counts: Counter[str] | None = None
) -> list[Row]:
    """(ids, token types) of each example, at most ``max_length`` long; ``counts["truncated"]`` goes up."""
    first = encoder.tokens([example.text_a for example in examples])
    pairs = [i for i, example in enumerate(examples) if example.text_b is not None]
    second = dict(zip(pairs, encoder.tokens([examples[i].text_b or "" for i in pairs]), strict=True))
    rows = []
    for i, one in enumerate(first):
        two = second.get(i)
        special = sum(map(len, encoder.single if two is None else encoder.pair))
        kept_a, kept_b = cut_pair(len(one.ids), len(two.ids) if two else 0, max_length - special)
        if counts is not None:
            counts["truncated"] += kept_a < len(one.ids) or bool(two and kept_b < len(two.ids))
        rows.append(encoder.join(one.ids[:kept_a], None if two is None else two.ids[:kept_b]))
    return rows


def first_token_only(network: transformers.PreTrainedModel) -> None:
    """Let the last layer of an Electra or Bert encoder finish the first token alone; others stay as they are.

    The head reads no other token, so the result is the same, and the last layer costs a quarter (a fifth of
    a step of a model of four layers).
    """
    if network.config.model_type in ("electra", "bert"):
        path = f"{network.base_model_prefix}.encoder.layer"
        last = cast(torch.nn.ModuleList, network.get_submodule(path))[-1]
        # its arguments are the attended and the incoming states, both (rows, tokens, hidden)
        last.get_submodule("attention.output").register_forward_pre_hook(
            lambda _, states: tuple(state[:, :1] for state in states)
        )


def loss(output: Any, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over the batch, in float32; logits (batch, classes), labels (batch,).

    ``mask`` is not needed: there is one output per row.
    """
    return functional.cross_entropy(output.logits.float(), labels)


def predictions(examples: Sequence[TextExample], logits: np.ndarray) -> list[dict[str, Any]]:
    """``{id, prediction, probabilities}`` of each example from its row of logits (n, classes) in float32."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=1, keepdims=True)
    return [
        {"id": example.id, "prediction": int(row.argmax()), "probabilities": [float(p) for p in row]}
        for example, row in zip(examples, probabilities, strict=True)
    ]
