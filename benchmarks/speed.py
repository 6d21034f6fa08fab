"""Our own speed against peers, side by side in one run: ``python -m benchmarks.speed [--quick]``.

Contestants take turns, so that a machine that slows down slows all of them; medians are compared. Absolute
times belong to one machine, ratios carry over better. Another thing to measure is one entry in MEASURED.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.progress import Progress
from torch.nn import functional

from benchmarks.render import Sheet, markdown
from pretrain.config import PRESETS, SIZES
from pretrain.data import Batch
from pretrain.device import autocast, pick_device
from pretrain.masking import choose_tokens, hide
from pretrain.model import Electra, discriminator_config, generator_config
from pretrain.objectives import Objective
from pretrain.optim import Adam, clipping, parameter_groups
from provenance import UserError, environment, git_state, run_cli, write_json, write_text

Step = Callable[[], float]  # does the work once, returns a loss by which contestants can be checked


@dataclass(frozen=True)
class Contestant:
    """``make`` builds the step; ``peer`` names the contestant it is compared with."""

    name: str
    peer: str
    make: Callable[[], Step]


@dataclass(frozen=True)
class Measurement:
    """What is measured: a sentence, the tokens of one step, and the contestants."""

    what: str
    tokens: int
    contestants: tuple[Contestant, ...]


def random_batch(rows: int, length: int, seed: int = 0) -> Batch:
    """Full rows of random ids, 15 % chosen; time does not depend on which ids."""
    rng = np.random.default_rng(seed)
    input_ids = rng.integers(672, 7992, (rows, length))  # Chinese characters of the vocabulary
    input_ids[:, 0], input_ids[:, -1] = 101, 102
    chosen = choose_tokens(input_ids, rng.random((rows, length)), length, 0.15)
    masked = hide(input_ids, chosen, rng.random((rows, length)))
    return Batch(
        input_ids=torch.from_numpy(input_ids),
        masked_ids=torch.from_numpy(masked),
        token_type_ids=torch.zeros(rows, length, dtype=torch.int64),
        positions=torch.from_numpy(np.flatnonzero(chosen)),
        attention_mask=None,
        tokens=rows * length,
    )


def our_step(size: str, batch: Batch, device: torch.device, dtype: str) -> Step:
    """One training step as ``pretrain.train`` does it."""
    config = PRESETS[size]
    torch.manual_seed(0)
    model = Electra(config.shape, config.cheap_dropout and device.type == "cpu").to(device).train()
    model.tie()
    objective = Objective(model, config.objective)
    parameters = list(model.parameters())
    optimizer = Adam(parameter_groups(model.named_parameters(), config.weight_decay), lr=1e-4)
    batch = batch.to(device)

    def step() -> float:
        with autocast(device, dtype):
            result = objective(batch)
        loss = result.generator_sum / len(batch.positions)
        loss = loss + config.discriminator_weight * result.discriminator_sum / batch.tokens
        loss.backward()
        divide_by, skip = clipping(parameters, config.clip)
        optimizer.step(divide_by=divide_by, skip=skip)
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def transformers_step(size: str, batch: Batch, device: torch.device, dtype: str) -> Step:
    """The same step written plainly: transformers' two models with tied embeddings and their own losses.

    The vocabulary is predicted at every position, dropout and attention are the library's defaults, and
    the optimiser is torch's AdamW.
    """
    from transformers import ElectraForMaskedLM, ElectraForPreTraining

    shape = SIZES[size]
    torch.manual_seed(0)
    discriminator = ElectraForPreTraining(discriminator_config(shape)).train()
    generator = ElectraForMaskedLM(generator_config(shape)).train()
    for model in (discriminator, generator):
        torch.nn.Module.to(model, device)
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight
    parameters = list({id(p): p for m in (generator, discriminator) for p in m.parameters()}.values())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01)
    batch = batch.to(device)
    chosen = torch.zeros(batch.input_ids.numel(), dtype=torch.bool, device=device)
    chosen[batch.positions] = True
    chosen = chosen.view_as(batch.input_ids)
    labels = batch.input_ids.masked_fill(~chosen, -100)

    def step() -> float:
        with autocast(device, dtype):
            filled = generator(input_ids=batch.masked_ids, token_type_ids=batch.token_type_ids, labels=labels)
            with torch.no_grad():
                probabilities = functional.softmax(filled.logits[chosen].float(), dim=-1)
                corrupted = batch.input_ids.clone()
                corrupted[chosen] = torch.multinomial(probabilities, 1).squeeze(1)
            replaced = (corrupted != batch.input_ids).long()
            found = discriminator(input_ids=corrupted, token_type_ids=batch.token_type_ids, labels=replaced)
            loss = filled.loss + 50.0 * found.loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def pretrain_step(device: torch.device, quick: bool) -> Measurement:
    """A pretraining step of ``small``, 32 x 128 (8 x 128 if quick): ours against plain transformers."""
    rows = 8 if quick else 32
    batch = random_batch(rows, 128)
    makers = {"transformers": transformers_step, "ours": our_step}
    contestants = [
        Contestant(f"{name} {dtype}", f"transformers {dtype}", partial(make, "small", batch, device, dtype))
        for dtype in ("fp32", "bf16")
        for name, make in makers.items()
    ]
    what = f"Pretraining step of `small` (generator and discriminator, update included), {rows} x 128 tokens"
    return Measurement(what, batch.tokens, tuple(contestants))


MEASURED: dict[str, Callable[[torch.device, bool], Measurement]] = {"pretrain-step": pretrain_step}


def take_turns(
    steps: Mapping[str, Step], rounds: int, device: torch.device, advance: Callable[[], object]
) -> dict[str, list[float]]:
    """Seconds of each step in each round, after one round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            began = time.perf_counter()
            step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if turn:
                seconds[name].append(time.perf_counter() - began)
            advance()
    return seconds


def measure(measurement: Measurement, rounds: int, device: torch.device) -> list[dict[str, Any]]:
    """One entry per contestant: seconds, median, tokens per second, how many times its peer, loss."""
    steps = {contestant.name: contestant.make() for contestant in measurement.contestants}
    losses = {name: step() for name, step in steps.items()}
    with Progress(transient=True) as bar:
        task = bar.add_task("taking turns", total=(rounds + 1) * len(steps))
        seconds = take_turns(steps, rounds, device, lambda: bar.advance(task))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    first = medians[measurement.contestants[0].name]
    entries = [
        {
            "name": c.name,
            "seconds": [round(t, 4) for t in seconds[c.name]],
            "median": round(medians[c.name], 4),
            "tokens_per_second": round(measurement.tokens / medians[c.name]),
            "times_first": round(first / medians[c.name], 2),
            "peer": c.peer,
            "times_peer": round(medians[c.peer] / medians[c.name], 2),
            "first_loss": round(losses[c.name], 2),
        }
        for c in measurement.contestants
    ]
    steps.clear()
    gc.collect()
    return entries


def processor(device: torch.device) -> str:
    """The name of the GPU or CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").split("\n") if info.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "CPU")


def run(
    device: Literal["cpu", "cuda"] | None = None,
    quick: bool = False,
    rounds: int = 5,
    threads: int | None = None,
    out: Path = Path("results/speed"),
) -> None:
    """Measure our speed against peers in one run and write <what>-<device>.json and .md.

    Args:
        device: cpu or cuda; by default cuda where there is one.
        quick: a smaller batch and 3 rounds.
        rounds: turns of each contestant that count; at least 3.
        threads: CPU threads; by default PyTorch's choice.
        out: folder to write to.
    """
    if rounds < 3:
        raise UserError(f"--rounds is {rounds}; a median needs at least 3")
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: PyTorch sees no GPU here; use --device cpu")
    if threads is not None:
        torch.set_num_threads(threads)
    where = torch.device(device) if device else pick_device()
    rounds = 3 if quick else rounds
    load = round(os.getloadavg()[0], 1)
    for name, prepare in MEASURED.items():
        measurement = prepare(where, quick)
        entries = measure(measurement, rounds, where)
        facts = f"{processor(where)}, {where.type}"
        facts += f", {torch.get_num_threads()} threads" if where.type == "cpu" else ""
        header = [
            "Contestant",
            "Median, ms",
            "Fastest to slowest, ms",
            "Tokens/s",
            "Times its peer",
            "Times first row",
        ]
        body = [
            [
                entry["name"],
                f"{1000 * entry['median']:,.0f}",
                f"{1000 * min(entry['seconds']):,.0f} to {1000 * max(entry['seconds']):,.0f}",
                f"{entry['tokens_per_second']:,}",
                "" if entry["peer"] == entry["name"] else f"{entry['times_peer']:.2f} x {entry['peer']}",
                f"{entry['times_first']:.2f}",
            ]
            for entry in entries
        ]
        command = f"python -m benchmarks.speed --device {where.type}" + (" --quick" if quick else "")
        command += f" --threads {threads}" if threads is not None else ""
        text = (
            f"{measurement.what}. Medians of {rounds} interleaved rounds in one run (`{command}`) on {facts}."
        )
        page = markdown(name, text, [Sheet("Side by side", header, body)])
        stem = f"{name}-{where.type}" + ("-quick" if quick else "")
        write_text(out / f"{stem}.md", page)
        record = {
            "what": measurement.what,
            "command": command,
            "rounds": rounds,
            "quick": quick,
            "entries": entries,
        }
        # Above the number of cores, others were computing too, and the times are worth little.
        machine: dict[str, Any] = {
            "load_before": load,
            "processor": processor(where),
            "device": where.type,
            "threads": torch.get_num_threads(),
        }
        write_json(
            out / f"{stem}.json", {**record, **machine, "git": git_state(), "environment": environment()}
        )
        Console().print(page, highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.speed")


if __name__ == "__main__":
    run_cli(main)
