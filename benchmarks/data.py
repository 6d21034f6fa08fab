"""What a loader sees of a task: ``python -m benchmarks.data TASK``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tyro
from rich.table import Table

from benchmarks.arguments import AnyInt, Folder, TaskName
from benchmarks.console import table_console
from benchmarks.protocol import TaskData, load
from benchmarks.tasks import get_task
from corpus.script import script_of
from finetune.examples import SpanExample
from provenance import run_cli

QUANTILES = (0.5, 0.95, 1.0)


def describe(
    task: TaskName,
    /,
    data: Folder = Path("data/tasks"),
    limit: AnyInt = None,
) -> None:
    """Describe a task's files as the benchmark reads them.

    Args:
        task: name of the task.
        data: folder with <task>/<split> files.
        limit: look at the first n training examples only; by default all.
    """
    loaded = load(get_task(task), data, limit)
    console = table_console()
    console.print(f"{loaded.task.title}, protocol {loaded.protocol} {loaded.protocol_note}".rstrip())
    table = Table("", *loaded.splits)
    facts = {split: facts_of(loaded, split) for split in loaded.splits}
    for name in dict.fromkeys(key for row in facts.values() for key in row):
        table.add_row(name, *(str(facts[split].get(name, "")) for split in loaded.splits))
    console.print(table)
    if loaded.task.note:
        console.print(loaded.task.note)


def facts_of(data: TaskData, split: str) -> dict[str, Any]:
    """Facts about one split by name: rows, labels, script, lengths, repeats, overlap, oddities."""
    rows = data.splits[split]
    facts: dict[str, Any] = {"rows": len(rows)}
    if data.task.labels:
        labels = Counter(row.label for row in rows)
        facts |= {f"label {name}": share(labels[i], len(rows)) for i, name in enumerate(data.task.labels)}
    scripts = Counter(script_of(row.context if isinstance(row, SpanExample) else row.text_a) for row in rows)
    facts |= {f"script {name}": share(n, len(rows)) for name, n in scripts.most_common()}
    fields = ("context", "question") if data.task.kind == "span" else ("text_a", "text_b")
    for field in fields:
        if getattr(rows[0], field) is not None:
            facts[f"{field} characters (50 %, 95 %, max)"] = quantiles(
                [len(getattr(row, field)) for row in rows]
            )
    facts["repeated inputs"] = sum(n - 1 for n in Counter(map(key_of, rows)).values())
    if data.task.labels:
        facts["inputs with several labels"] = len(contradictions(rows))
    if split != "train":
        facts["inputs that are in train"] = len(overlap(data.splits["train"], rows))
    if data.task.kind == "span":
        facts |= _answer_facts(rows, data.task.max_answer_length or 0)
    for source in (split, "dev") if split == "train" and split not in data.counts else (split,):
        facts |= dict(data.counts.get(source, {}))
    return facts


def _answer_facts(rows: Sequence[SpanExample], limit: int) -> dict[str, Any]:
    """Answers a length limit puts out of reach, and gold that is not in its context."""
    lengths = [min(map(len, row.answers)) for row in rows if row.answers]
    answers = [(answer, row.context) for row in rows for answer in row.answers]
    return {
        "shortest answer characters (50 %, 95 %, max)": quantiles(lengths),
        # With a limit of so many tokens, exact match cannot be above what this share leaves.
        **{
            f"all answers over {n} characters": share(sum(x > n for x in lengths), len(rows))
            for n in (30, limit)
        },
        "first answer not at its place": sum(row.start is None for row in rows),
        "answers not in the context": sum(answer not in context for answer, context in answers),
    }


def key_of(row: Any) -> tuple[str, ...]:
    """What makes two inputs the same: question and context, or the texts."""
    if isinstance(row, SpanExample):
        return row.question, row.context
    return (row.text_a,) if row.text_b is None else (row.text_a, row.text_b)


def overlap(train: Sequence[Any], rows: Sequence[Any]) -> list[Any]:
    """The ``rows`` whose input also stands in ``train``: remembering is enough for them."""
    known = set(map(key_of, train))
    return [row for row in rows if key_of(row) in known]


def contradictions(rows: Sequence[Any]) -> set[tuple[str, ...]]:
    """Inputs that occur with more than one label."""
    labels: dict[tuple[str, ...], set[int]] = {}
    for row in rows:
        labels.setdefault(key_of(row), set()).add(row.label)
    return {key for key, found in labels.items() if len(found) > 1}


def quantiles(values: Sequence[int]) -> str:
    """The :data:`QUANTILES` of ``values`` (nearest rank: that share is not above it), separated by commas."""
    ranked = sorted(values)
    return ", ".join(str(ranked[math.ceil(q * len(ranked)) - 1]) for q in QUANTILES) if ranked else ""


def share(part: int, total: int) -> str:
    """A count with its percentage: ``830 (33.3 %)``."""
    return f"{part} ({100 * part / total:.1f} %)" if total else "0"


def main() -> None:
    """Entry point."""
    tyro.cli(describe, prog="python -m benchmarks.data")


if __name__ == "__main__":
    run_cli(main)
