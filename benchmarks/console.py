"""The short results tables that a program prints: our rows, with published ones in columns beside them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Column, Table

from benchmarks.groups import LABELS, PROTOCOLS, Group, columns, settings
from benchmarks.published import Published
from benchmarks.tasks import TASKS

# HFL's models that stand beside ours, and the heads of their columns: narrow, so that 100 characters suffice.
BESIDE = {
    "ELECTRA-small": "published\nHFL ELECTRA\nsmall",
    "ELECTRA-base": "published\nHFL ELECTRA\nbase",
}
SHORT = LABELS | {"accuracy": "acc."}


def table_console() -> Console:
    """For tables: a file or a pipe has no width, and cut numbers would be worth nothing there."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=160)


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
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            show_edge=False,
            pad_edge=False,
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
                    setting = f" ({words[group.first.bench_id]})" if names[group.name] > 1 else ""
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
