"""Runs side by side: ``python -m pretrain.curves RUN... --out DIR`` writes a table of them and one picture.

``runs.csv`` has a line a run: settings that differ between them, and the last held-out metrics.
``curves.csv`` has a line a held-out evaluation, ``curves.png`` shows them over tokens.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from provenance import UserError, atomic_file, plain, run_cli

HELDOUT = "heldout_"
FACTS = ("step", "tokens", "flops", "tokens_per_second")


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


def write_tables(runs: Sequence[Run], out: Path) -> None:
    """``runs.csv`` and ``curves.csv`` under ``out``."""
    differ = [
        name
        for name in dict.fromkeys(name for run in runs for name in run.settings)
        if len({json.dumps(run.settings.get(name)) for run in runs}) > 1
    ]
    _write(
        out / "runs.csv",
        [
            {"run": run.name, **{k: run.settings.get(k) for k in differ}, **columns(run.entries[-1])}
            for run in runs
        ],
    )
    _write(out / "curves.csv", [{"run": r.name, **columns(entry)} for r in runs for entry in r.entries])


def draw(runs: Sequence[Run], path: Path) -> None:
    """One picture: the loss of filling in, and how far the discriminator is below its fake rate's entropy.

    On that line (0) it knows how many tokens are replaced and not which.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ((filling, below), (cosine, auc)) = pyplot.subplots(2, 2, figsize=(11, 8), sharex=True)
    for run in runs:
        rows = [columns(entry) for entry in run.entries]
        for axes, names in (
            (filling, ("generator_loss", "encoder_loss")),
            (below, ("below_entropy",)),
            (cosine, ("token_cosine",)),
            (auc, ("auc",)),
        ):
            for name in names:
                points = [(row["tokens"] / 1e6, row[name]) for row in rows if row.get(name) is not None]
                if points:
                    axes.plot(*zip(*points, strict=True), marker=".", label=run.name)
    below.axhline(0, color="black", linewidth=1)
    filling.set(ylabel="nats", title="filling in: held-out loss")
    below.set(ylabel="nats", title="discriminator: entropy of the fake rate minus held-out loss")
    cosine.set(
        ylabel="cosine", xlabel="million tokens", title="mean cosine between token vectors, last layer"
    )
    auc.set(ylabel="%", xlabel="million tokens", title="discriminator: AUC")
    handles, labels = filling.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
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
    """Folder that receives runs.csv, curves.csv and curves.png."""


def main() -> None:
    """Entry point of ``python -m pretrain.curves``."""
    given = tyro.cli(Arguments, prog="python -m pretrain.curves")
    runs = [read_run(folder) for folder in given.runs]
    write_tables(runs, given.out)
    draw(runs, given.out / "curves.png")
    print(f"written to {given.out}")


if __name__ == "__main__":
    run_cli(main)
