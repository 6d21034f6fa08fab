"""Settings of a run, from the model's family, the task, the machine and the command line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.task import Task
from finetune.config import FinetuneConfig, default_config
from pretrain.device import default_dtype, pick_device
from provenance import MANIFEST


def resolve(
    task: Task, facts: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[FinetuneConfig, dict[str, str]]:
    """A task's settings for a model, and the source of each: the model's family, task, machine, command line.

    Args:
        task: the task.
        facts: the model's, with ``family`` and ``hidden_size``.
        given: settings of the command line; None means not given.
    """
    family = default_config(facts)
    by_task: dict[str, Any] = {"max_length": task.max_length, "epochs": task.epochs}
    if task.max_answer_length is not None:
        by_task["max_answer_length"] = task.max_answer_length
    if facts["family"] == "bert":
        by_task["learning_rate"] = task.bert_learning_rate
    by_user = {name: value for name, value in given.items() if value is not None}
    layers = {
        f"{facts['family']}, hidden size {facts['hidden_size']}": {
            name: getattr(family, name) for name in ("learning_rate", "layer_decay", "optimizer")
        },
        "task": by_task,
        "machine": {"dtype": default_dtype(pick_device())},
        "command line": by_user,
    }
    values: dict[str, Any] = {}
    sources = {f.name: "default" for f in dataclasses.fields(FinetuneConfig)}
    for source, settings in layers.items():
        values |= settings
        sources |= dict.fromkeys(settings, source)
    return dataclasses.replace(family, **values), sources


def converted_corpus(model: str) -> str | None:
    """The OpenCC conversion to simplified script of a model's corpus, when its manifest names one."""
    path = Path(model) / MANIFEST
    if not path.is_file():
        return None

    def find(value: Any) -> str | None:
        if isinstance(value, dict):
            convert = value.get("convert")
            if isinstance(convert, str) and convert.split(".")[0] in ("t2s", "tw2s", "tw2sp", "hk2s"):
                return convert
            value = list(value.values())
        found = map(find, value) if isinstance(value, list) else ()
        return next(filter(None, found), None)

    return find(json.loads(path.read_text(encoding="utf-8")))
