"""Memory of a run on a CPU, known before it starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from finetune.batches import pass_cost
from finetune.config import FinetuneConfig, Runtime
from finetune.models import Kind, load_model
from finetune.tokens import load_encoder
from finetune.train import Run, place
from pretrain.memory import PROGRAM, kept_for_backward

# The whole of CMRC 2018: its texts, tokens and windows. Measured with `mini`: 1.8 GiB in all, 1.3 without.
TEXTS = 512 * 2**20


def memory_of_a_run(
    model: str | Path, kind: Kind, config: FinetuneConfig, num_labels: int | None = None
) -> int:
    """Bytes that one process needs: weights, gradients and two moments in float32, what the largest pass over
    a part of a batch keeps for the backward one, the texts of the largest task, and the program.

    Found by passes over one and two rows of full length. Draws from torch's global generator.

    Args:
        model: folder or Hub id of an encoder.
        num_labels: classes, for ``text``.
    """
    network = load_model(model, kind, num_labels)
    device = place(network, kind, Runtime(device="cpu"))
    run = Run(kind, network.train(), load_encoder(model), config, device, lambda done, loss: None)
    row = np.zeros(config.max_length, dtype=np.int64)
    one, two = (kept_for_backward(network, lambda n=n: run.forward([(row, row)] * n)) for n in (1, 2))  # type: ignore[misc]
    rows = min(config.batch_size, max(1, pass_cost(device.type).most // config.max_length))
    states = 16 * sum(parameter.numel() for parameter in network.parameters())
    return states + one + (rows - 1) * (two - one) + TEXTS + PROGRAM
