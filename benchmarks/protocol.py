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
from finetune.examples import SpanExample, TextExample
from provenance import UserError, sha256_file

Example = TextExample | SpanExample

DEV_SHARE = 0.10  # of the dev file, under the reduced protocol


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
        UserError: files are missing (all named, with what to do), or one cannot be read (file and line).
    """
    root = Path(folder) / task.name
    files = _choose_files(task, root)
    counts: dict[str, Counter[str]] = {}
    splits, sha256 = {}, {}
    for split, file in files.items():
        counts[split] = Counter()
        splits[split] = read_file(task, root / file.name, counts[split], split, training=split == "train")
        sha256[split] = sha256_file(root / file.name)
        if not splits[split]:
            raise UserError(
                f"{root / file.name} holds no usable row; give a file with rows, or fetch it again"
            )
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
            raise UserError(
                f"{root / files['dev'].name} has too few rows to train on 90 % of it; give a train file"
            )
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


def _choose_files(task: Task, root: Path) -> dict[str, File]:
    """Split -> the file that is there; without ``train`` when neither it nor a stand-in is."""
    files = dict(task.files)
    if not (root / files["train"].name).is_file():
        if task.stand_in and (root / task.stand_in.name).is_file():
            files["train"] = task.stand_in
        else:
            del files["train"]
    if any(not (root / file.name).is_file() for file in files.values()):
        missing = [file.name for file in task.files.values() if not (root / file.name).is_file()]
        raise UserError(
            f"{task.title} needs {', '.join(missing)} in {root}; run `python -m benchmarks.fetch {task.name}`"
            + (f" or {task.apply}" if task.apply else "")
            + ", or give the folder that holds them with --data"
        )
    return files


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
