"""Fine-tune and score a model on tasks, several seeds each: ``python -m benchmarks.run MODEL --task T``.

Every (task, seed) is a process of its own with one thread, whatever the number of jobs: that number changes
no record. A record that is there is never computed again.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import AnyFloat, AnyFolder, AnyInt, AnyName, Flag, Folder, Model, optional
from benchmarks.console import run_table
from benchmarks.groups import LABELS, Group
from benchmarks.jobs import run_jobs
from benchmarks.keep import best_on_dev, keep_best
from benchmarks.plan import DEFAULT_MODEL, Plan, differences, facts_of, load_tasks, make_plan, work
from benchmarks.record import read_record
from benchmarks.seeds import Seeds, hold_seeds
from benchmarks.settings import converted_corpus
from benchmarks.trial import model_folder
from finetune.config import Runtime
from finetune.memory import memory_of_a_run
from pretrain.device import pick_device
from pretrain.memory import available_memory
from pretrain.optim import Adam
from provenance import UserError, plain, run_cli

DEFAULT_SEEDS = tuple(range(10))

# --- program --------------------------------------------------------------------------------------


def run(
    model: Model = DEFAULT_MODEL,
    /,
    *,
    task: Annotated[str | None, optional(metavar="TASK[,TASK]|all")] = None,
    seeds: Seeds = DEFAULT_SEEDS,
    replay: Annotated[Path | None, optional(name="from", metavar="FILE")] = None,
    name: AnyName = None,
    data: Folder = Path("data/tasks"),
    results: Folder = Path("results/runs"),
    predictions: Folder = Path("data/predictions"),
    jobs: AnyInt = None,
    lr: AnyFloat = None,
    epochs: AnyInt = None,
    batch_size: AnyInt = None,
    max_length: AnyInt = None,
    dtype: Annotated[Literal["bf16", "fp32"] | None, optional(metavar="{bf16,fp32}")] = None,
    map_quotes: Flag = False,
    limit: AnyInt = None,
    save_model: AnyFolder = None,
    explain: Flag = False,
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
        jobs: processes at once; by default one a GPU, or one a core while memory lasts.
        lr: peak learning rate; by default by model family and size, see --explain.
        epochs: passes over the training examples; by default the task's.
        batch_size: examples an update; 32 by default.
        max_length: tokens of an input, special ones counted; by default the task's. What is longer is cut, or
            read in windows.
        dtype: arithmetic of training and prediction; by default bf16 where the machine is fast in it.
        map_quotes: read “”‘’ as " and ', and — as -, which the BERT-Chinese vocabulary lacks.
        limit: train on the first n examples only (reduced protocol).
        save_model: keep the fine-tuned model of the seed that is best on dev, of all that are finished, under
            this folder, as <task>/<bench_id>/seed-03; benchmarks.predict uses it.
        explain: print every setting with its source and stop.
    """
    console = Console(soft_wrap=True)
    numbers = {"jobs": jobs, "limit": limit, "epochs": epochs, "batch-size": batch_size, "lr": lr}
    numbers["max-length"] = max_length
    for option, value in numbers.items():
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"--{option} {value} is not a number above 0; give one")
    record = None if replay is None else read_record(replay)
    if record is not None:
        if task not in (None, record.task) or seeds not in (DEFAULT_SEEDS, (record.seed,)):
            raise UserError(
                f"--from takes task and seed from {replay}: {record.task}, {record.seed}; leave out --task "
                "and --seeds"
            )
        task, seeds = record.task, (record.seed,)
    if task is None:
        print("error: --task is missing: a task, several joined by commas, or all", file=sys.stderr)
        sys.exit(2)
    loaded, absent = load_tasks(task, data, limit)
    facts = facts_of(model, name)
    options = {"learning_rate": lr, "epochs": epochs, "batch_size": batch_size, "dtype": dtype}
    options |= {"max_length": max_length, "map_quotes": map_quotes or None}
    plans = [make_plan(one, facts, options, record, seeds, results) for one in loaded]
    for plan in plans:
        if plan.task.script == "hant" and (convert := converted_corpus(model)):
            console.print(
                f"warning: the corpus of {facts['name']} was converted with {convert}, so that it hardly "
                f"knows the traditional characters of {plan.task.title}: scores will be low",
                style="yellow",
            )
        if plan.data.protocol == "reduced":
            console.print(f"{plan.task.title}: reduced protocol ({plan.data.protocol_note})")
    if record is not None and (other := differences(record, plans[0], facts)):
        console.print(f"warning: this is not the run of {replay}: other {', '.join(other)}", style="yellow")
    if explain:
        for plan in plans:
            _explain(console, plan, model, facts)
        _report(absent)
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
    if save_model is not None:
        failures += _keep_models(console, plans, common)
    _summary(console, plans, facts, seeds)
    if failures:
        absent.append(
            f"{len(failures)} of {waiting} runs failed (first: {failures[0]}); "
            "the others are kept, and the same command runs only what is missing"
        )
    _report(absent)


def _report(problems: Sequence[str]) -> None:
    """Raise what went wrong as one sentence, at the end, when all else is done."""
    if problems:
        raise UserError("; ".join(problems))


def _explain(console: Console, plan: Plan, model: str, facts: Mapping[str, Any]) -> None:
    sizes = ", ".join(f"{split} {len(rows)}" for split, rows in plan.data.splits.items())
    table = Table("setting", "value", "from", title=f"{plan.task.title} with {facts['name']}")
    for setting, value in plain(plan.config).items():
        table.add_row(setting, str(value), plan.sources[setting])
    console.print(table)
    adam = inspect.signature(Adam).parameters
    device = pick_device().type
    console.print(
        f"fixed: Adam's betas {adam['betas'].default} and epsilon {adam['eps'].default}; dropout of the "
        f"model's config.json{', in 256ths' if device == 'cpu' else ''}; "
        f"{Runtime().eval_batch_size} inputs a batch of prediction; device {device}"
    )
    console.print(f"examples: {sizes}; protocol {plan.data.protocol}; seeds to run: {list(plan.waiting)}")
    if plan.done:
        seconds = [record.seconds for record in plan.records(plan.done)]
        mean = sum(seconds) / len(seconds)
        console.print(
            f"seeds finished: {list(plan.done)}, {mean:.0f} s each; an unfinished one costs the same"
        )
    for split, scores in plan.ceilings(model).items():
        words = ", ".join(f"{LABELS[metric]} {value:.2f}" for metric, value in scores.items())
        console.print(f"ceiling on {split} with answers of {plan.config.max_answer_length} tokens: {words}")
    console.print(f"records: {plan.folder}")


def _run_waiting(
    console: Console, plans: Sequence[Plan], common: Mapping[str, Any], jobs: int | None
) -> list[str]:
    """Run what has no record yet and return what failed, one phrase each; ``common`` is of every trial."""
    trials = []
    with contextlib.ExitStack() as held:
        for plan in plans:
            if plan.waiting:
                held.enter_context(hold_seeds(plan.folder, plan.waiting))
            # another process may have finished some between the plan and the lock
            finished = {record.seed for record in plan.records(plan.waiting)}
            seeds = [seed for seed in plan.waiting if seed not in finished]
            ceilings = plan.ceilings(common["model"]) if seeds else {}
            trials += [(plan.trial(seed, ceilings, **common), work(plan)) for seed in seeds]
        if not trials:
            return []
        return run_jobs(trials, jobs or _jobs(console, plans, len(trials), common["model"]), console)


def _keep_models(console: Console, plans: Sequence[Plan], common: Mapping[str, Any]) -> list[str]:
    """Leave the model of the best seed of each plan in its folder; what failed, one phrase each.

    Best of all that are finished: the tasks of a job array run one seed each, and the last one must not keep
    its own.
    """
    failures = []
    for plan in plans:
        finished = plan.records()
        best = best_on_dev(plan.task, finished)
        if best is None:
            continue
        trial = plan.trial(best.seed, best.ceiling, **common)
        if not model_folder(trial).is_dir():
            console.print(
                f"{plan.task.title}: seed {best.seed} is best on dev and is trained again to be saved"
            )
        folder, remark = keep_best(trial, best, finished, lambda job: run_jobs([(job, 1.0)], 1, console))
        if folder is None:
            failures.append(remark)
        else:
            console.print(
                f"{plan.task.title}: the model of seed {best.seed} is in {folder}; {remark}".rstrip("; ")
            )
    return failures


def _jobs(console: Console, plans: Sequence[Plan], runs: int, model: str) -> int:
    """As many runs at once as the machine bears: one a GPU, or one a core while memory lasts."""
    if gpus := torch.cuda.device_count():
        return gpus
    if (cores := min(_cores(), runs)) == 1:
        return 1
    longest = max((plan for plan in plans if plan.waiting), key=lambda plan: plan.config.max_length)
    need = memory_of_a_run(model, longest.task.head, longest.config, len(longest.task.labels) or None)
    room = available_memory()
    if (bearable := max(1, room // need)) < cores:
        console.print(
            f"{bearable} at once, not {cores}: each needs about {need / 2**30:.1f} GiB, and "
            f"{room / 2**30:.1f} GiB of memory are free; --jobs overrides this"
        )
    return min(cores, bearable)


def _cores() -> int:
    """Cores this process may use; macOS knows no affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- summary --------------------------------------------------------------------------------------


def _summary(console: Console, plans: Sequence[Plan], facts: Mapping[str, Any], seeds: Sequence[int]) -> None:
    groups = []
    for plan in plans:
        records = plan.records(seeds)
        groups += [Group(tuple(records))] if records else []
        dull = sorted({r.degenerate_reason for r in records if r.degenerate_reason})
        if dull:
            console.print(
                f"{plan.task.title}: {sum(r.degenerate for r in records)} of {len(records)} runs "
                f"learned nothing ({', '.join(dull)})"
            )
    if groups:
        console.print(run_table(facts["name"], groups))


def main() -> None:
    """Entry point."""
    tyro.cli(run, prog="python -m benchmarks.run")


if __name__ == "__main__":
    run_cli(main)
