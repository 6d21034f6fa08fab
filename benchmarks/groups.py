"""Records of one model on one task under one ``bench_id``, over seeds: read, checked, summarised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.record import Record, find_records, record_path
from benchmarks.stats import Summary, summarise
from benchmarks.task import Task
from benchmarks.tasks import get_task
from provenance import UserError, plain

PROTOCOLS = ("full", "reduced")
# Our metric -> the name it is published under.
LABELS = {
    "exact_match": "EM",
    "f1": "F1",
    "accuracy": "accuracy",
    "accuracy_unseen": "accuracy on inputs not in train",
    "own_exact_match": "EM by the task's own scorer",
    "own_f1": "F1 by the task's own scorer",
}
# What the seeds of one bench_id must have in common; environment and code may differ and are in the records.
COMMON = ("model", "task_version", "protocol", "protocol_note", "config", "examples", "data_sha256")
# What of the environment can change a score; it is no part of the bench_id.
ENVIRONMENT = ("device", "torch", "transformers", "tokenizers")


@dataclass(frozen=True)
class Group:
    """The records of one ``bench_id`` in the order of their seeds; ``first`` stands for what they share."""

    records: tuple[Record, ...]

    @property
    def first(self) -> Record:
        return self.records[0]

    @property
    def name(self) -> str:
        return str(self.first.model["name"])

    @property
    def key(self) -> tuple[str, str]:
        """What is this group's alone: the same weights may have records under several names."""
        return self.name, self.first.bench_id

    @property
    def degenerate(self) -> int:
        """Number of runs that learned nothing: one answer for everything, or at chance."""
        return sum(record.degenerate for record in self.records)

    def scores(self, split: str, metric: str) -> dict[int, float]:
        """``{seed: percent}`` of the records that have this score."""
        return {
            record.seed: record.scores[split][metric]
            for record in self.records
            if metric in record.scores.get(split, {})
        }

    def summary(self, split: str, metric: str) -> Summary | None:
        """Summary over the seeds; None where no record has this score."""
        scores = self.scores(split, metric)
        return summarise(scores) if scores else None

    def item_interval(self, split: str, metric: str) -> tuple[float, float] | None:
        """95 % bootstrap interval over items of a typical run: the mean of its bounds over the seeds.

        Of one run, not of the mean over seeds, which sees the same items. None where a record has none.
        """
        found = [record.intervals.get(split, {}).get(metric) for record in self.records]
        bounds = [pair for pair in found if pair is not None]
        if len(bounds) < len(self.records):
            return None
        low, high = (sum(side) / len(bounds) for side in zip(*bounds, strict=True))
        return low, high

    def at_best_dev(self, metric: str) -> tuple[int, float] | None:
        """(seed, test score) of the seed that is best on dev by the task's main metric, the lowest on a tie.

        This is the test score one may report without having chosen it on test. None without dev or test.
        """
        dev, test = self.scores("dev", get_task(self.first.task).main_metric), self.scores("test", metric)
        both = sorted(dev.keys() & test.keys())
        if not both:
            return None
        seed = max(both, key=lambda seed: dev[seed])  # the first of equals
        return seed, test[seed]


def load_groups(results: Path | str) -> list[Group]:
    """All records under ``results`` by model, task (in its order) and ``bench_id``.

    Raises:
        UserError: no such folder, a damaged record, a record that contradicts its place, or two of one
            ``bench_id`` that contradict each other (both named).
    """
    if not Path(results).is_dir():
        raise UserError(
            f"{results} is not a folder of records; give the one `benchmarks.run --results` wrote"
        )
    members: dict[tuple[str, str, str], list[tuple[Path, Record]]] = {}
    for path, record in find_records(results):
        key = (str(record.model["name"]), record.task, record.bench_id)
        if path != record_path(results, *key, record.seed):
            raise UserError(f"{path} holds the record of another run; move it to its place or delete it")
        get_task(record.task)
        _agree(members.setdefault(key, []), path, record)
    return [Group(tuple(sorted((r for _, r in found), key=lambda r: r.seed))) for found in members.values()]


def _agree(earlier: list[tuple[Path, Record]], path: Path, record: Record) -> None:
    """Add a record to those of its ``bench_id`` after checking that it agrees with the first."""
    if earlier:
        other_path, other = earlier[0]
        pairs = {name: (getattr(record, name), getattr(other, name)) for name in COMMON}
        this, that = pairs["model"]
        facts = this.keys() & that.keys()  # earlier records hold fewer
        pairs["model"] = {fact: this[fact] for fact in facts}, {fact: that[fact] for fact in facts}
        differ = [name for name, (one, two) in pairs.items() if plain(one) != plain(two)]
        if differ:
            raise UserError(
                f"{path} and {other_path} have one bench_id but differ in {', '.join(differ)}; "
                "delete the wrong one and run its seed again"
            )
    earlier.append((path, record))


def differences(groups: Iterable[Group]) -> dict[str, str]:
    """``{bench_id: words}``: what tells groups of one task apart, such as ``epochs 2`` or ``device cpu``."""
    groups = list(groups)
    facts = {
        group.first.bench_id: {
            "weights": group.first.model["weights_sha256"][:8],
            "task version": group.first.task_version,
            **{f"{split} data": digest[:8] for split, digest in group.first.data_sha256.items()},
            **group.first.config,
            **{name: _environment(group, name) for name in ENVIRONMENT},
        }
        for group in groups
    }
    keys = list(dict.fromkeys(key for fact in facts.values() for key in fact))
    telling = [key for key in keys if len({str(fact.get(key)) for fact in facts.values()}) > 1]
    return {
        bench: ", ".join(f"{key.replace('_', ' ')} {fact.get(key)}" for key in telling)
        for bench, fact in facts.items()
    }


def _environment(group: Group, name: str) -> str:
    """The values of an entry of the environment over the seeds of a group."""
    return " and ".join(sorted({str(record.environment.get(name, "unknown")) for record in group.records}))


def mixed(group: Group) -> str:
    """What the seeds of a group do not share though it can change a score; empty where all is the same."""
    values = {name: _environment(group, name) for name in ENVIRONMENT}
    parts = [f"{name} {value}" for name, value in values.items() if " and " in value]
    return f"seeds of different {', '.join(parts)}" if parts else ""


def settings(groups: Sequence[Group]) -> dict[tuple[str, str], str]:
    """``{Group.key: words}``: protocol note, what tells it from its model's other groups, :func:`mixed`."""
    words = {}
    for group in groups:
        alike = [g for g in groups if (g.name, g.first.task) == (group.name, group.first.task)]
        parts = [group.first.protocol_note, differences(alike).get(group.first.bench_id, ""), mixed(group)]
        words[group.key] = "; ".join(filter(None, parts))
    return words


def columns(task: Task, groups: Iterable[Group]) -> list[tuple[str, str]]:
    """(split, metric) pairs that any of the groups has: dev first, the task's metrics before further ones."""
    found = {
        (split, metric)
        for group in groups
        for record in group.records
        for split, scores in record.scores.items()
        for metric in scores
    }
    more = sorted({metric for _, metric in found} - set(task.metrics))
    ordered = [(split, metric) for split in ("dev", "test") for metric in (*task.metrics, *more)]
    return [pair for pair in ordered if pair in found]
