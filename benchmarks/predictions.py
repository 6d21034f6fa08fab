"""Predictions of every item, kept outside the repository: one JSON line each, their sha256 in the record.

``DIR/<model>/<task>/<bench_id>/seed-03.<split>.jsonl`` with ``id``, ``gold`` (answers, or a class number),
``prediction``, and ``n_best`` or ``probabilities``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.metrics import label_items, span_items
from benchmarks.record import Record, seed_name
from benchmarks.tasks import get_task
from provenance import UserError, sha256_file, write_text


def predictions_folder(predictions: Path | str, model: str, task: str, bench: str) -> Path:
    """Where the predictions of a record lie."""
    return Path(predictions) / model / task / bench


def write_predictions(path: Path, gold: Mapping[str, Any], predictions: Sequence[Mapping[str, Any]]) -> str:
    """Write predictions with the gold of each id, and return the file's sha256."""
    lines = [{"id": row["id"], "gold": gold[row["id"]], **row} for row in predictions]
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return sha256_file(path)


def read_rows(predictions: Path | str, record: Record, split: str) -> list[dict[str, Any]] | None:
    """The kept lines of a record's split, in the order of the items; None where they are not at hand.

    Raises:
        UserError: they are not those of the record, or hold no gold.
    """
    folder = predictions_folder(predictions, record.model["name"], record.task, record.bench_id)
    path = folder / f"{seed_name(record.seed)}.{split}.jsonl"
    if not path.is_file():
        return None
    if sha256_file(path) != record.predictions_sha256.get(split):
        raise UserError(f"{path} is not what its record names; delete it, or run its seed again")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    if any("gold" not in row for row in rows):
        raise UserError(f"{path} holds no gold; delete its record and run its seed again")
    return rows


def read_items(predictions: Path | str, record: Record, split: str) -> dict[str, dict[str, float]] | None:
    """``{metric: {id: score, 0 to 1}}`` of a record's split; None where its predictions are not at hand.

    Raises:
        UserError: as :func:`read_rows`.
    """
    rows = read_rows(predictions, record, split)
    if rows is None:
        return None
    gold, given = {row["id"]: row["gold"] for row in rows}, {row["id"]: row["prediction"] for row in rows}
    items = span_items(gold, given) if get_task(record.task).kind == "span" else label_items(gold, given)
    return {metric: dict(zip(gold, values, strict=True)) for metric, values in items.items()}
