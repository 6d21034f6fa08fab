"""What a run is about to do, and what about it deserves a warning."""

from __future__ import annotations

import torch

from pretrain.config import PretrainConfig, Runtime, every
from pretrain.objectives import OBJECTIVES

MANY_EPOCHS = 40  # over the same text; above, more text or fewer steps serve better


def plan(
    title: str,
    config: PretrainConfig,
    runtime: Runtime,
    *,
    rows: int,
    micro: int,
    processes: int,
    device: torch.device,
    parameters: int,
) -> str:
    """Lines for a person before the first step: data, machine, memory, and warnings.

    Args:
        rows: rows of the corpus to train on.
        micro: rows of one forward pass.
        parameters: of all networks together, shared ones once.
    """
    epochs = config.steps * config.batch_size / rows
    # fp32 weights, gradients and two moments
    memory = 16 * parameters / 2**20
    lines = [
        f"{title}: {rows:,} rows of up to {config.length} tokens, {config.steps:,} steps of "
        f"{config.batch_size} rows ({epochs:.2f} epochs);",
        f"{processes} process(es) on {device.type}, {config.dtype}, {torch.get_num_threads()} thread(s) "
        f"each, {config.batch_size // processes // micro} micro-batch(es) of {micro} rows; "
        f"{memory:,.0f} MiB each for weights, gradients and moments;",
        f"checkpoint every {every(runtime.save_every, config.steps, 20):,} steps, "
        f"held-out metrics every {every(runtime.eval_every, config.steps, 20):,}",
    ]
    stages = OBJECTIVES[config.objective].stages(config)
    for stage in stages if len(stages) > 1 else ():
        against = f" against the {' and '.join(stage.run)} as it is then" if stage.run else ""
        lines.append(
            f"steps {stage.first:,} to {stage.end:,} train the {' and '.join(stage.trained)}{against}"
        )
    if epochs > MANY_EPOCHS:
        lines.append(
            f"warning: {epochs:.0f} epochs over the same rows; give a larger corpus or fewer --steps"
        )
    if 10 * config.warmup > config.steps:
        lines.append(
            f"warning: the warm-up of {config.warmup:,} steps is more than a tenth of the run; "
            f"--warmup {max(1, config.steps // 20)} would suit it"
        )
    return "\n".join(lines)
