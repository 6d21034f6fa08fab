"""Which items two models differ on: a row an item, for a spreadsheet or a notebook."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.groups import Group
from benchmarks.predictions import read_items, read_rows
from benchmarks.tasks import get_task
from provenance import UserError

_SCORES, _PREDICTIONS = ("score_a", "score_b", "difference"), ("prediction_a", "prediction_b")
COLUMNS = ("task", "split", "id", "gold", *_SCORES, *_PREDICTIONS)


def item_frame(a: Group, b: Group, split: str, metric: str, predictions: Path) -> pd.DataFrame:
    """The items of a split, those first on which A and B differ most; else in the order of the file.

    In COLUMNS: ``gold`` is a class name, or answers joined by `` | ``; scores are means of ``metric`` over
    the common seeds, in percent; the predictions are the commonest over those seeds.

    Raises:
        UserError: predictions of a common seed are not at hand.
    """
    task = get_task(a.first.task)
    seeds = {record.seed for record in a.records} & {record.seed for record in b.records}
    left, right = (_side(group, seeds, split, metric, predictions) for group in (a, b))
    frame = left.add_suffix("_a").join(right.add_suffix("_b")).rename(columns={"gold_a": "gold"})
    frame["difference"] = frame["score_a"] - frame["score_b"]
    frame = frame.reset_index().assign(task=task.name, split=split)[[*COLUMNS]]
    for column in ("gold", "prediction_a", "prediction_b") if task.labels else ():
        frame[column] = frame[column].map(lambda number: task.labels[number])
    return frame.sort_values("difference", key=lambda values: -values.abs(), kind="stable")


def _side(group: Group, seeds: set[int], split: str, metric: str, predictions: Path) -> pd.DataFrame:
    """``gold``, ``score`` and ``prediction`` by id, over the seeds of one model."""
    parts = []
    for record in group.records:
        if record.seed not in seeds:
            continue
        rows, items = read_rows(predictions, record, split), read_items(predictions, record, split)
        if rows is None or items is None:
            raise UserError(
                f"the predictions of {group.name} on {record.task}, seed {record.seed}, are not in "
                f"{predictions}; name their folder with --predictions"
            )
        part = pd.DataFrame(rows, columns=["id", "gold", "prediction"])
        parts.append(part.assign(score=list(items[metric].values())))
    by_id = pd.concat(parts).groupby("id", sort=False)
    return pd.DataFrame(
        {
            "gold": by_id["gold"]
            .first()
            .map(lambda gold: " | ".join(gold) if isinstance(gold, list) else gold),
            "score": 100 * by_id["score"].mean(),
            "prediction": by_id["prediction"].agg(lambda given: given.mode().iloc[0]),
        }
    )
