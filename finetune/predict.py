"""Predictions of a model that is already fine-tuned, head included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from finetune.batches import prediction_order
from finetune.config import FinetuneConfig, Runtime
from finetune.models import Kind, load_model
from finetune.tokens import load_encoder
from finetune.train import Run, place, prepare, read_out, threads
from provenance import UserError


def predict(
    model: str | Path,
    kind: Kind,
    examples: Sequence[Any],
    *,
    config: FinetuneConfig,
    num_labels: int | None = None,
    runtime: Runtime | None = None,
) -> list[dict[str, Any]]:
    """Predict every example, in the order given; the form is that of :class:`finetune.train.Result`.

    The examples of a run's split give its predictions again: on a CPU to the last digit with as many threads.
    In float32 neither the batch size nor the order of the examples changes a prediction.

    Raises:
        UserError: the model has no head for ``kind``, or one with another number of classes.
    """
    runtime = runtime or Runtime()
    encoder = load_encoder(model, map_quotes=config.map_quotes)
    split = prepare(kind, examples, encoder, config, Counter(), training=False)
    network = load_model(model, kind, keep_head=True)
    if num_labels is not None and network.config.num_labels != num_labels:
        raise UserError(
            f"the head of {model} has {network.config.num_labels} classes, not {num_labels}; "
            "give a model fine-tuned on this task"
        )
    device = place(network, kind, runtime)
    order = prediction_order([len(ids) for ids, _ in split.rows], runtime.eval_batch_size)
    with threads(runtime.threads):
        run = Run(kind, network, encoder, config, device, lambda done, loss: None)
        return read_out(kind, split, run.predict(split.rows, order, 0, float("nan")), config)
