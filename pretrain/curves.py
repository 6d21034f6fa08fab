"""Runs side by side: ``python -m pretrain.curves RUN... --out DIR`` writes tables of them and one picture.

``runs.csv`` has a line a run: settings that differ between them, and the last held-out metrics.
``curves.csv`` has a line a held-out evaluation, ``curves.png`` shows them over tokens or operations. With
``--name NAME`` the files are ``NAME-runs.csv``, ``NAME.csv`` and ``NAME.png``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from provenance import UserError, atomic_file, plain, run_cli

HELDOUT = "heldout_"
FACTS = ("step", "tokens", "flops", "tokens_per_second")
DEFAULT_NAME = "curves"
# What a picture is drawn over: a log line's entry, what one unit of the axis is, and the axis's name.
AXES = {"tokens": (1e6, "million tokens"), "flops": (1e12, "TFLOP of matrix products")}
PANELS = (
    (("generator_loss", "encoder_loss"), "nats", "filling in: held-out loss at the chosen positions"),
    (("below_entropy",), "nats", "discriminator: entropy of the fake rate minus held-out loss"),
    (("token_cosine",), "cosine", "mean cosine between token vectors, last layer"),
    (("auc",), "%", "discriminator: AUC"),
)


@dataclass(frozen=True)
class Run:
    """A run's name, its settings with dotted names, and its log lines that hold held-out metrics."""

    name: str
    settings: dict[str, Any]
    entries: list[dict[str, Any]]


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def read_run(folder: Path) -> Run:
    """A run folder, finished or not.

    Raises:
        UserError: there is no run, or it holds no evaluation yet.
    """
    try:
        settings = json.loads((folder / "run.json").read_text(encoding="utf-8"))["config"]
        lines = (folder / "log.jsonl").read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError, KeyError):
        raise UserError(f"{folder} is no run of pretrain.train; give its --out folder") from None
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    entries = [entry for entry in entries if f"{HELDOUT}loss" in entry]
    if not entries:
        raise UserError(f"{folder} holds no held-out metrics yet; wait for the first, or lower --eval-every")
    return Run(folder.name, _flat(plain(settings)), entries)


def columns(entry: dict[str, Any]) -> dict[str, Any]:
    """What a table shows of a log line: facts, then held-out metrics without their prefix."""
    held = {k.removeprefix(HELDOUT): v for k, v in entry.items() if k.startswith(HELDOUT)}
    below = {}
    if "discriminator_loss" in held:
        below = {"below_entropy": held["fake_entropy"] - held["discriminator_loss"]}
    numbers = {**held, **below}
    return {k: entry[k] for k in FACTS} | {k: v and float(f"{v:.5g}") for k, v in numbers.items()}


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_file(path) as partial, open(partial, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_tables(runs: Sequence[Run], out: Path, name: str = DEFAULT_NAME) -> None:
    """``runs.csv`` and ``curves.csv`` under ``out``; their names follow ``name``."""
    differ = [
        setting
        for setting in dict.fromkeys(setting for run in runs for setting in run.settings)
        if len({json.dumps(run.settings.get(setting)) for run in runs}) > 1
    ]
    _write(
        out / ("runs.csv" if name == DEFAULT_NAME else f"{name}-runs.csv"),
        [
            {"run": run.name, **{k: run.settings.get(k) for k in differ}, **columns(run.entries[-1])}
            for run in runs
        ],
    )
    _write(out / f"{name}.csv", [{"run": r.name, **columns(entry)} for r in runs for entry in r.entries])


def draw(runs: Sequence[Run], path: Path, over: str = "tokens") -> None:
    """One picture, of :data:`PANELS`: how well tokens are filled in and replaced ones found.

    The line at 0 is the entropy of the fake rate: on it a discriminator knows how many tokens are replaced
    and not which. Dashed is the network that users fine-tune where there is a generator beside it.

    Args:
        over: an entry of :data:`AXES`.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    unit, axis = AXES[over]
    figure, grid = pyplot.subplots(2, 2, figsize=(11, 8), sharex=True)
    looks = [(f"C{index % 10}", ".x^s"[index // 10 % 4]) for index in range(len(runs))]
    for axes, (names, measure, title) in zip(grid.flat, PANELS, strict=True):
        for run, (color, marker) in zip(runs, looks, strict=True):
            rows = [columns(entry) for entry in run.entries]
            solid = True
            for name in names:
                points = [(row[over] / unit, row[name]) for row in rows if row.get(name) is not None]
                if points:
                    style = "-" if solid else "--"
                    axes.plot(
                        *zip(*points, strict=True),
                        style,
                        color=color,
                        marker=marker,
                        markersize=4,
                        linewidth=1,
                    )
                    solid = False
        # A run that fails must not flatten the others.
        low, high = axes.dataLim.intervaly
        if names == ("below_entropy",):
            axes.axhline(0, color="black", linewidth=1)
            if max(-low, high) > 0.1:
                axes.set_yscale("symlog", linthresh=0.02)
        elif measure == "nats" and high > 3 * low:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("{x:g}")
        axes.set(ylabel=measure, title=title)
    for axes in grid[1]:
        axes.set(xlabel=axis)
    handles = [
        Line2D([], [], color=color, marker=marker, label=r.name)
        for r, (color, marker) in zip(runs, looks, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize="small")
    figure.tight_layout(rect=(0, 0.03 + 0.02 * (len(runs) // 4 + 1), 1, 1))
    with atomic_file(path) as partial:
        figure.savefig(partial, dpi=110, format="png", metadata={"Software": ""})
    pyplot.close(figure)


@dataclass(frozen=True)
class Arguments:
    """Write a table and a picture of pretraining runs."""

    runs: tyro.conf.Positional[list[Path]]
    """Folders of runs, finished or not."""
    out: Path
    """Folder that receives the tables and the picture."""
    name: str = DEFAULT_NAME
    """What the files are called: runs.csv, curves.csv and curves.png, else NAME-runs.csv, NAME.csv, NAME.png.
    """
    over: Literal["tokens", "flops"] = "tokens"
    """What the picture is drawn over: tokens read, or operations of matrix products."""


def main() -> None:
    """Entry point of ``python -m pretrain.curves``."""
    given = tyro.cli(Arguments, prog="python -m pretrain.curves")
    runs = [read_run(folder) for folder in given.runs]
    write_tables(runs, given.out, given.name)
    draw(runs, given.out / f"{given.name}.png", given.over)
    print(f"written to {given.out}")


if __name__ == "__main__":
    run_cli(main)
