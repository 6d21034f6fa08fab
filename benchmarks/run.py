"""Fine-tune and score a model on tasks, several seeds each: ``python -m benchmarks.run MODEL --task T``.

Every (task, seed) is a process of its own with one thread, whatever the number of jobs: that number changes
no record. A record that is there is never computed again.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.jobs import run_jobs
from benchmarks.protocol import TaskData, load
from benchmarks.record import Record, is_finished, read_record, record_path
from benchmarks.seeds import Seeds
from benchmarks.settings import converted_corpus, resolve
from benchmarks.stats import summarise
from benchmarks.task import Task
from benchmarks.tasks import get_tasks
from benchmarks.trial import Trial, identify
from finetune.config import FinetuneConfig
from finetune.models import model_facts
from provenance import UserError, hold, plain, run_cli

DEFAULT_MODEL = "data/pretrain/small/discriminator"  # what `make pretrain-small` writes


@dataclass(frozen=True)
class Plan:
    """One task of a run: its data, its settings and where each came from, and the seeds."""

    task: Task
    data: TaskData
    config: FinetuneConfig
    sources: Mapping[str, str]
    bench_id: str
    done: tuple[int, ...]
    waiting: tuple[int, ...]


# --- program --------------------------------------------------------------------------------------


def run(
    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")] = DEFAULT_MODEL,
    /,
    *,
    task: str | None = None,
    seeds: Seeds = tuple(range(10)),
    replay: Annotated[Path | None, tyro.conf.arg(name="from", metavar="FILE")] = None,
    name: str | None = None,
    data: Path = Path("data/tasks"),
    results: Path = Path("results/runs"),
    predictions: Path = Path("data/predictions"),
    jobs: int | None = None,
    lr: float | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    dtype: Literal["bf16", "fp32"] | None = None,
    limit: int | None = None,
    save_model: Path | None = None,
    explain: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> None:
    """Fine-tune and score a model on tasks, several seeds each.

    Args:
        model: folder of a transformers model, or a Hub id; by default what `make pretrain-small` wrote.
        task: one task, several joined by commas, or all; needed unless --from names a record.
        seeds: how many, counted from 0 (10), or which (0-9; 3,5; 3, for one).
        replay: take task, seed and settings from this record; --lr and the like still change them.
        name: the model's name in records; by default that of its manifest, or org--name of a Hub id.
        data: folder with <task>/<split> files.
        results: folder for records.
        predictions: folder for the predictions of every item.
        jobs: processes at once; by default one a core, or one a GPU.
        lr: peak learning rate; by default by model family and size, see --explain.
        epochs: passes over the training examples; by default the task's.
        batch_size: examples an update; 32 by default.
        dtype: arithmetic of training and prediction; by default bf16 where the machine is fast in it.
        limit: train on the first n examples only (reduced protocol).
        save_model: keep each fine-tuned model under this folder, as <task>/seed-03.
        explain: print every setting with its source and stop.
    """
    console = Console(soft_wrap=True)
    numbers = {"jobs": jobs, "limit": limit, "epochs": epochs, "batch-size": batch_size, "lr": lr}
    for option, value in numbers.items():
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"--{option} {value} is not a number above 0; give one")
    record = None if replay is None else read_record(replay)
    if record is not None:
        task, seeds = record.task, (record.seed,)
    if task is None:
        print("error: --task is missing: a task, several joined by commas, or all", file=sys.stderr)
        sys.exit(2)
    loaded = [load(one, data, limit) for one in get_tasks(task)]
    facts = _facts(model, name)
    options = {"learning_rate": lr, "epochs": epochs, "batch_size": batch_size, "dtype": dtype}
    plans = [_plan(one, facts, options, record, seeds, results) for one in loaded]
    for plan in plans:
        if plan.task.script == "hant" and (convert := converted_corpus(model)):
            console.print(
                f"warning: the corpus of {facts['name']} was converted with {convert}, so that it hardly "
                f"knows the traditional characters of {plan.task.title}: scores will be low",
                style="yellow",
            )
        if plan.data.protocol == "reduced":
            console.print(f"{plan.task.title}: reduced protocol ({plan.data.protocol_note})")
    if record is not None and record.bench_id != plans[0].bench_id:
        other = ", ".join(_differences(record, plans[0], facts))
        console.print(f"warning: this is not the run of {replay}: other {other}", style="yellow")
    if explain:
        for plan in plans:
            _explain(console, plan, facts, results)
        return
    waiting = sum(len(plan.waiting) for plan in plans)
    total = len(plans) * len(seeds)
    if waiting < total:
        console.print(f"{total - waiting} of {total} already finished")
    common = {
        **{"model": model, "facts": facts, "data": str(data), "limit": limit, "results": str(results)},
        **{"predictions": str(predictions), "save_model": None if save_model is None else str(save_model)},
    }
    failures = _run_waiting(console, plans, common, jobs)
    _summary(console, plans, facts, results, seeds)
    if failures:
        raise UserError(
            f"{len(failures)} of {waiting} runs failed (first: {failures[0]}); "
            "the others are kept, and the same command runs only what is missing"
        )


def _facts(model: str, name: str | None) -> dict[str, Any]:
    if model == DEFAULT_MODEL and not Path(model).is_dir():
        raise UserError(
            f"{model} does not exist; run `make pretrain-small`, or give a model's folder or Hub id"
        )
    facts = model_facts(model)
    facts["name"] = name or facts["name"]
    if Path(facts["name"]).name != facts["name"] or facts["name"].startswith("."):
        raise UserError(f"the model name {facts['name']!r} cannot name a folder; give another with --name")
    return facts


def _plan(
    data: TaskData,
    facts: Mapping[str, Any],
    options: Mapping[str, Any],
    record: Record | None,
    seeds: Sequence[int],
    results: Path,
) -> Plan:
    config, sources = resolve(data.task, facts, options, {} if record is None else record.config)
    bench = identify(data.task, data, facts, config)
    done = [s for s in seeds if is_finished(record_path(results, facts["name"], data.task.name, bench, s))]
    waiting = [seed for seed in seeds if seed not in done]
    return Plan(data.task, data, config, sources, bench, tuple(done), tuple(waiting))


def _differences(record: Record, plan: Plan, facts: Mapping[str, Any]) -> list[str]:
    """What of a plan's identity differs from a record's."""
    pairs = {
        "weights": (record.model["weights_sha256"], facts["weights_sha256"]),
        "tokenizer": (record.model.get("tokenizer_sha256"), facts["tokenizer_sha256"]),
        "settings": (record.config, plain(plan.config)),
        "data": (record.data_sha256, plan.data.sha256),
        "protocol": (
            (record.protocol, record.protocol_note),
            (plan.data.protocol, plan.data.protocol_note),
        ),
    }
    return [name for name, (theirs, ours) in pairs.items() if theirs != ours] or ["version of the task"]


def _folder(results: Path | str, name: str, plan: Plan) -> Path:
    """Where the records of a plan lie."""
    return record_path(results, name, plan.task.name, plan.bench_id, 0).parent


def _explain(console: Console, plan: Plan, facts: Mapping[str, Any], results: Path) -> None:
    sizes = ", ".join(f"{split} {len(rows)}" for split, rows in plan.data.splits.items())
    folder = _folder(results, facts["name"], plan)
    table = Table("setting", "value", "from", title=f"{plan.task.title} with {facts['name']}")
    for setting, value in plain(plan.config).items():
        table.add_row(setting, str(value), plan.sources[setting])
    console.print(table)
    console.print(f"examples: {sizes}; protocol {plan.data.protocol}; seeds to run: {list(plan.waiting)}")
    console.print(f"records: {folder}")


def _run_waiting(
    console: Console, plans: Sequence[Plan], common: Mapping[str, Any], jobs: int | None
) -> list[str]:
    """Run what has no record yet and return what failed, one phrase each; ``common`` is of every trial."""
    trials = [
        (
            Trial(task=plan.task.name, config=plan.config, bench_id=plan.bench_id, seed=seed, **common),
            work(plan),
        )
        for plan in plans
        for seed in plan.waiting
    ]
    if not trials:
        return []
    with contextlib.ExitStack() as held:
        for plan in plans:
            if plan.waiting:
                held.enter_context(hold(_folder(common["results"], common["facts"]["name"], plan)))
        slots = jobs or torch.cuda.device_count() or _cores()
        return run_jobs(trials, slots, console)


def _cores() -> int:
    """Cores this process may use; macOS knows no affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def work(plan: Plan) -> float:
    """Rough cost of a run in characters: those trained on cost three times those predicted, an epoch."""

    def characters(rows: Sequence[Any]) -> int:
        fields = ("question", "context") if plan.task.kind == "span" else ("text_a", "text_b")
        limit = plan.config.max_length * (4 if plan.task.kind == "span" else 1)  # spans read several windows
        return sum(min(limit, sum(len(getattr(row, field) or "") for field in fields)) for row in rows)

    evaluated = sum(characters(rows) for rows in plan.data.evaluation.values())
    return 3 * plan.config.epochs * characters(plan.data.splits["train"]) + evaluated


# --- summary --------------------------------------------------------------------------------------


def _summary(
    console: Console, plans: Sequence[Plan], facts: Mapping[str, Any], results: Path, seeds: Sequence[int]
) -> None:
    table = Table("task", "split", "metric", "max (mean) ± std", "n", "protocol", title=facts["name"])
    for plan in plans:
        paths = [record_path(results, facts["name"], plan.task.name, plan.bench_id, s) for s in seeds]
        records: list[Record] = [read_record(path) for path in paths if path.exists()]
        for split in records[0].scores if records else ():
            for metric in records[0].scores[split]:
                found = summarise({record.seed: record.scores[split][metric] for record in records})
                row = (plan.task.title, split, metric, found.text, str(found.n), plan.data.protocol)
                table.add_row(*row)
        dull = sorted({r.degenerate_reason for r in records if r.degenerate_reason})
        if dull:
            console.print(
                f"{plan.task.title}: {sum(r.degenerate for r in records)} of {len(records)} runs "
                f"learned nothing ({', '.join(dull)})"
            )
    if table.rows:
        console.print(table)


def main() -> None:
    """Entry point."""
    tyro.cli(run, prog="python -m benchmarks.run")


if __name__ == "__main__":
    run_cli(main)
