"""Settings of a fine-tuning run: those that change its numbers, and those that do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

SMALL = 384  # widest hidden size that is fine-tuned with a small model's learning rate


@dataclass(frozen=True)
class FinetuneConfig:
    """What changes the numbers of a run; hashed, and stored in its record. Lengths are in tokens.

    The heads are those of transformers (``*ForSequenceClassification``, ``*ForQuestionAnswering``), the
    loss is a mean over the batch, and the learning rate falls linearly from the first update to 0 at the
    last, times a linear rise over the warm-up (:func:`pretrain.optim.learning_rate`).
    """

    learning_rate: float
    """Peak learning rate, that of the task head."""
    layer_decay: float = 1.0
    """Factor on the learning rate from a layer to the one below it; 1.0 for none."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """adam: as ELECTRA was published, without bias correction; adamw: with it."""
    epochs: int = 3
    """Passes over the training examples."""
    batch_size: int = 32
    """Training examples (windows, for span extraction) per update."""
    warmup: float = 0.1
    """Share of the updates in which the learning rate rises."""
    weight_decay: float = 0.01
    """Decoupled decay, times the learning rate; none on biases and layer norms."""
    clip: float = 1.0
    """Largest norm of the gradient of the mean loss."""
    max_length: int = 128
    """Longest input with its special tokens; longer pairs lose tokens of the longer text first."""
    window_step: int = 128
    """Span extraction: distance between the starts of two windows of a long context (not their overlap)."""
    max_question_length: int = 64
    """Span extraction: longer questions are cut."""
    max_answer_length: int = 100
    """Span extraction: longest predicted answer."""
    map_quotes: bool = False
    """Read “”‘’ as " and ', and — as -: the BERT-Chinese vocabulary lacks them. HFL's scores do not."""
    dtype: Literal["bf16", "fp32"] = "fp32"
    """bf16: the matrix products of training and prediction in bfloat16, the weights in float32."""


@dataclass(frozen=True)
class Runtime:
    """What changes only how a run is carried out; never hashed. A record has its threads and device."""

    threads: int = 1
    """CPU threads."""
    eval_batch_size: int = 32
    """Examples or windows per prediction batch."""
    device: str | None = None
    """cpu, cuda or cuda:N; the best there is when not given."""
    cache: Path | None = None
    """Folder where the tokens of texts are kept for the next run; None keeps nothing."""


def default_config(facts: Mapping[str, Any], **changes: Any) -> FinetuneConfig:
    """The published fine-tuning recipe for a model, by its family and width.

    ELECTRA (HFL): learning rate 3e-4 up to hidden size 256, 1e-4 below 1024, 5e-5 from there; layer
    decay 0.8, and 0.9 from hidden size 1024; Adam without bias correction. BERT and its kin (all models
    with ``model_type`` bert, hence RoBERTa-wwm and MacBERT too): 3e-5 (HFL), but 1e-4 up to hidden size 384
    (MiniRBT); no layer decay, AdamW. A model of any other family is treated as BERT, but with 2e-5 from 1024.

    Args:
        facts: ``family`` and ``hidden_size``, as :func:`finetune.models.model_facts` gives them.
        changes: fields of :class:`FinetuneConfig` that differ, such as the task's ``max_length``,
            ``epochs`` and this machine's ``dtype``; a value of None means no change.
    """
    hidden = facts["hidden_size"]
    if facts["family"] == "electra":
        rate = 3e-4 if hidden <= 256 else 1e-4 if hidden < 1024 else 5e-5
        config = FinetuneConfig(rate, layer_decay=0.8 if hidden < 1024 else 0.9, optimizer="adam")
    else:
        rate = 1e-4 if hidden <= SMALL else 3e-5 if facts["family"] == "bert" or hidden < 1024 else 2e-5
        config = FinetuneConfig(rate, layer_decay=1.0, optimizer="adamw")
    return dataclasses.replace(
        config, **{name: value for name, value in changes.items() if value is not None}
    )
