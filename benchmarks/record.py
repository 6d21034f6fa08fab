"""One record per (model, task, seed): what was run, on what, and what it scored.

``DIR/<model>/<task>/<bench_id>/seed-03.json``. The ``bench_id`` hashes everything that decides the scores but
the seed, so that a record found under it can be trusted and is never computed again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provenance import UserError, config_id, plain, write_json

SCHEMA = 1


@dataclass(frozen=True)
class Record:
    """One fine-tuning of one model on one task with one seed.

    Attributes:
        model: ``name``, ``weights_sha256``, ``tokenizer_sha256``, ``config_sha256``, ``revision`` (of the
            Hub, or the config id of the folder's manifest), ``family``, ``parameters`` (of the encoder with
            embeddings), ``pretraining_flops``.
        protocol: ``full`` (published files, whole) or ``reduced``; ``protocol_note`` says what differs.
        config: the :class:`finetune.config.FinetuneConfig` as a dict.
        scores: split -> metric -> percent, not rounded.
        examples: split -> number of examples.
        counts: split or step -> reason -> number of rows dropped, repaired or cut.
        data_sha256: split -> hash of the file it was read from.
        predictions_sha256: split -> hash of the file of predictions, one JSON line an item.
        intervals: split -> metric -> 95 % bootstrap interval of this one run over its items, in percent.
        ceiling: split -> metric -> percent that perfect logits reach under the limits on windows and answers
            (span tasks).
        degenerate: the run predicts one answer for everything, or is at chance (see ``degenerate_reason``).
        git: commit and dirty flag of the code; ``environment``: versions, device, dtype, threads.
        started: UTC time in ISO 8601; ``seconds``: of fine-tuning and prediction.
    """

    model: Mapping[str, Any]
    task: str
    task_version: str
    protocol: str
    seed: int
    bench_id: str
    config: Mapping[str, Any]
    scores: Mapping[str, Mapping[str, float]]
    examples: Mapping[str, int]
    data_sha256: Mapping[str, str]
    predictions_sha256: Mapping[str, str]
    degenerate: bool
    git: Mapping[str, Any]
    environment: Mapping[str, Any]
    started: str
    seconds: float
    protocol_note: str = ""
    degenerate_reason: str | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    intervals: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    ceiling: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    schema: int = SCHEMA


def bench_id(
    *,
    config: Any,
    weights_sha256: str,
    tokenizer_sha256: str,
    task: Any,
    data_sha256: Mapping[str, str],
    protocol: str,
    protocol_note: str,
) -> str:
    """Twelve hex digits over all that decides a score but the seed.

    ``task`` is :func:`benchmarks.task.identity`; ``protocol_note`` tells two reduced protocols apart.
    """
    return config_id(
        {
            "schema": SCHEMA,
            "config": config,
            "weights": weights_sha256,
            "tokenizer": tokenizer_sha256,
            "task": task,
            "data": data_sha256,
            "protocol": [protocol, protocol_note],
        }
    )


def seed_name(seed: int) -> str:
    """File stem of a seed's record and predictions: ``seed-03``."""
    return f"seed-{seed:02d}"


def record_path(results: Path | str, model: str, task: str, bench: str, seed: int) -> Path:
    """Where a record lies: ``<results>/<model>/<task>/<bench_id>/seed-03.json``."""
    return Path(results) / model / task / bench / f"{seed_name(seed)}.json"


def seal(content: Mapping[str, Any]) -> str:
    """Hex sha256 over a record's content: a later change by hand does not go unseen."""
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_record(results: Path | str, record: Record) -> Path:
    """Write a record with its seal under its path, atomically, and return the path."""
    path = record_path(results, record.model["name"], record.task, record.bench_id, record.seed)
    content = plain(record)
    write_json(path, {**content, "sha256": seal(content)})
    return path


def read_record(path: Path | str) -> Record:
    """A record from its file.

    Raises:
        UserError: it is missing, damaged, of another schema, a field is missing, unknown or wrong, or it was
            changed after it was written.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is not a readable record ({error}); delete it and run its seed again"
        ) from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise UserError(f"{path} is not a record of schema {SCHEMA}; delete it and run its seed again")
    stored = content.pop("sha256", None)
    fields = {f.name: f for f in dataclasses.fields(Record)}
    wrong = sorted(content.keys() - fields.keys())
    missing = [
        name
        for name, f in fields.items()
        if name not in content
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if wrong or missing:
        what = f"lacks {', '.join(missing)}" if missing else f"has unknown fields {', '.join(wrong)}"
        raise UserError(f"{path} {what}; delete it and run its seed again")
    record = Record(**content)
    if problem := _problem(record):
        raise UserError(f"{path}: {problem}; delete it and run its seed again")
    if stored != seal(content):
        raise UserError(
            f"{path} was changed after it was written; restore it, or delete it and run its seed again"
        )
    return record


def _problem(record: Record) -> str | None:
    """What is wrong with a record's values; None when nothing is."""
    maps = (
        "model",
        "config",
        "scores",
        "examples",
        "data_sha256",
        "predictions_sha256",
        "git",
        "environment",
    )
    for name in maps:
        if not isinstance(getattr(record, name), dict):
            return f"{name} is not an object"
    if lacking := [k for k in ("name", "weights_sha256", "parameters") if k not in record.model]:
        return f"model lacks {', '.join(lacking)}"
    if record.protocol not in ("full", "reduced"):
        return f"protocol is {record.protocol!r}, neither full nor reduced"
    if isinstance(record.seed, bool) or not isinstance(record.seed, int) or record.seed < 0:
        return f"seed is {record.seed!r}, not a whole number from 0"
    if not isinstance(record.degenerate, bool):
        return "degenerate is neither true nor false"
    for split, metrics in record.scores.items():
        if not isinstance(metrics, dict):
            return f"scores of {split} are not an object"
        for metric, value in metrics.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
                return f"{metric} on {split} is {value!r}, not a percentage"
    return None


def is_finished(path: Path | str) -> bool:
    """Whether a valid record lies at ``path``; a damaged one raises, for it must not be run over in silence.

    Raises:
        UserError: as :func:`read_record`, and when its seed, task or id contradict its place.
    """
    path = Path(path)
    if not path.exists():
        return False
    record = read_record(path)
    if (
        record_path("", record.model["name"], record.task, record.bench_id, record.seed).parts
        != path.parts[-4:]
    ):
        raise UserError(f"{path} holds the record of another run; move it to its place or delete it")
    return True


def find_records(results: Path | str) -> Iterator[tuple[Path, Record]]:
    """All records under ``results`` in the order of their paths.

    Raises:
        UserError: one is damaged (named).
    """
    for path in sorted(Path(results).glob("*/*/*/seed-*.json")):
        yield path, read_record(path)
