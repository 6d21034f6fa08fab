"""Is A better than B, over the seeds both have? ``python -m benchmarks.compare MODEL_A MODEL_B TASK``."""

from __future__ import annotations

from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.groups import Group, differences, load_groups
from benchmarks.stats import Comparison, compare
from benchmarks.tasks import get_task
from provenance import UserError, run_cli


def comparable(a: Group, b: Group) -> bool:
    """Whether two groups were run on the same data under the same protocol, and share a seed."""
    same = ("task", "task_version", "protocol", "protocol_note", "data_sha256")
    seeds = {r.seed for r in a.records} & {r.seed for r in b.records}
    return bool(seeds) and all(getattr(a.first, k) == getattr(b.first, k) for k in same)


def compare_models(
    groups: list[Group], model_a: str, model_b: str, task: str
) -> list[tuple[Group, Group, dict[tuple[str, str], Comparison]]]:
    """Every comparable pair of groups of two models with {(split, metric): comparison}.

    Raises:
        UserError: a model has no record on the task, or no pair is comparable.
    """
    sides = []
    for model in (model_a, model_b):
        name = model.replace("/", "--")  # a Hub id, as in record paths
        found = [g for g in groups if g.name == name and g.first.task == task]
        if not found:
            known = ", ".join(sorted({g.name for g in groups if g.first.task == task})) or "none"
            raise UserError(f"there are no records of {model} on {task}; models with records on it: {known}")
        sides.append(found)
    pairs = [(a, b) for a in sides[0] for b in sides[1] if a is not b and comparable(a, b)]
    if not pairs:
        raise UserError(
            f"{model_a} and {model_b} have no records on {task} with the same data, protocol and seeds; "
            "run both with the same --data and --seeds"
        )
    results = []
    for a, b in pairs:
        scores = {
            (split, metric): compare(a.scores(split, metric), b.scores(split, metric))
            for split in a.first.scores
            for metric in get_task(task).metrics
            if a.scores(split, metric).keys() & b.scores(split, metric).keys()
        }
        results.append((a, b, scores))
    return results


def main_table(a: Group, b: Group, scores: dict[tuple[str, str], Comparison], title: str) -> Table:
    """One pair as a table."""
    columns = (
        "split",
        "metric",
        "seeds",
        a.name,
        b.name,
        "A - B",
        "95 % interval",
        "permutation p",
        "t-test p",
        "effect d",
    )
    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
    for (split, metric), c in scores.items():
        means = [sum(g.scores(split, metric)[s] for s in c.seeds) / len(c.seeds) for g in (a, b)]
        table.add_row(
            split,
            metric,
            " ".join(map(str, c.seeds)),
            *(f"{mean:.2f}" for mean in means),
            f"{c.difference:+.2f}",
            f"{c.interval[0]:+.2f} to {c.interval[1]:+.2f}" if c.interval else "-",
            f"{c.p_permutation:.3f}",
            "-" if c.p_t is None else f"{c.p_t:.3f}",
            "-" if c.effect is None else f"{c.effect:+.2f}",
        )
    return table


def run(
    model_a: tyro.conf.Positional[str],
    model_b: tyro.conf.Positional[str],
    task: tyro.conf.Positional[str],
    results: Path = Path("results/runs"),
) -> None:
    """Compare two models on a task over the seeds both have, under the same protocol and data.

    The permutation test flips signs of the differences per seed; p cannot be below 2 / 2^n for n seeds. Both
    tests see the noise of seeds, not of the choice of items.

    Args:
        model_a: name of the first model, as in the results folder, or its Hub id.
        model_b: name of the second.
        task: one task.
        results: folder of records.
    """
    get_task(task)
    console = Console()
    groups = load_groups(results)
    compared = compare_models(groups, model_a, model_b, task)
    words = differences(g for pair in compared for g in pair[:2]) if len(compared) > 1 else {}
    for a, b, scores in compared:
        title = f"A {a.name} ({a.first.bench_id}) against B {b.name} ({b.first.bench_id})"
        title += f", {a.first.protocol} protocol"
        title += f": {a.first.protocol_note}" if a.first.protocol_note else ""
        for side, group in (("A", a), ("B", b)):
            if words.get(group.first.bench_id):
                title += f"\n{side}: {words[group.first.bench_id]}"
        console.print(main_table(a, b, scores, title))
        if any(r.degenerate for g in (a, b) for r in g.records):
            console.print("some of these runs are degenerate (one answer for all, or at chance)")


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.compare")


if __name__ == "__main__":
    run_cli(main)
