"""What a run is about to do, and what about it deserves a warning."""

from __future__ import annotations

from pathlib import Path

import torch

from pretrain.checkpoint import checkpoints
from pretrain.config import PretrainConfig, Runtime, every
from pretrain.memory import PROGRAM, free_disk, room_of_a_process
from pretrain.objectives import OBJECTIVES

MANY_EPOCHS = 40  # over the same text; above, more text or fewer steps serve better

KEPT = 3  # checkpoints that lie on the disk at a time: the last two, and the next while it is written


def _mib(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB"


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
    kept: int,
    out: Path,
) -> str:
    """Lines for a person before the first step: data, machine, memory, disk, and warnings.

    Args:
        rows: rows of the corpus to train on.
        micro: rows of one forward pass.
        parameters: of all networks together, shared ones once.
        kept: bytes that a forward pass keeps for the backward one (:func:`pretrain.memory.kept_by_a_pass`).
        out: folder of the run.
    """
    epochs = config.steps * config.batch_size / rows
    states = 16 * parameters  # fp32 weights, gradients and two moments
    program = PROGRAM if device.type == "cpu" else 0
    memory = states + kept + program
    room = room_of_a_process(device, processes)
    checkpoint = 12 * parameters  # weights and moments
    lines = [
        f"{title}: {rows:,} rows of up to {config.length} tokens, {config.steps:,} steps of "
        f"{config.batch_size} rows ({epochs:.2f} epochs);",
        f"{processes} process(es) on {device.type}, {config.dtype}, {torch.get_num_threads()} thread(s) "
        f"each, {config.batch_size // processes // micro} micro-batch(es) of {micro} rows; "
        f"{_mib(states)} each for weights, gradients and moments, {_mib(kept)} for a micro-batch"
        f"{f', {_mib(program)} for the program' * (program > 0)}: about {_mib(memory)} of memory each;",
        f"checkpoint of {_mib(checkpoint)} every {every(runtime.save_every, config.steps, 20):,} steps, "
        f"held-out metrics every {every(runtime.eval_every, config.steps, 20):,}",
    ]
    stages = OBJECTIVES[config.objective].stages(config)
    for stage in stages if len(stages) > 1 else ():
        against = f" against the {' and '.join(stage.run)} as it is then" if stage.run else ""
        lines.append(
            f"steps {stage.first:,} to {stage.end:,} train the {' and '.join(stage.trained)}{against}"
        )
    if memory > room:
        lines.append(
            f"warning: there are only {_mib(room)} of memory for each process; "
            "lower --micro-batch, or free some"
        )
    coming = max(1, KEPT - len(checkpoints(out))) * checkpoint
    if coming > (disk := free_disk(out)):
        lines.append(
            f"warning: only {_mib(disk)} of disk are free for {out}, and {KEPT} checkpoints lie there at a "
            f"time; free {_mib(coming - disk)} more, or choose another --out"
        )
    if epochs > MANY_EPOCHS:
        lines.append(
            f"warning: {epochs:.0f} epochs over the same rows; give a larger corpus or fewer --steps"
        )
    if config.warmup > max(1, config.steps // 10):
        lines.append(
            f"warning: the warm-up of {config.warmup:,} steps is more than a tenth of the run; "
            f"--warmup {max(1, config.steps // 20)} would suit it"
        )
    return "\n".join(lines)
