"""Score predictions from any program: ``python -m benchmarks.score TASK GOLD PREDICTIONS``.

Prints one JSON line: ``exact_match`` and ``f1``, or ``accuracy``, in percent over all gold items, with
``total`` and ``unanswered`` (an item without prediction counts as wrong).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from benchmarks.arguments import TaskName
from benchmarks.formats import decode, read_json_lines
from benchmarks.metrics import SPAN_METRICS, label_items, percent, span_items
from benchmarks.protocol import refusal
from benchmarks.readers import read_file
from benchmarks.task import Task
from benchmarks.tasks import get_task
from provenance import UserError, run_cli


def score(
    task: TaskName,
    gold: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="GOLD")],
    predictions: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PREDICTIONS")],
    /,
    metric: Literal["cmrc", "drcd"] = "cmrc",
) -> None:
    """Score a file of predictions against a task file.

    Args:
        task: name of the task, which says how its files are read and scored.
        gold: a file of the task, such as dev.json or test.tsv; ids of table rows are <file stem>-<n> from 0.
        predictions: JSON object {id: answer text or label}, or the JSON lines that benchmarks.run keeps.
        metric: span tasks: the CMRC 2018 scorer (HFL's tables use it for DRCD too), or DRCD's own metric.
    """
    print(json.dumps(score_file(get_task(task), gold, predictions, metric)))


def score_file(task: Task, gold: Path, predictions: Path, metric: str = "cmrc") -> dict[str, float]:
    """The scores :func:`score` prints.

    Raises:
        UserError: a file cannot be read, its gold is not real, a label is not one of the task's, or no id is
            known.
    """
    rows = read_file(task, gold)
    if problem := refusal(task, rows):
        raise UserError(f"{gold} {problem}")
    examples = {example.id: example for example in rows}
    answers = read_predictions(predictions)
    unknown = len(answers.keys() - examples.keys())
    if answers and unknown == len(answers):
        raise UserError(
            f"no id of {predictions} is in {gold} (with {next(iter(examples), 'none')}); give its predictions"
        )
    if unknown:
        print(f"warning: {unknown} ids of {predictions} are not in {gold}", file=sys.stderr)
    if task.kind == "span":
        texts = {key: _text(key, value, predictions) for key, value in answers.items()}
        items = span_items({k: e.answers for k, e in examples.items()}, texts, SPAN_METRICS[metric])
    else:
        labels = {key: _label(task, key, value, predictions) for key, value in answers.items()}
        items = label_items({k: e.label for k, e in examples.items()}, labels)
    return {**percent(items), "total": len(examples), "unanswered": len(examples.keys() - answers.keys())}


def read_predictions(path: Path) -> dict[str, Any]:
    """{id: prediction} from a JSON object, or from JSON lines with ``id`` and ``prediction``.

    Raises:
        UserError: the file is neither, or a line has no prediction or the id of an earlier one.
    """
    if path.suffix == ".jsonl":
        return _read_lines(path)
    try:
        content = json.loads(decode(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno} is not JSON ({error.msg}); mend it") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a JSON object {{id: answer or label}}; write one")
    return content


def _read_lines(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, row in read_json_lines(path):
        if not row.keys() >= {"id", "prediction"}:
            raise UserError(f"{path}:{number} has no id and prediction; give both on every line")
        if (key := str(row["id"])) in found:
            raise UserError(f"{path}:{number} has {key} again; give one prediction an item")
        found[key] = row["prediction"]
    return found


def _text(key: str, value: Any, path: Path) -> str:
    """The answer; a number is one too, as programs write those without quotes."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UserError(
            f"{path}: {key} has the answer {json.dumps(value)}, not a text; give one, empty for none"
        )
    return str(value)


def _label(task: Task, key: str, value: Any, path: Path) -> int:
    """The class number of a prediction: a label, or in JSON lines, which are our own, a class number."""
    numbered = isinstance(value, int) and 0 <= value < len(task.labels)
    number = value if numbered and path.suffix == ".jsonl" else task.label_number(str(value))
    if number is None and numbered:
        number = value
    if number is None:
        raise UserError(f"{path}: {key} has the label {value!r}; the labels are {', '.join(task.labels)}")
    return number


def main() -> None:
    """Entry point."""
    tyro.cli(score, prog="python -m benchmarks.score")


if __name__ == "__main__":
    run_cli(main)
