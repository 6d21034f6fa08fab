"""Is what fine-tuning gains in speed paid for in accuracy? ``python -m benchmarks.speed.accuracy``."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from rich.console import Console

from benchmarks.arguments import AnyFolder, AnyInt, Device, Folder, optional
from benchmarks.render import Sheet, markdown
from benchmarks.speed.finetune import TRAINER, Outcome, Work, ours, trainer, work_of
from benchmarks.speed.turns import Setting, processor
from benchmarks.stats import interval_over_both, p_over_items
from benchmarks.tasks import get_task
from finetune.models import model_facts
from pretrain.device import keep_freed_memory, pick_device
from provenance import UserError, environment, git_state, run_cli, write_json, write_text

ROOT = Path(__file__).resolve().parents[2]
TASK = "chnsenticorp"
WAYS = (TRAINER, "ours")


def right(work: Work, outcome: Outcome) -> np.ndarray:
    """100 for each example whose prediction is right, else 0; shape (examples,)."""
    pairs = zip(outcome.predictions, work.evaluate, strict=True)
    return np.array([100.0 * (found["prediction"] == example.label) for found, example in pairs])


def summary(name: str, scores: Sequence[float]) -> list[str]:
    """A row of the table: name, mean ± sd (n - 1), all values."""
    spread = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
    return [name, spread, ", ".join(f"{score:.2f}" for score in scores)]


def run(
    tasks: Annotated[Path, optional(metavar="DIR")] = ROOT / "benchmarks" / "sample",
    model: AnyFolder = None,
    rows: int = 2000,
    epochs: int = 3,
    seeds: int = 3,
    device: Device = None,
    threads: AnyInt = None,
    out: Folder = Path("results/speed"),
) -> None:
    """Fine-tune the same start on ChnSentiCorp by ours and by the Trainer; compare accuracies on dev.

    Args:
        tasks: folder of benchmark files; by default the bundled ones.
        model: folder of a model; by default `mini` with random weights.
        rows: training examples, repeated where the task has fewer.
        epochs: passes over them.
        seeds: runs of each, at least 2.
        device: cpu or cuda; by default cuda where there is one.
        threads: CPU threads; by default PyTorch's choice.
        out: folder for accuracy-<device>.md and .json.
    """
    if seeds < 2:
        raise UserError(f"--seeds is {seeds}; a spread needs at least 2")
    if threads is not None:
        torch.set_num_threads(threads)
    keep_freed_memory()
    where = torch.device(device) if device else pick_device()
    items: dict[str, list[np.ndarray]] = {way: [] for way in WAYS}
    losses: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="speed-", dir=".") as scratch:
        folder = Path(scratch).resolve()
        setting = Setting(where, False, folder, (), Path(), tasks, model)
        work = work_of(setting, TASK, rows, None, epochs)
        for seed in range(seeds):
            for way in WAYS:
                found = ours(work, where, seed) if way == "ours" else trainer(work, where, folder, seed)
                items[way].append(right(work, found))
                losses[way].append(round(found.loss, 4))
                print(f"seed {seed}, {way}: accuracy {items[way][-1].mean():.2f}", flush=True)
    scores = {way: [float(values.mean()) for values in items[way]] for way in WAYS}
    differences = np.stack(items["ours"]) - np.stack(items[TRAINER])
    low, high = interval_over_both(differences)
    facts = model_facts(work.model)
    what = (
        f"`{facts['name']}` on {rows} examples of {get_task(TASK).title}, {epochs} epochs, length "
        f"{work.config.max_length}, {work.config.dtype}, {seeds} seeds of each from the same start; accuracy "
        f"on {len(work.evaluate)} examples of dev. Ours minus the Trainer's: {differences.mean():+.2f}, "
        f"95 % interval over seeds and items {low:.2f} to {high:.2f}, "
        f"p over items {p_over_items(differences):.2g}. On {processor(where)}."
    )
    table = [summary(way, scores[way]) for way in WAYS]
    page = markdown("accuracy", what, [Sheet("Side by side", ["Contestant", "Mean ± sd", "Seeds"], table)])
    record: dict[str, Any] = {
        "what": what,
        "accuracy": scores,
        "mean_losses": losses,
        "difference": {"mean": float(differences.mean()), "interval": [low, high]},
        "weights_sha256": facts["weights_sha256"],
        "config": work.config,
        "git": git_state(),
        "environment": environment(),
    }
    write_text(out / f"accuracy-{where.type}.md", page)
    write_json(out / f"accuracy-{where.type}.json", record)
    Console().print(page, highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.speed.accuracy")


if __name__ == "__main__":
    run_cli(main)
