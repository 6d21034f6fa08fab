"""Measured scores as pandas tables, for CSV files and for notebooks: a row a seed, or a row a group of seeds.

``pandas.read_csv("results/tables/scores.csv")`` gives :func:`by_seed` without this program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from benchmarks.groups import PROTOCOLS, Group, columns, settings
from benchmarks.stats import bootstrap_interval
from benchmarks.task import Task

# What a row is of, in both tables.
KEYS = (
    *("task", "model", "parameters", "weights_sha256", "protocol", "protocol_note", "setting", "bench_id"),
    *("split", "metric"),
)
SEED_COLUMNS = (*KEYS, "seed", "score", "items_low", "items_high", "items", "degenerate")
SUMMARY_COLUMNS = (
    *KEYS,
    *("n", "max", "mean", "median", "min", "std", "interval_low", "interval_high"),
    *("items", "item_error", "items_low", "items_high", "ceiling", "at_best_dev", "best_dev_seed"),
    *("degenerate", "seeds", "values"),
)


def _cells(
    tasks: Sequence[Task], groups: Sequence[Group]
) -> list[tuple[Group, str, str, dict[str, object], int | None]]:
    """(group, split, metric, its KEYS, number of items) of all scores, task by task, full protocol first.

    The number is None for a further metric, which is over some of the items only.
    """
    words, found = settings(groups), []
    for task in tasks:
        mine = [group for group in groups if group.first.task == task.name]
        for group in sorted(mine, key=lambda g: PROTOCOLS.index(g.first.protocol)):
            first = group.first
            for split, metric in columns(task, [group]):
                values = (
                    *(task.name, group.name, first.model["parameters"], first.model["weights_sha256"]),
                    *(first.protocol, first.protocol_note, words[group.key], first.bench_id),
                    *(split, metric),
                )
                items = first.examples[split] if metric in task.metrics else None
                found.append((group, split, metric, dict(zip(KEYS, values, strict=True)), items))
    return found


def by_seed(tasks: Sequence[Task], groups: Sequence[Group]) -> pd.DataFrame:
    """One row for each record, split and metric, in SEED_COLUMNS; scores and bounds in percent.

    ``items_low`` and ``items_high`` are the 95 % bootstrap interval of this run over its items.
    """
    rows = []
    for group, split, metric, keys, items in _cells(tasks, groups):
        records = {record.seed: record for record in group.records}
        for seed, score in group.scores(split, metric).items():
            low, high = records[seed].intervals.get(split, {}).get(metric) or (None, None)
            rows.append(
                {
                    **keys,
                    "seed": seed,
                    "score": score,
                    "items_low": low,
                    "items_high": high,
                    "items": items,
                    "degenerate": int(records[seed].degenerate),
                }
            )
    return pd.DataFrame(rows, columns=SEED_COLUMNS).astype({"items": "Int64"})


def item_error(metric: str, mean: float, items: int) -> float | None:
    """Standard error, in points, of a share of right items: ``√(p (100 - p) / items)``; None for F1."""
    return math.sqrt(mean * (100 - mean) / items) if metric in ("accuracy", "exact_match") else None


def by_group(tasks: Sequence[Task], groups: Sequence[Group]) -> pd.DataFrame:
    """One row for each group of seeds, split and metric, in SUMMARY_COLUMNS; scores in percent."""
    rows = []
    for group, split, metric, keys, items in _cells(tasks, groups):
        summary = group.summary(split, metric)
        assert summary is not None  # columns() saw the score
        low, high = bootstrap_interval(summary.values) or (None, None)
        items_low, items_high = group.item_interval(split, metric) or (None, None)
        seed, score = (group.at_best_dev(metric) if split == "test" else None) or (None, None)
        rows.append(
            {
                **keys,
                "n": summary.n,
                "max": summary.max,
                "mean": summary.mean,
                "median": summary.median,
                "min": summary.min,
                "std": summary.std,
                "interval_low": low,
                "interval_high": high,
                "items": items,
                "item_error": item_error(metric, summary.mean, group.first.examples[split]),
                "items_low": items_low,
                "items_high": items_high,
                "ceiling": group.first.ceiling.get(split, {}).get(metric),
                "at_best_dev": score,
                "best_dev_seed": seed,
                "degenerate": group.degenerate,
                "seeds": " ".join(map(str, summary.seeds)),
                "values": " ".join(f"{value:.4f}" for value in summary.values),
            }
        )
    frame = pd.DataFrame(rows, columns=SUMMARY_COLUMNS)
    return frame.astype({"items": "Int64", "best_dev_seed": "Int64"})


def csv_text(frame: pd.DataFrame) -> str:
    """CSV with ``\\n`` line ends and four digits behind the point."""
    return frame.to_csv(index=False, float_format="%.4f", lineterminator="\n")
