"""Predict a file with a fine-tuned model: ``python -m benchmarks.predict MODEL TASK FILE --out PREDICTIONS``.

For hidden test sets and files of one's own. CMRC 2018 takes submissions as ``{id: answer}``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from benchmarks.arguments import Model, TaskName, named
from benchmarks.metrics import label_items, percent, task_span_items
from benchmarks.protocol import refusal
from benchmarks.readers import read_file
from benchmarks.settings import resolve
from benchmarks.task import Task
from benchmarks.tasks import get_task
from finetune.config import FinetuneConfig, Runtime
from finetune.folder import locate, read_config
from finetune.models import model_facts
from finetune.predict import predict
from provenance import MANIFEST, UserError, read_manifest, run_cli, write_json, write_text


def run(
    model: Model,
    task: TaskName,
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    /,
    *,
    out: Annotated[Path, named(metavar="FILE")],
    batch_size: int = 32,
) -> None:
    """Predict every item of a file, and score the predictions where the file holds real gold.

    Args:
        model: folder of a fine-tuned model, as benchmarks.run --save-model or transformers writes it.
        task: the task it was fine-tuned on.
        file: a file in a format of the task; labels and answers may be missing.
        out: predictions as a JSON object {id: answer or label}; with the ending .jsonl, one line an item with
            its n-best answers or the probability of each class.
        batch_size: items or windows at once; it changes no prediction in fp32.
    """
    if batch_size < 1:
        raise UserError(f"--batch-size {batch_size} is not a number above 0; give one")
    chosen = get_task(task)
    examples = read_file(chosen, file, labelled=False)
    if not examples:
        raise UserError(f"{file} holds no usable row; give a file with rows")
    rows = predict_task(model, chosen, examples, batch_size)
    write_predictions(out, chosen, rows)
    if problem := refusal(chosen, examples):
        print(f"{out} holds {len(rows)} predictions, not scored: {file} {problem}", file=sys.stderr)
        return
    print(json.dumps({**percent(score(chosen, examples, rows)), "total": len(rows)}))


def settings(model: str, task: Task) -> FinetuneConfig:
    """The settings the model was fine-tuned with; those of its family on this task where it does not say.

    Then an input is as long as the task has it, or as the model's positions allow.
    """
    folder = locate(model)
    if (folder / MANIFEST).is_file():
        manifest = read_manifest(folder)
        if manifest["stage"] == "finetune.train":
            try:
                return FinetuneConfig(**manifest["config"])
            except TypeError as error:
                raise UserError(f"{folder / MANIFEST} has settings of another version ({error})") from None
    facts = model_facts(model)
    longest = min(task.max_length, facts["longest_input"] or task.max_length)
    return resolve(task, facts, {"dtype": "fp32", "max_length": longest})[0]


def class_numbers(model: str, task: Task) -> list[int]:
    """The task's class number of each output of the model's head, by the names in its ``id2label``.

    Case does not count. Where transformers' placeholders stand (``LABEL_0``), the order is the task's.

    Raises:
        UserError: other names, of which nobody can say which class they are.
    """
    names = [str(name) for _, name in sorted((read_config(locate(model)).id2label or {}).items())]
    if names == [f"LABEL_{number}" for number in range(len(names))]:
        return list(range(len(task.labels)))
    found = [task.label_number(name if name in task.labels else name.lower()) for name in names]
    numbers = [number for number in found if number is not None]
    if sorted(numbers) != list(range(len(task.labels))) or len(numbers) < len(names):
        raise UserError(
            f"{model} calls its classes {', '.join(names)}, not {', '.join(task.labels)}; write these names "
            "in the order of its outputs as id2label into its config.json"
        )
    return numbers


def predict_task(model: str, task: Task, examples: Sequence[Any], batch_size: int) -> list[dict[str, Any]]:
    """Predictions as :func:`finetune.predict.predict` gives them, in the task's class numbers."""
    runtime = Runtime(threads=torch.get_num_threads(), eval_batch_size=batch_size)
    config = settings(model, task)
    if task.kind == "span":
        return predict(model, "span", examples, config=config, runtime=runtime)
    numbers = class_numbers(model, task)
    rows = predict(model, "text", examples, config=config, num_labels=len(task.labels), runtime=runtime)
    for row in rows:
        given = row["probabilities"]
        row["prediction"] = numbers[row["prediction"]]
        row["probabilities"] = [given[numbers.index(number)] for number in range(len(numbers))]
    return rows


def score(task: Task, examples: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Scores of the items, 0 to 1."""
    given = {row["id"]: row["prediction"] for row in rows}
    if task.kind == "span":
        return task_span_items({example.id: example.answers for example in examples}, given, task.own_metric)
    return label_items({example.id: example.label for example in examples}, given)


def write_predictions(out: Path, task: Task, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write answers or label names by id, or whole rows as JSON lines."""
    if out.suffix == ".jsonl":
        write_text(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return
    span = task.kind == "span"
    write_json(
        out, {row["id"]: row["prediction"] if span else task.labels[row["prediction"]] for row in rows}
    )


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.predict")


if __name__ == "__main__":
    run_cli(main)
