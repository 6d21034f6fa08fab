"""Published scores, from ``results/reference``: facts of others, shown in tables of their own."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.render import Sheet
from provenance import UserError

HEADINGS = {"HFL": "published by HFL", "others": "published by others"}
FIELDS = ("group", "model", "params", "task", "split", "metric", "max", "mean", "source", "notes")


@dataclass(frozen=True)
class Published:
    """One published score; ``max`` and ``mean`` as printed in the source, empty where not published."""

    group: str
    model: str
    params: str
    task: str
    split: str
    metric: str
    max: str
    mean: str
    source: str
    notes: str

    @property
    def text(self) -> str:
        """``max (mean)``; either alone where only that is published, a mean in brackets."""
        return " ".join(filter(None, [self.max, f"({self.mean})" if self.mean else ""]))


def load_published(reference: Path | str) -> list[Published]:
    """Rows of ``published_results.csv``, sources in the order of ``sources.csv`` (HFL first).

    Raises:
        UserError: a file is missing, has other columns, or a row is of a source without a group.
    """
    reference = Path(reference)
    order: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(_read(reference / "sources.csv", ("source", "group"))):
        order[line["source"]] = (number, line["group"])
    path = reference / "published_results.csv"
    rows = []
    for number, line in enumerate(_read(path, FIELDS[1:]), start=2):
        if line["source"] not in order:
            raise UserError(
                f"{path} row {number}: source {line['source']!r} is not in sources.csv; add it with a group"
            )
        rows.append(Published(group=order[line["source"]][1], **line))
    return sorted(rows, key=lambda row: order[row.source][0])  # stable: else the order of the file


def _read(path: Path, fields: Sequence[str]) -> list[dict[str, str]]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != tuple(fields):
                raise UserError(f"{path} line 1: the columns are not {', '.join(fields)}; restore the file")
            lines = list(reader)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}); give --reference a folder with it"
        ) from None
    for number, line in enumerate(lines, start=2):
        if None in line or None in line.values():
            raise UserError(f"{path} row {number}: not {len(fields)} columns; restore the file")
    return lines


def sheets(
    rows: Sequence[Published],
    cells: Sequence[tuple[str, str, str]],
    titles: Sequence[str],
    *,
    prefix: str = "",
    notes: bool = True,
) -> list[Sheet]:
    """One table per group: a line per model and source, a column per cell (task, split, metric)."""
    result = []
    for group, heading in HEADINGS.items():
        lines: dict[tuple[str, str, str], dict[tuple[str, str, str], Published]] = {}
        for row in rows:
            cell = (row.task, row.split, row.metric)
            if row.group == group and cell in cells:
                lines.setdefault((row.model, row.params, row.source), {})[cell] = row
        header = ["Model", "Parameters", *titles, "Source", *(["Notes"] if notes else [])]
        body = []
        for (model, params, source), found in lines.items():
            remarks = "; ".join(dict.fromkeys(row.notes for row in found.values() if row.notes))
            texts = [found[cell].text if cell in found else "" for cell in cells]
            body.append([model, params, *texts, source, *([remarks] if notes else [])])
        if body:
            title = f"{prefix}{heading}"
            result.append(Sheet(title[0].upper() + title[1:], header, body))
    return result
