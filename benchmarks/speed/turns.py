"""Contestants take turns, so that a machine that slows down slows all of them; medians are compared."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress

from benchmarks.render import Sheet, markdown
from provenance import environment, git_state, write_json, write_text

Step = Callable[[], float]  # does the work once, returns a value by which contestants can be checked


@dataclass(frozen=True)
class Setting:
    """What the command line gives to every measurement.

    Attributes:
        device: where models run.
        quick: smaller inputs, to try the program out.
        scratch: folder for inputs that are made and for results that are thrown away.
        text: corpus files to build from; empty: the bundled sample, repeated.
        wiki: MediaWiki export whose pages are repeated.
        tasks: folder of benchmark files.
        model: folder of the model that is fine-tuned; None: random weights.
    """

    device: torch.device
    quick: bool
    scratch: Path
    text: tuple[Path, ...]
    wiki: Path
    tasks: Path
    model: Path | None = None


@dataclass(frozen=True)
class Contestant:
    """One way of doing the work.

    Attributes:
        make: builds the step.
        peers: names of the contestants it is compared with, each with how many times as fast as it this
            one is asked to be (None: nothing is asked).
        least_rate: units a second and core it is asked to do.
        cores: it uses; its rate is given per core.
    """

    name: str
    make: Callable[[], Step]
    peers: Mapping[str, float | None] = field(default_factory=dict)
    least_rate: float | None = None
    cores: int = 1


@dataclass(frozen=True)
class Measurement:
    """What is measured.

    Attributes:
        what: a sentence.
        unit, amount: of the work in one step, such as "MB", 50.
        value: what the contestants' steps return, such as "loss".
        rounds: that count, whatever the command line says; None: as it says.
        warm_up: whether a round that does not count goes first.
        operations: floating point operations of a step; their share of the machine's peak is then given.
    """

    what: str
    unit: str
    amount: float
    contestants: tuple[Contestant, ...]
    value: str
    rounds: int | None = None
    warm_up: bool = True
    operations: int | None = None


def take_turns(
    steps: Mapping[str, Step],
    rounds: int,
    device: torch.device,
    advance: Callable[[], object] = lambda: None,
    warm_up: bool = True,
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds of each step in each round that counts, and the value each gave the first time."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    values: dict[str, float] = {}
    for turn in range(rounds + warm_up):
        for name, step in steps.items():
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            began = time.perf_counter()
            value = step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            taken = time.perf_counter() - began
            values.setdefault(name, value)
            if turn or not warm_up:
                seconds[name].append(taken)
            advance()
    return seconds, values


def peak_operations(device: torch.device, size: int = 4096, rounds: int = 5) -> float:
    """Operations per second of the fastest of a few bf16 products of two ``size`` x ``size`` matrices."""
    size = size if device.type == "cpu" else 4 * size
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds, _ = take_turns({"product": lambda: float((a @ b)[0, 0])}, rounds, device)
    return 2 * size**3 / min(seconds["product"])


def _operations(operations: int | None, seconds: float, peak: float) -> dict[str, float]:
    if not operations:
        return {}
    rate = operations / seconds
    return {"tera_operations_per_second": round(rate / 1e12, 3), "share_of_peak": round(rate / peak, 3)}


def measure(measurement: Measurement, rounds: int, device: torch.device) -> list[dict[str, Any]]:
    """One entry per contestant: seconds, median, rate per core, how many times its peer, what was asked."""
    rounds = measurement.rounds or rounds
    steps = {contestant.name: contestant.make() for contestant in measurement.contestants}
    with Progress(transient=True) as bar:
        task = bar.add_task("taking turns", total=(rounds + measurement.warm_up) * len(steps))
        seconds, values = take_turns(
            steps, rounds, device, lambda: bar.advance(task), warm_up=measurement.warm_up
        )
    peak = peak_operations(device) if measurement.operations else 0.0
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    entries = []
    for contestant in measurement.contestants:
        median = medians[contestant.name]
        rate = measurement.amount / median / contestant.cores
        times = {peer: medians[peer] / median for peer in contestant.peers}
        asked = {peer: least for peer, least in contestant.peers.items() if least}
        met = [times[peer] >= least for peer, least in asked.items()]
        met += [rate >= contestant.least_rate] if contestant.least_rate else []
        entries.append(
            {
                "name": contestant.name,
                "seconds": [round(t, 4) for t in seconds[contestant.name]],
                "median": round(median, 4),
                "cores": contestant.cores,
                "rate": float(f"{rate:.4g}"),
                "times": {peer: round(ratio, 2) for peer, ratio in times.items()},
                "asked": asked,
                "asked_rate": contestant.least_rate,
                "met": all(met) if met else None,
                **_operations(measurement.operations, median, peak),
                measurement.value: float(f"{values[contestant.name]:.6g}"),
            }
        )
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


def _asked(entry: dict[str, Any], unit: str) -> str:
    parts = [f"{least:g} x {peer}" for peer, least in entry["asked"].items()]
    parts += [f"{entry['asked_rate']:g} {unit}/s"] if entry["asked_rate"] else []
    return " and ".join(parts) + ("" if entry["met"] is None else ": met" if entry["met"] else ": not met")


def report(
    name: str,
    measurement: Measurement,
    entries: list[dict[str, Any]],
    setting: Setting,
    command: str,
    out: Path,
) -> str:
    """Write ``<name>-<device>.md`` and ``.json``; the page."""
    unit, device = measurement.unit, setting.device
    rounds = len(entries[0]["seconds"])
    counted = measurement.operations is not None
    header = ["Contestant", "Median, s", "Fastest to slowest, s", f"{unit}/s a core", "Times its peers"]
    header += [
        "Asked for",
        measurement.value,
        *(["10¹² operations/s", "Share of bf16 peak"] if counted else []),
    ]
    body = [
        [
            entry["name"],
            f"{entry['median']:.4g}",
            f"{min(entry['seconds']):.4g} to {max(entry['seconds']):.4g}",
            f"{entry['rate']:,.4g}" if entry["rate"] < 1000 else f"{entry['rate']:,.0f}",
            ", ".join(f"{ratio:.2f} x {peer}" for peer, ratio in entry["times"].items()),
            _asked(entry, unit),
            f"{entry[measurement.value]:g}",
            *(
                [f"{entry['tera_operations_per_second']:.3g}", f"{entry['share_of_peak']:.1%}"]
                if counted
                else []
            ),
        ]
        for entry in entries
    ]
    facts = f"{processor(device)}, {device.type}"
    facts += f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    medians = f"Medians of {rounds} interleaved rounds" if rounds > 1 else "One round"
    text = f"{measurement.what}. {medians} in one run (`{command}`) on {facts}."
    page = markdown(name, text, [Sheet("Side by side", header, body)])
    stem = f"{name}-{device.type}" + ("-quick" if setting.quick else "")
    record = {
        "what": measurement.what,
        "command": command,
        "unit": unit,
        "amount": measurement.amount,
        "rounds": rounds,
        "quick": setting.quick,
        "entries": entries,
        # Above the number of cores, others were computing too, and the times are worth little.
        "load_before": round(os.getloadavg()[0], 1),
        "processor": processor(device),
        "device": device.type,
        "threads": torch.get_num_threads(),
        "git": git_state(),
        "environment": environment(),
    }
    write_text(out / f"{stem}.md", page)
    write_json(out / f"{stem}.json", record)
    return page
