"""Keep the fine-tuned model of the seed that is best on dev, for hidden test sets (``--save-model``)."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.record import Record, read_record, seed_name
from benchmarks.task import Task
from benchmarks.trial import Trial, model_folder


def best_on_dev(task: Task, records: Sequence[Record]) -> Record | None:
    """The record that is best on dev by the task's main metric, of the lowest seed on a tie."""
    ranked = sorted(records, key=lambda record: record.seed)
    return max(ranked, key=lambda record: record.scores["dev"][task.main_metric], default=None)


def keep_best(
    trial: Trial, best: Record, among: Sequence[Record], run: Callable[[Trial], list[str]]
) -> tuple[Path | None, str]:
    """Leave the model of the best seed and none of the others; train it again where it is not there.

    Its record may be older than the wish to save it. The same seed gives the same model on a CPU; the second
    training's record is compared and thrown away, so that the first stays as it was.

    Args:
        trial: of the best seed, with ``save_model``.
        best: its record.
        among: the records it is the best of. A model without one stays: another process has saved it and is
            about to write its record.
        run: runs a trial and returns what failed.

    Returns:
        The folder, None where training failed; and a remark, empty if there is none.
    """
    folder, remark = model_folder(trial), ""
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as scratch:
            again = dataclasses.replace(
                trial, results=f"{scratch}/runs", predictions=f"{scratch}/predictions"
            )
            if failures := run(again):
                return None, failures[0]
            (path,) = Path(scratch, "runs").glob(f"*/*/*/{seed_name(trial.seed)}.json")
            found = read_record(path).predictions_sha256
        if found != best.predictions_sha256:
            remark = "its predictions are not those of its record: this device does not repeat a run exactly"
    for record in among:
        if record.seed != best.seed:
            with contextlib.suppress(FileNotFoundError):  # never saved, or another process was first
                shutil.rmtree(folder.with_name(seed_name(record.seed)))
    return folder, remark
