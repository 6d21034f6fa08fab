"""One trial: fine-tune one model on one task with one seed, score it, write its record.

``benchmarks.run`` gives each a process of its own (:mod:`benchmarks.jobs`), so that a crash costs one seed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.data import overlap
from benchmarks.metrics import degenerate_labels, degenerate_spans, label_items, percent, task_span_items
from benchmarks.predictions import predictions_folder, write_predictions
from benchmarks.protocol import TaskData, load
from benchmarks.record import Record, bench_id, seed_name, write_record
from benchmarks.stats import bootstrap_interval
from benchmarks.task import Task, identity
from benchmarks.tasks import get_task
from finetune.config import FinetuneConfig, Runtime
from finetune.folder import locate
from finetune.models import weights_sha256
from finetune.train import finetune
from pretrain.device import keep_freed_memory, pick_device
from provenance import UserError, end_with, environment, git_state, plain, run_cli

REPORT_SECONDS = 0.2


@dataclass(frozen=True)
class Trial:
    """A job: everything a trial needs.

    ``facts`` are the model's (:func:`finetune.models.model_facts`) with the name that records carry;
    ``ceiling`` is for the record (:func:`benchmarks.ceiling.ceiling`).
    """

    model: str
    facts: Mapping[str, Any]
    task: str
    data: str
    limit: int | None
    config: FinetuneConfig
    bench_id: str
    seed: int
    results: str
    predictions: str
    save_model: str | None = None
    ceiling: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def identify(task: Task, data: TaskData, facts: Mapping[str, Any], config: FinetuneConfig) -> str:
    """The ``bench_id`` of a model's runs on a task."""
    return bench_id(
        config=config,
        weights_sha256=facts["weights_sha256"],
        tokenizer_sha256=facts["tokenizer_sha256"],
        task=identity(task),
        data_sha256=data.sha256,
        protocol=data.protocol,
        protocol_note=data.protocol_note,
    )


def run_trial(trial: Trial, on_progress: Callable[[int, int, float], None] | None = None) -> Record:
    """Run a trial and write its predictions, then its record.

    Raises:
        UserError: data or weights changed since the job was made, or fine-tuning refuses it.
    """
    task = get_task(trial.task)
    data = load(task, trial.data, trial.limit)
    if identify(task, data, trial.facts, trial.config) != trial.bench_id:
        raise UserError(f"the files of {task.name} in {trial.data} changed during the run; start it again")
    if weights_sha256(locate(trial.model)) != trial.facts["weights_sha256"]:
        raise UserError(f"the weights in {trial.model} changed during the run; start it again")
    started = datetime.now(UTC).isoformat(timespec="seconds")
    result = finetune(
        trial.model,
        task.head,
        data.splits["train"],
        data.evaluation,
        config=trial.config,
        seed=trial.seed,
        num_labels=len(task.labels) or None,
        runtime=Runtime(threads=1, cache=Path(trial.predictions) / ".tokens"),
        on_progress=on_progress,
    )
    items = {split: score_split(task, data, split, rows) for split, rows in result.predictions.items()}
    reason = degenerate(task, data, result.predictions, items)
    device = pick_device()
    record = Record(
        model={k: trial.facts[k] for k in _MODEL_FACTS},
        task=task.name,
        task_version=task.version,
        protocol=data.protocol,
        protocol_note=data.protocol_note,
        seed=trial.seed,
        bench_id=trial.bench_id,
        config=plain(trial.config),
        scores={split: percent(values) for split, values in items.items()},
        intervals={split: _intervals(values) for split, values in items.items()},
        ceiling=trial.ceiling,
        examples={split: len(rows) for split, rows in data.splits.items()},
        counts=_merge(data.counts, result.counts),
        data_sha256=data.sha256,
        predictions_sha256=_keep_predictions(trial, data, result.predictions),
        degenerate=reason is not None,
        degenerate_reason=reason,
        git=git_state(),
        environment={
            **environment(),
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "dtype": trial.config.dtype,
            "threads": 1,
        },
        started=started,
        seconds=round(result.seconds, 2),
    )
    if trial.save_model:
        if task.labels:  # for who loads it with transformers alone, whose names are LABEL_0 and the like
            result.network.config.id2label = dict(enumerate(task.labels))
            result.network.config.label2id = {name: number for number, name in enumerate(task.labels)}
        result.save(model_folder(trial))
    write_record(trial.results, record)
    return record


_MODEL_FACTS = (
    *("name", "weights_sha256", "tokenizer_sha256", "config_sha256", "revision", "family", "parameters"),
    "pretraining_flops",
)


def score_split(
    task: Task, data: TaskData, split: str, predictions: Sequence[Mapping[str, Any]]
) -> dict[str, list[float]]:
    """Each metric of the task for each item, 0 to 1.

    A span task with a scorer of its own has its scores besides (``own_f1``). ``accuracy_unseen`` is over the
    items whose input train does not hold, where it holds some.
    """
    rows = data.splits[split]
    given = {row["id"]: row["prediction"] for row in predictions}
    if task.kind == "span":
        return task_span_items({row.id: row.answers for row in rows}, given, task.own_metric)
    gold = {row.id: row.label for row in rows}
    items = label_items(gold, given)
    seen = {row.id for row in overlap(data.splits["train"], rows)}
    if seen and len(seen) < len(rows):
        unseen = {key: label for key, label in gold.items() if key not in seen}
        items["accuracy_unseen"] = label_items(unseen, given)["accuracy"]
    return items


def _intervals(items: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """95 % bootstrap intervals over the items, in percent; none for a metric whose items are all equal."""
    found = {metric: bootstrap_interval(values) for metric, values in items.items()}
    return {metric: [100 * bound for bound in pair] for metric, pair in found.items() if pair}


def degenerate(
    task: Task,
    data: TaskData,
    predictions: Mapping[str, Sequence[Mapping[str, Any]]],
    items: Mapping[str, Mapping[str, Sequence[float]]],
) -> str | None:
    """Why the run learned nothing, over all its evaluation splits together; None when it did.

    ``items`` are the scores of each (:func:`score_split`).
    """
    given = [row["prediction"] for split in predictions.values() for row in split]
    if task.kind == "span":
        return degenerate_spans(given, [em for split in items.values() for em in split["exact_match"]])
    return degenerate_labels([row.label for split in predictions for row in data.splits[split]], given)


def _keep_predictions(
    trial: Trial, data: TaskData, predictions: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, str]:
    """Write the predictions of every split; split -> sha256 of its file."""
    folder = predictions_folder(trial.predictions, trial.facts["name"], trial.task, trial.bench_id)
    sha256 = {}
    for split, rows in predictions.items():
        span = data.task.kind == "span"
        gold = {row.id: row.answers if span else row.label for row in data.splits[split]}
        sha256[split] = write_predictions(folder / f"{seed_name(trial.seed)}.{split}.jsonl", gold, rows)
    return sha256


def _merge(*counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    merged: dict[str, dict[str, int]] = {}
    for part in counts:
        for split, reasons in part.items():
            merged[split] = {**merged.get(split, {}), **{k: n for k, n in reasons.items() if n}}
    return {split: reasons for split, reasons in merged.items() if reasons}


def model_folder(trial: Trial) -> Path:
    """Where a trial's model is saved, under the folder that ``save_model`` names."""
    return Path(trial.save_model or "") / trial.task / trial.bench_id / seed_name(trial.seed)


def log_path(trial: Trial) -> Path:
    """Where what a trial printed is kept when it crashes."""
    folder = predictions_folder(trial.predictions, trial.facts["name"], trial.task, trial.bench_id)
    return folder / f"{seed_name(trial.seed)}.log"


def run_forked(trial: Trial, progress: Connection, log: str, gpu: str | None, parent: int) -> None:
    """Run a trial as all that this process does: exit status 1 on failure, with the reason on its last line.

    Args:
        trial: the job.
        progress: takes ``{done, total, loss}``, a few a second; closed at the end.
        log: file for all that is printed.
        gpu: the one GPU to use, as CUDA_VISIBLE_DEVICES has it.
        parent: the process that wants the record: without it the trial ends.
    """
    end_with(parent)
    with open(log, "wb") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    keep_freed_memory()
    last = 0.0

    def report(done: int, total: int, loss: float) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > REPORT_SECONDS:
            last = time.monotonic()
            progress.send({"done": done, "total": total, "loss": loss})

    run_cli(lambda: run_trial(trial, report))
