"""What trains and what evaluates: the published files whole, or the reduced protocol, which says so.

Reduced is whatever differs from the published files: another file, fewer rows, or, where there is no training
file, nine tenths of dev trained on in its place.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.readers import read_file
from benchmarks.task import File, Task
from corpus.script import script_of
from finetune.examples import SpanExample, TextExample
from provenance import UserError, sha256_file

Example = TextExample | SpanExample

DEV_SHARE = 0.10  # of the dev file, under the reduced protocol


class MissingFilesError(UserError):
    """Files of a task are not there; the message says which and where to get them."""


@dataclass(frozen=True)
class TaskData:
    """What a loader gives for one task.

    Attributes:
        splits: split name -> examples. ``train`` is always there.
        counts: split name -> reason -> rows that were dropped or cannot be used in training.
        sha256: split name -> hash of the file it was read from.
        protocol: ``full`` or ``reduced``; ``protocol_note`` says why it is reduced.
    """

    task: Task
    splits: Mapping[str, list[Any]]
    counts: Mapping[str, Mapping[str, int]]
    sha256: Mapping[str, str]
    protocol: str
    protocol_note: str

    @property
    def evaluation(self) -> dict[str, list[Any]]:
        """The splits that are scored."""
        return {name: rows for name, rows in self.splits.items() if name != "train"}


def load(task: Task, folder: Path | str, limit: int | None = None) -> TaskData:
    """Read a task under ``folder/<task>/``: as published, or by the reduced protocol where train is absent.

    Args:
        task: the task.
        folder: DATA; see ``python -m benchmarks.fetch``.
        limit: train on the first ``limit`` examples only.

    Raises:
        MissingFilesError: all named, with what to do.
        UserError: a file cannot be read (file and line), or has no real gold (:func:`refusal`).
    """
    root = Path(folder) / task.name
    files = _choose_files(task, root)
    paths = {split: _find(task, root, file) for split, file in files.items()}
    counts: dict[str, Counter[str]] = {}
    splits, sha256 = {}, {}
    for split, path in paths.items():
        assert path is not None  # _choose_files saw to it
        counts[split] = Counter()
        splits[split] = read_file(task, path, counts[split], split, training=split == "train")
        sha256[split] = sha256_file(path)
        _check(task, split, path, splits[split])
    notes, whole = [], dict(splits)
    if "train" not in files:
        rows = splits["dev"]
        splits = {
            "train": [r for r in rows if not _is_dev(r)],
            **splits,
            "dev": [r for r in rows if _is_dev(r)],
        }
        sha256 = {"train": sha256["dev"], **sha256}
        if not splits["train"] or not splits["dev"]:
            raise UserError(f"{paths['dev']} has too few rows to train on 90 % of it; give a train file")
        notes.append("train: 90 % of dev")
    elif files["train"] is not task.files["train"]:
        notes.append(f"train: {Path(files['train'].name).stem}")
    published = {split: file for split, file in files.items() if file is not task.stand_in}
    other = [n for n, file in published.items() if not _is_published(file, sha256[n], whole[n], counts[n])]
    if other:
        notes.append(f"other files than the published ones: {', '.join(other)}")
    if limit is not None and limit < len(splits["train"]):
        splits["train"] = splits["train"][:limit]
        notes.append(f"train: first {limit} rows")
    kept = {split: dict(+counter) for split, counter in counts.items() if +counter}
    return TaskData(task, splits, kept, sha256, "reduced" if notes else "full", "; ".join(notes))


# What a file may end in besides as published: of a table, and of a span task.
TABLES, SPANS = (".tsv", ".csv", ".jsonl", ".json", ".parquet"), (".json", ".jsonl", ".parquet")


def _find(task: Task, root: Path, file: File) -> Path | None:
    """Where a file lies: under its published name, else with the ending of another format.

    Raises:
        UserError: it lies there in two formats, neither as published.
    """
    path = root / file.name
    if path.is_file():
        return path
    endings = SPANS if task.kind == "span" else TABLES
    found = [other for ending in endings if (other := path.with_suffix(ending)).is_file()]
    if len(found) > 1:
        raise UserError(f"{root} holds {' and '.join(path.name for path in found)}; keep one of them")
    return found[0] if found else None


def _choose_files(task: Task, root: Path) -> dict[str, File]:
    """Split -> the file that is there; without ``train`` when neither it nor a stand-in is."""
    files = dict(task.files)
    if not _find(task, root, files["train"]):
        if task.stand_in and _find(task, root, task.stand_in):
            files["train"] = task.stand_in
        else:
            del files["train"]
    if not all(_find(task, root, file) for file in files.values()):
        missing = [file.name for file in task.files.values() if not _find(task, root, file)]
        raise MissingFilesError(
            f"{task.title} needs {', '.join(missing)} in {root}; run `python -m benchmarks.fetch {task.name}`"
            + (f" or {task.apply}" if task.apply else "")
            + ", or give the folder that holds them with --data"
        )
    return files


def _check(task: Task, split: str, path: Path, rows: list[Any]) -> None:
    """Refuse a file whose scores would mean nothing.

    Raises:
        UserError: no usable row, or a fault that :func:`refusal` names.
    """
    if not rows:
        raise UserError(f"{path} holds no usable row; give a file with rows, or fetch it again")
    if problem := refusal(task, rows, training=split == "train"):
        raise UserError(f"{path} {problem}")


def refusal(task: Task, rows: list[Any], *, training: bool = False) -> str | None:
    """What forbids to train on rows or to score predictions of them; None when nothing does.

    Missing or made-up gold (hidden test files carry one label throughout, or answers that are nowhere), and a
    span file in the other script than its task's, for converted contexts give other scores.
    """
    use = "train on" if training else "score"
    if task.kind != "span":
        labels = {row.label for row in rows}
        if None in labels:
            return f"has rows without a label: there is nothing to {use}; give a labelled file"
        if len(labels) == 1 and len(rows) > len(task.labels):
            name = task.labels[labels.pop()]
            return f"has the label {name} on all {len(rows)} rows: they are not real; give a labelled file"
        return None
    if not any(answer in row.context for row in rows for answer in row.answers if answer):
        return (
            f"has no answer that stands in its context: there is nothing to {use}; give a file with answers"
        )
    scripts = Counter(script_of(row.context) for row in rows)
    other = {"hans": "hant", "hant": "hans"}[task.script]
    if scripts[other] > len(rows) / 2:
        names = {"hans": "simplified", "hant": "traditional"}
        return (
            f"is in {names[other]} script, but {task.title} is in {names[task.script]}: converted contexts "
            "give other scores; give the published file"
        )
    return None


def _is_published(file: File, sha256: str, rows: list[Any], counts: Mapping[str, int]) -> bool:
    if file.sha256 is not None:
        return sha256 == file.sha256
    return file.rows == len(rows) + sum(n for reason, n in counts.items() if reason.startswith("dropped"))


def _is_dev(example: Example) -> bool:
    """Whether a row of the dev file stays in dev when nine tenths of it must train: a tenth, by its content.

    A span's key is its context, so that a paragraph is on one side; a pair's its two texts.
    """
    if isinstance(example, SpanExample):
        key = example.context
    else:
        key = example.text_a if example.text_b is None else f"{example.text_a}\t{example.text_b}"
    return int(hashlib.sha256(key.encode()).hexdigest()[-8:], 16) < DEV_SHARE * 2**32
