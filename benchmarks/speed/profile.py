"""Where the time of a pretraining step goes: ``python -m benchmarks.speed.profile``.

Two tables over the same steps on one CPU thread: by part of the step, from the thread's own processor time,
which other programs do not lengthen; and by kind of operation, from torch.profiler.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from rich.console import Console

from benchmarks.arguments import Folder
from benchmarks.render import Sheet, markdown
from benchmarks.speed.turns import processor
from pretrain.config import PRESETS, PretrainConfig, Runtime, SizeName, micro_batch
from pretrain.data import PackedRows, train_batches
from pretrain.device import autocast, default_dtype, keep_freed_memory
from pretrain.flops import step_flops
from pretrain.model import Electra
from pretrain.objectives import Objective, build_model
from pretrain.optim import Adam, clipping, parameter_groups
from provenance import UserError, environment, git_state, run_cli, write_json, write_text

WARM_UP = 2  # steps that do not count
# Operations by name, the first pattern that matches; their times are without those of what they call.
KINDS = {
    "matrix products": r"mm$|linear|matmul|addmv|mkldnn",
    "random numbers and dropout masks": r"random_|uniform|::rand|::ge_",
    "element-wise: scale, mask, add": r"::(mul|add|div|sub|sigmoid|neg|clamp|log|exp|sqrt)",
    "casts and copies": r"copy|::to$|clone|contiguous|::cat$",
    "GELU": r"gelu",
    "softmax": r"softmax",
    "LayerNorm": r"layer_norm",
    "sums over rows (biases, draws)": r"::(sum|cumsum|searchsorted|mean)",
    "embeddings: look-up and gradient": r"embedding|index|gather|scatter",
    "optimiser and clipping": r"[Aa]dam|norm$|foreach",
}
REST = "views, memory, autograd's and Python's own"


class Clock:
    """Processor seconds of this thread, by what they were spent on."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.last = time.thread_time()

    def mark(self, part: str) -> None:
        """What was done since the mark before was ``part``."""
        now = time.thread_time()
        self.spent[part] += now - self.last
        self.last = now


def follow(model: Electra, clock: Clock) -> None:
    """Have the networks of an ELECTRA mark their parts, forward and backward.

    The backward pass runs what came last first: the discriminator until the generator's loss gets its
    gradient, then the output layer until the generator's last layer does.
    """
    hidden_states, fill_in, detect = model.hidden_states, model.fill_in, model.detect

    def marking(function: Callable[..., Any], part: str, after: str = "") -> Callable[..., Any]:
        def marked(name: str, *given: Any) -> Any:
            found = function(name, *given)
            clock.mark(part.format(name))
            first = found[0] if isinstance(found, tuple) else found
            if after and name == "generator":
                first.register_hook(lambda _: clock.mark(after))
            return found

        return marked

    ways: dict[str, Any] = {
        "hidden_states": marking(hidden_states, "{}, forward", "output layer, backward"),
        "fill_in": marking(fill_in, "output layer: loss and draws", "discriminator, backward"),
        "detect": marking(detect, "discriminator, forward"),
    }
    for name, way in ways.items():
        setattr(model, name, way)


def write_rows(folder: Path, count: int, length: int) -> PackedRows:
    """A split of full rows of random characters, as corpus.build packs them."""
    import datasets

    rng = np.random.default_rng(0)
    ids = rng.integers(672, 7992, (count, length)).astype(np.uint16)  # Chinese characters of the vocabulary
    ids[:, 0], ids[:, -1] = 101, 102
    columns = {
        "input_ids": list(ids),
        "token_type_ids": list(np.zeros((count, length), np.uint8)),
        "word_starts": list(np.ones((count, length), bool)),
    }
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict(columns).save_to_disk(str(folder))
    return PackedRows(folder)


def training_step(config: PretrainConfig, rows: PackedRows, clock: Clock) -> Callable[[int], None]:
    """A step of ``pretrain.train`` in one process, which marks its parts."""
    torch.manual_seed(0)
    device, micro = torch.device("cpu"), micro_batch(config, Runtime(), 1)
    model = build_model(config, config.cheap_dropout).train()
    follow(model, clock)
    objective = Objective(model, config)
    parameters = list(model.parameters())
    optimizer = Adam(parameter_groups(model.named_parameters(), config.weight_decay), lr=1e-4)

    def step(number: int) -> None:
        clock.last = time.thread_time()
        batches = train_batches(rows, config, number, rank=0, processes=1, micro=micro)
        masked, tokens = sum(len(b.positions) for b in batches), sum(b.tokens for b in batches)
        clock.mark("rows and masks")
        for batch in batches:
            with autocast(device, config.dtype):
                outputs = objective(batch, number)
            loss = outputs.loss(masked, tokens)
            clock.mark("losses")
            loss.backward()
            clock.mark("generator, backward")
        divide_by, skip = clipping(parameters, config.clip)
        optimizer.step(divide_by=divide_by, skip=skip)
        optimizer.zero_grad(set_to_none=True)
        clock.mark("clipping and optimiser")

    return step


def kinds_of(step: Callable[[int], None], numbers: range) -> dict[str, float]:
    """Share of the time of each kind of operation over the steps ``numbers``."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # or the profiler says on stderr that it starts and stops
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for number in numbers:
            step(number)
    spent: defaultdict[str, float] = defaultdict(float)
    for event in profiler.key_averages():
        kind = next((kind for kind, names in KINDS.items() if re.search(names, event.key)), REST)
        spent[kind] += event.self_cpu_time_total
    return shares(spent)


def shares(spent: Mapping[str, float]) -> dict[str, float]:
    """Of the whole, largest first."""
    whole = sum(spent.values())
    return {part: spent[part] / whole for part in sorted(spent, key=spent.__getitem__, reverse=True)}


def run(
    size: SizeName = "small",
    rows: int = 32,
    length: int = 128,
    steps: int = 20,
    out: Folder = Path("results/speed"),
) -> None:
    """Where the time of a pretraining step of ELECTRA goes, on one CPU thread.

    Args:
        size: of the networks: a preset.
        rows: of one step.
        length: tokens in a row.
        steps: that count.
        out: folder for pretrain-profile-cpu.md and .json.
    """
    if min(rows, steps) < 1:
        raise UserError("--rows and --steps must be at least 1")
    torch.set_num_threads(1)
    keep_freed_memory()
    dtype: Any = default_dtype(torch.device("cpu"))
    config = replace(PRESETS[size], batch_size=rows, length=length, dtype=dtype)
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="speed-", dir=".") as scratch:
        step = training_step(config, write_rows(Path(scratch) / "rows", max(64, 2 * rows), length), clock)
        for number in range(WARM_UP):
            step(number)
        clock.spent.clear()
        for number in range(WARM_UP, WARM_UP + steps):
            step(number)
        parts, seconds = shares(clock.spent), sum(clock.spent.values()) / steps
        kinds = kinds_of(step, range(WARM_UP + steps, WARM_UP + 2 * steps))
    what = (
        f"A step of `{size}`, {rows} x {length} tokens, {dtype}, dropout {config.shape.dropout}, on one "
        f"thread of {processor(torch.device('cpu'))}: {1000 * seconds:.0f} ms of its processor time, which "
        f"are {rows * length / seconds:,.0f} tokens and {step_flops(config) / seconds / 1e12:.3f} · 10¹² "
        f"operations a second. Means of {steps} steps (`python -m benchmarks.speed.profile`)."
    )
    by_part = [[part, f"{1000 * seconds * share:.1f}", f"{share:.1%}"] for part, share in parts.items()]
    by_kind = [[kind, f"{share:.1%}"] for kind, share in kinds.items()]
    sheets = [
        Sheet("By part", ["Part", "ms", "Share"], by_part),
        Sheet("By operation", ["Operation", "Share"], by_kind),
    ]
    page = markdown("pretrain-profile", what, sheets)
    record = {
        "what": what,
        "milliseconds": round(1000 * seconds, 2),
        "parts": {part: round(share, 4) for part, share in parts.items()},
        "operations": {kind: round(share, 4) for kind, share in kinds.items()},
        "config": config,
        "git": git_state(),
        "environment": environment(),
    }
    write_text(out / "pretrain-profile-cpu.md", page)
    write_json(out / "pretrain-profile-cpu.json", record)
    Console().print(page, highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.speed.profile")


if __name__ == "__main__":
    run_cli(main)
