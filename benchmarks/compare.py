"""Is A better than B? ``python -m benchmarks.compare MODEL_A MODEL_B TASK``.

Paired twice: over the seeds both have, from their records, and over the items, from their predictions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
import tyro
from rich.table import Table

from benchmarks.arguments import Folder, named, optional
from benchmarks.console import table_console
from benchmarks.frames import csv_text
from benchmarks.groups import LABELS, Group, differences, load_groups
from benchmarks.items import item_frame
from benchmarks.predictions import read_items
from benchmarks.stats import Comparison, compare, holm
from benchmarks.task import Task
from benchmarks.tasks import get_task, get_tasks
from provenance import UserError, run_cli, write_text

Cell = tuple[str, str]  # (split, metric)


@dataclass(frozen=True)
class Pair:
    """Two comparable groups and their comparison on each (split, metric)."""

    a: Group
    b: Group
    cells: dict[Cell, Comparison]

    @property
    def headline(self) -> Cell:
        """What stands for the task: its main metric, on test where there is one."""
        splits = [split for split, _ in self.cells]
        return ("test" if "test" in splits else splits[-1], get_task(self.a.first.task).main_metric)


def comparable(a: Group, b: Group) -> bool:
    """Whether two groups were run on the same data under the same protocol, and share a seed."""
    same = ("task", "task_version", "protocol", "protocol_note", "data_sha256")
    seeds = {r.seed for r in a.records} & {r.seed for r in b.records}
    return bool(seeds) and all(getattr(a.first, k) == getattr(b.first, k) for k in same)


def _items(
    a: Group, b: Group, split: str, predictions: Path
) -> dict[str, tuple[dict[int, list[float]], dict[int, list[float]]]]:
    """Metric -> scores of the items of A and of B by seed; empty where predictions are not at hand.

    Raises:
        UserError: the two predicted different items.
    """
    common = {r.seed for r in a.records} & {r.seed for r in b.records}
    sides = []
    for group in (a, b):
        found = {r.seed: read_items(predictions, r, split) for r in group.records if r.seed in common}
        sides.append({seed: items for seed, items in found.items() if items is not None})
        if len(sides[-1]) < len(common):
            return {}
    ids = next(iter(next(iter(sides[0].values())).values())).keys()
    if any(values.keys() != ids for side in sides for items in side.values() for values in items.values()):
        raise UserError(
            f"{a.name} and {b.name} have predictions of different items of {split}; run both again"
        )
    metrics = next(iter(sides[0].values()))
    return {
        metric: (
            {seed: [items[metric][key] for key in ids] for seed, items in sides[0].items()},
            {seed: [items[metric][key] for key in ids] for seed, items in sides[1].items()},
        )
        for metric in metrics
    }


def compare_models(
    groups: Sequence[Group], model_a: str, model_b: str, task: Task, predictions: Path
) -> list[Pair]:
    """Every comparable pair of groups of two models on a task.

    Raises:
        UserError: a model has no record on the task, it is compared with itself in one setting, or no pair is
            comparable.
    """
    sides = []
    for model in (model_a, model_b):
        name = model.replace("/", "--")  # a Hub id, as in record paths
        found = [g for g in groups if g.name == name and g.first.task == task.name]
        if not found:
            known = ", ".join(sorted({g.name for g in groups if g.first.task == task.name})) or "none"
            raise UserError(
                f"there are no records of {model} on {task.name}; models with records on it: {known}"
            )
        sides.append(found)
    if model_a == model_b:  # its settings with each other, each pair once
        if len(sides[0]) == 1:
            raise UserError(
                f"{model_a} has records of one setting alone on {task.name}: there is nothing to compare; "
                "name two models, or run it with another setting, such as --lr"
            )
        candidates = list(itertools.combinations(sides[0], 2))
    else:
        candidates = list(itertools.product(sides[0], sides[1]))
    matches = [(a, b) for a, b in candidates if comparable(a, b)]
    if not matches:
        raise UserError(
            f"{model_a} and {model_b} have no records on {task.name} with the same data, protocol and seeds; "
            "run both with the same --data and --seeds"
        )
    pairs = []
    for a, b in matches:
        cells = {}
        for split in a.first.scores:
            items = _items(a, b, split, predictions)
            for metric in task.metrics:
                scores = a.scores(split, metric), b.scores(split, metric)
                if scores[0].keys() & scores[1].keys():
                    cells[split, metric] = compare(*scores, items.get(metric))
        pairs.append(Pair(a, b, cells))
    return pairs


def main_table(pair: Pair, title: str, adjusted: float | None) -> Table:
    """One pair as a table; ``adjusted`` is the p of its headline after Holm's correction over tasks."""
    heads = ["split", "metric", "seeds", "A", "B", "A - B", "95 %\nseeds", "95 %\nseeds, items"]
    heads += ["effect\nd", "p\nseeds", "p\nitems", "p"] + (["p\nHolm"] if adjusted is not None else [])
    table = Table(*heads, title=title, title_justify="left", box=None, pad_edge=False)

    def span(bounds: tuple[float, float] | None) -> str:
        return f"{bounds[0]:+.2f} to {bounds[1]:+.2f}" if bounds else "-"

    def number(value: float | None, form: str = ".3f") -> str:
        return "-" if value is None else format(value, form)

    for (split, metric), c in pair.cells.items():
        means = [sum(g.scores(split, metric)[s] for s in c.seeds) / len(c.seeds) for g in (pair.a, pair.b)]
        row = [split, LABELS.get(metric, metric), str(len(c.seeds)), *(f"{mean:.2f}" for mean in means)]
        row += [f"{c.difference:+.2f}", span(c.interval), span(c.interval_both), number(c.effect, "+.2f")]
        row += [number(c.p_permutation), number(c.p_items, ".4f"), number(c.p, ".4f")]
        if adjusted is not None:
            row.append(number(adjusted, ".4f") if (split, metric) == pair.headline else "")
        table.add_row(*row)
    return table


def _title(pair: Pair, words: dict[str, str]) -> str:
    a, b = pair.a, pair.b
    note = f": {a.first.protocol_note}" if a.first.protocol_note else ""
    title = f"{get_task(a.first.task).title}, {a.first.protocol} protocol{note}\n"
    title += f"A {a.name} ({a.first.bench_id}) against B {b.name} ({b.first.bench_id})"
    for side, group in (("A", a), ("B", b)):
        if words.get(group.first.bench_id):
            title += f"\n{side}: {words[group.first.bench_id]}"
    return title


def run(
    model_a: Annotated[str, tyro.conf.Positional, named(metavar="MODEL_A")],
    model_b: Annotated[str, tyro.conf.Positional, named(metavar="MODEL_B")],
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK[,TASK]|all")],
    results: Folder = Path("results/runs"),
    predictions: Folder = Path("data/predictions"),
    items: Annotated[Path | None, optional(metavar="FILE.csv")] = None,
) -> None:
    """Compare two models over the seeds and items both have, under the same protocol and data.

    Over seeds: signs of the differences are flipped, exactly; p cannot be below 2 / 2^n for n seeds. Over
    items: A's and B's outputs are swapped at random. p is the larger of the two. With several tasks, Holm's
    correction is over the main metric of each (on test where there is one).

    Args:
        model_a: name of the first model, as in the results folder, or its Hub id.
        model_b: name of the second; the first again compares its settings.
        task: one task, several joined by commas, or all those on which both have records.
        results: folder of records.
        predictions: folder of predictions; where they are missing, only seeds are tested.
        items: also write a table of the items (of test where there is one), those on which the models differ
            most first: gold, mean scores over the common seeds, commonest predictions.
    """
    console = table_console()
    groups = load_groups(results)
    tasks = get_tasks(task)
    if task == "all":
        names = [{g.first.task for g in groups if g.name == m.replace("/", "--")} for m in (model_a, model_b)]
        tasks = [one for one in tasks if one.name in names[0] & names[1]] or tasks[:1]
    pairs = [pair for one in tasks for pair in compare_models(groups, model_a, model_b, one, predictions)]
    headlines = [pair.cells[pair.headline] for pair in pairs]
    adjusted: Sequence[float | None] = [None] * len(pairs)
    if len(pairs) > 1:
        adjusted = holm([c.p_permutation if c.p is None else c.p for c in headlines])
    words: dict[str, str] = {}
    for one in tasks:
        words |= differences(g for p in pairs for g in (p.a, p.b) if g.first.task == one.name)
    for pair, value in zip(pairs, adjusted, strict=True):
        console.print(main_table(pair, _title(pair, words), value))
        if any(r.degenerate for g in (pair.a, pair.b) for r in g.records):
            console.print("some of these runs are degenerate (one answer for all, or at chance)")
        if any(c.items is None for c in pair.cells.values()):
            console.print(f"predictions of some seeds are not in {predictions}: the items were not tested")
        console.print()
    if items is not None:
        parts = [item_frame(pair.a, pair.b, *pair.headline, predictions) for pair in pairs]
        write_text(items, csv_text(pd.concat(parts)))
        console.print(f"items: {items}", highlight=False, soft_wrap=True)


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.compare")


if __name__ == "__main__":
    run_cli(main)
