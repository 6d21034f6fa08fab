"""Fine-tuning against transformers' Trainer that pads to the task's length, and jobs against threads."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from benchmarks.jobs import run_jobs
from benchmarks.protocol import load
from benchmarks.settings import resolve
from benchmarks.speed.turns import Contestant, Measurement, Setting, Step
from benchmarks.tasks import get_task
from benchmarks.trial import Trial, identify
from finetune.config import FinetuneConfig, Runtime
from finetune.models import Kind, load_model, model_facts
from finetune.tokens import load_encoder
from finetune.train import Split, finetune, prepare, read_out
from pretrain.device import keep_freed_memory
from pretrain.export import export_random
from pretrain.quiet import quiet

SIZE = "mini"
TRAINER = "transformers' Trainer, padded"
SEEDS = 4


@dataclass(frozen=True)
class Work:
    """A model, its settings, and the examples of a task to train on and to predict."""

    model: Path
    kind: Kind
    labels: int | None
    config: FinetuneConfig
    train: Sequence[Any]
    evaluate: Sequence[Any]


@dataclass(frozen=True)
class Outcome:
    """What a run gives: the mean loss of its updates, and the predictions."""

    loss: float
    predictions: list[dict[str, Any]]


def model_folder(setting: Setting) -> Path:
    """The model that is fine-tuned: the one given, else ``mini`` with random weights."""
    folder = setting.scratch / SIZE
    if setting.model is None and not folder.is_dir():
        export_random(SIZE, folder)
    return setting.model or folder / "discriminator"


def repeated(rows: Sequence[Any], count: int) -> list[Any]:
    """``count`` examples, from the first on and again where there are fewer; their ids differ."""
    copies = itertools.islice(itertools.cycle(rows), count)
    return [replace(row, id=f"{row.id}-{number}") for number, row in enumerate(copies)]


def work_of(setting: Setting, name: str, rows: int, predict: int | None, epochs: int = 1) -> Work:
    """The first ``rows`` training examples of a task and ``predict`` of dev (None: all).

    Settings are the task's and the model's, but with AdamW and one learning rate for all layers: what the
    Trainer does too.
    """
    task, model = get_task(name), model_folder(setting)
    data = load(task, setting.tasks)
    config, _ = resolve(task, model_facts(model), {"epochs": epochs})
    return Work(
        model=model,
        kind=task.head,
        labels=len(task.labels) or None,
        config=replace(config, optimizer="adamw", layer_decay=1.0, dtype="bf16"),
        train=repeated(data.splits["train"], rows),
        evaluate=repeated(data.splits["dev"], len(data.splits["dev"]) if predict is None else predict),
    )


def ours(work: Work, device: torch.device, seed: int = 0) -> Outcome:
    """Features, training and prediction as ``benchmarks.run`` has them."""
    result = finetune(
        work.model,
        work.kind,
        work.train,
        {"dev": work.evaluate},
        config=work.config,
        seed=seed,
        num_labels=work.labels,
        runtime=Runtime(threads=torch.get_num_threads(), device=str(device)),
    )
    return Outcome(float(np.mean(result.losses)), result.predictions["dev"])


# --- the Trainer ----------------------------------------------------------------------------------


def padded(split: Split, length: int, pad: int) -> Any:
    """Every row of a split filled up to ``length``, as a data set of the Trainer."""
    count = len(split.rows)
    ids, types, mask = (np.full((count, length), value, dtype=np.int64) for value in (pad, 0, 0))
    for row, (row_ids, row_types) in enumerate(split.rows):
        part = slice(len(row_ids))
        ids[row, part], types[row, part], mask[row, part] = row_ids, row_types, 1
    columns = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
    tensors = {name: torch.from_numpy(column) for name, column in columns.items()}
    if split.targets is not None and split.features is None:
        tensors["labels"] = split.targets
    elif split.targets is not None:
        tensors["start_positions"], tensors["end_positions"] = split.targets.unbind(1)
    return [{name: column[row] for name, column in tensors.items()} for row in range(count)]


def trainer(work: Work, device: torch.device, scratch: Path, seed: int = 0) -> Outcome:
    """The same examples, batch size, number of updates and rates by the Trainer, in bf16.

    Its rows are ours, filled up to the task's length, and answers are read off its logits by our code.
    """
    from transformers import PrinterCallback, Trainer, TrainingArguments

    config, encoder = work.config, load_encoder(work.model)
    learned = prepare(work.kind, work.train, encoder, config, Counter(), training=True)
    asked = prepare(work.kind, work.evaluate, encoder, config, Counter(), training=False)
    torch.manual_seed(seed)
    network = load_model(work.model, work.kind, work.labels)
    arguments = TrainingArguments(
        output_dir=str(scratch / "trainer"),
        use_cpu=device.type == "cpu",
        seed=seed,
        bf16=config.dtype == "bf16",
        per_device_train_batch_size=config.batch_size,
        per_device_eval_batch_size=Runtime().eval_batch_size,
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        warmup_steps=int(config.warmup * config.epochs * math.ceil(len(learned.rows) / config.batch_size)),
        weight_decay=config.weight_decay,
        adam_epsilon=1e-6,
        max_grad_norm=config.clip,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    with quiet():
        run = Trainer(network, arguments, train_dataset=padded(learned, config.max_length, encoder.pad))
        run.remove_callback(PrinterCallback)
        loss = run.train().training_loss
        if not asked.rows:
            return Outcome(loss, [])
        unlabelled = replace(asked, targets=None)
        logits = run.predict(padded(unlabelled, config.max_length, encoder.pad)).predictions
    rows = [np.stack(pair) for pair in zip(*logits, strict=True)] if work.kind == "span" else list(logits)
    return Outcome(loss, read_out(work.kind, asked, rows, config))


def against_trainer(setting: Setting, name: str, rows: int, predict: int, least: float) -> Measurement:
    """One epoch over ``rows`` examples and ``predict`` predictions: ours against the Trainer."""
    rows, predict = (rows // 10, predict // 10) if setting.quick else (rows, predict)
    work, task = work_of(setting, name, rows, predict), get_task(name)
    keep_freed_memory()
    cores = torch.get_num_threads() if setting.device.type == "cpu" else 1
    contestants = (
        Contestant(TRAINER, lambda: lambda: trainer(work, setting.device, setting.scratch).loss, cores=cores),
        Contestant(
            "ours", lambda: lambda: ours(work, setting.device).loss, peers={TRAINER: least}, cores=cores
        ),
    )
    what = f"Fine-tuning `{SIZE}` on {rows} examples of {task.title}, length {work.config.max_length}, bf16"
    what += f", one epoch, then {predict} predictions" if predict else ", one epoch"
    return Measurement(what, "examples", rows + predict, contestants, "mean loss", rounds=3, warm_up=False)


def pairs(setting: Setting) -> Measurement:
    """LCQMC: short pairs."""
    return against_trainer(setting, "lcqmc", 2000, 0, 4.0)


def long_texts(setting: Setting) -> Measurement:
    """ChnSentiCorp: texts of all lengths."""
    return against_trainer(setting, "chnsenticorp", 2000, 0, 2.5)


def questions(setting: Setting) -> Measurement:
    """CMRC 2018: windows over long contexts, training and prediction."""
    return against_trainer(setting, "cmrc2018", 300, 300, 1.8)


# --- jobs -----------------------------------------------------------------------------------------


def jobs(setting: Setting) -> Measurement:
    """Four seeds by ``JOBS=2``, a thread each, against one after another with two threads."""
    task, model = get_task("chnsenticorp"), model_folder(setting)
    limit = 64 if setting.quick else 512
    data = load(task, setting.tasks, limit)
    facts = model_facts(model)
    epochs = max(1, limit // len(data.splits["train"]))  # the bundled sample is small
    config, _ = resolve(task, facts, {"epochs": epochs})
    rounds = itertools.count()

    def in_turn(seed: int) -> float:
        result = finetune(
            model,
            "text",
            data.splits["train"],
            data.evaluation,
            config=config,
            seed=seed,
            num_labels=len(task.labels),
            runtime=Runtime(threads=2),
        )
        return float(np.mean(result.losses))

    def at_once() -> float:
        folder = setting.scratch / f"jobs-{next(rounds)}"
        trials = [
            Trial(
                model=str(model),
                facts=facts,
                task=task.name,
                data=str(setting.tasks),
                limit=limit,
                config=config,
                bench_id=identify(task, data, facts, config),
                seed=seed,
                results=str(folder / "runs"),
                predictions=str(folder / "predictions"),
            )
            for seed in range(SEEDS)
        ]
        failures = run_jobs([(trial, 1.0) for trial in trials], 2, Console(quiet=True))
        assert not failures, failures
        return float(SEEDS)

    one: Step = lambda: float(len([in_turn(seed) for seed in range(SEEDS)]))  # noqa: E731
    slow = "one after another, 2 threads"
    contestants = (
        Contestant(slow, lambda: one, cores=2),
        Contestant("JOBS=2, 1 thread each", lambda: at_once, peers={slow: 1.15}, cores=2),
    )
    trained, predicted = len(data.splits["train"]), sum(map(len, data.evaluation.values()))
    what = (
        f"{SEEDS} seeds of `{SIZE}`, {epochs} epochs of {trained} examples of {task.title}, "
        f"then {predicted} predictions"
    )
    return Measurement(what, "seeds", SEEDS, contestants, "seeds", rounds=3)
