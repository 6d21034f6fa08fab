"""The short results tables that a program prints: our rows, with published ones in columns beside them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Column, Table

from benchmarks.groups import LABELS, PROTOCOLS, Group, columns, settings
from benchmarks.published import Published
from benchmarks.tasks import TASKS, get_task

# HFL's models that stand beside ours, and the heads of their columns: narrow, so that 100 characters suffice.
BESIDE = {
    "ELECTRA-small": "published\nHFL ELECTRA\nsmall",
    "ELECTRA-base": "published\nHFL ELECTRA\nbase",
}
SHORT = LABELS | {
    "accuracy": "acc.",
    "accuracy_unseen": "acc. unseen",
    "own_exact_match": "own EM",
    "own_f1": "own F1",
}
COMPACT: Any = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "show_edge": False, "pad_edge": False}


def table_console() -> Console:
    """For tables: a file or a pipe has no width, and cut numbers would be worth nothing there."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=160)


def run_table(title: str, groups: Sequence[Group]) -> Table:
    """What a run ends with: every score of its groups, in 80 characters.

    The interval is that of one run over its items: the noise of the choice of test questions.
    """
    reduced = any(group.first.protocol == "reduced" for group in groups)
    table = Table(
        *("Task", "Split", "Score", "n", Column("max (mean) ± std", no_wrap=True)),
        Column("95 % over items", no_wrap=True),
        title=title,
        title_justify="left",
        caption="* reduced protocol: other data than published" if reduced else None,
        caption_justify="left",
        **COMPACT,
    )
    for group in groups:
        task = get_task(group.first.task)
        for split, metric in columns(task, [group]):
            summary = group.summary(split, metric)
            assert summary is not None  # columns() saw the score
            bounds = group.item_interval(split, metric)
            table.add_row(
                task.title + ("*" if group.first.protocol == "reduced" else ""),
                *(split, SHORT.get(metric, metric), str(summary.n), summary.text),
                f"{bounds[0]:.2f} to {bounds[1]:.2f}" if bounds else "",
            )
        table.add_section()
    return table


def console_tables(groups: Sequence[Group], known: Sequence[Published]) -> list[Table]:
    """One table per protocol that has records; fits 100 characters, and names a model in full."""
    published = {
        (row.model, row.task, row.split, row.metric): row.text
        for row in reversed(known)
        if row.group == "HFL"
    }
    words = settings(groups)
    tables = []
    for protocol in PROTOCOLS:
        rows = [group for group in groups if group.first.protocol == protocol]
        if not rows:
            continue
        title = f"Measured here, {protocol} protocol: max (mean) ± std over n seeds, in percent"
        if protocol != "full":
            title += "\n(other data than published: not comparable with the columns on the right)"
        table = Table(
            *("Task", "Score", Column("Model", overflow="fold"), "n", Column("Measured here", no_wrap=True)),
            *(Column(head, no_wrap=True) for head in BESIDE.values()),
            title=title,
            title_justify="left",
            caption="† with runs that learned nothing" if any(group.degenerate for group in rows) else None,
            caption_justify="left",
            **COMPACT,
        )
        for task in TASKS.values():
            mine = [group for group in rows if group.first.task == task.name]
            names = Counter(group.name for group in mine)
            for split, metric in columns(task, mine):
                if metric not in task.metrics:
                    continue
                label = LABELS.get(metric, metric)
                beside = [published.get((model, task.title, split, label), "") for model in BESIDE]
                for group in mine:
                    summary = group.summary(split, metric)
                    setting = f" ({words[group.key]})" if names[group.name] > 1 else ""
                    table.add_row(
                        task.title,
                        f"{split} {SHORT.get(metric, metric)}",
                        group.name + setting,
                        str(summary.n) if summary else "0",
                        (summary.text if summary else "") + (" †" if group.degenerate else ""),
                        *beside,
                    )
            table.add_section()
        tables.append(table)
    return tables
