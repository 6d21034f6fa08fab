"""Settings of a run, from the model's family, the task, the machine and the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.models import ENCODERS
from benchmarks.task import Task
from finetune.config import SMALL, FinetuneConfig, default_config
from pretrain.device import default_dtype, pick_device
from provenance import MANIFEST, UserError, read_manifest, sha256_file


def resolve(
    task: Task,
    facts: Mapping[str, Any],
    given: Mapping[str, Any],
    recorded: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[FinetuneConfig, dict[str, str]]:
    """A task's settings for a model, and the source of each; a later one wins.

    The sources are the model's family, the task, the table of models, the machine, a record that is replayed,
    the command line.

    Args:
        task: the task.
        facts: the model's, with ``family``, ``hidden_size`` and, of one of the Hub, ``hub``.
        given: settings of the command line; None means not given.
        recorded: settings of a record.

    Raises:
        UserError: the record has a setting that is none today.
    """
    if unknown := sorted(recorded.keys() - {f.name for f in dataclasses.fields(FinetuneConfig)}):
        raise UserError(
            f"the record has settings this version does not know ({', '.join(unknown)}); "
            "run it with the code whose commit the record names"
        )
    family = default_config(facts)
    by_task: dict[str, Any] = {"max_length": task.max_length, "epochs": task.epochs}
    if task.max_answer_length is not None:
        by_task["max_answer_length"] = task.max_answer_length
    if facts["family"] in task.learning_rates and facts["hidden_size"] > SMALL:
        by_task["learning_rate"] = task.learning_rates[facts["family"]]
    known = ENCODERS.get(facts.get("hub") or "")
    by_model = {"learning_rate": known.learning_rate} if known and known.learning_rate else {}
    by_user = {name: value for name, value in given.items() if value is not None}
    layers: dict[str, Mapping[str, Any]] = {
        f"{facts['family']}, hidden size {facts['hidden_size']}": {
            name: getattr(family, name) for name in ("learning_rate", "layer_decay", "optimizer")
        },
        "task": by_task,
        f"{known.hub}, {known.source}" if known else "": by_model,
        "machine": {"dtype": default_dtype(pick_device())},
        "record": recorded,
        "command line": by_user,
    }
    values: dict[str, Any] = {}
    sources = {f.name: "default" for f in dataclasses.fields(FinetuneConfig)}
    for source, settings in layers.items():
        values |= settings
        sources |= dict.fromkeys(settings, source)
    return dataclasses.replace(family, **values), sources


SIMPLIFYING = ("t2s", "tw2s", "tw2sp", "hk2s")  # OpenCC configurations


def converted_corpus(model: str, corpora: Path = Path("data/corpus")) -> str | None:
    """The OpenCC conversion to simplified script of the corpus behind a model; None where none is known.

    It stands in the manifest of the model or of an ancestor: each names the sha256 of its parent's manifest,
    which is looked for beside the model (its checkpoint, its run) and under ``corpora``.
    """
    folder = Path(model)
    places = (folder.parent.glob("checkpoints/*/"), (folder.parent,), corpora.glob("*/"))
    near = {sha256_file(place / MANIFEST): place for place in chain(*places) if (place / MANIFEST).is_file()}
    seen: set[Path] = set()
    while folder not in seen and (folder / MANIFEST).is_file():
        seen.add(folder)
        manifest = read_manifest(folder)
        if convert := _find_conversion(manifest):
            return convert
        folder = near.get(manifest.get("parent") or "", folder)
    return None


def _find_conversion(value: Any) -> str | None:
    if isinstance(value, dict):
        convert = value.get("convert")
        if isinstance(convert, str) and convert.removesuffix(".json") in SIMPLIFYING:
            return convert
        value = list(value.values())
    found = map(_find_conversion, value) if isinstance(value, list) else ()
    return next(filter(None, found), None)
