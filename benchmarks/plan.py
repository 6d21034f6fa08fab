"""What a run will do: for each task its data, its settings and the seeds that have no record yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ceiling import ceiling
from benchmarks.protocol import MissingFilesError, TaskData, load
from benchmarks.record import Record, is_finished, read_record, record_path, seed_name
from benchmarks.settings import resolve
from benchmarks.task import Task
from benchmarks.tasks import get_tasks
from benchmarks.trial import Trial, identify
from finetune.config import FinetuneConfig
from finetune.models import model_facts
from finetune.tokens import load_encoder
from provenance import UserError, plain

DEFAULT_MODEL = "data/pretrain/small/discriminator"  # what `make pretrain-small` writes


@dataclass(frozen=True)
class Plan:
    """One task of a run: its data, its settings and where each came from, and the seeds.

    ``folder`` is where its records lie; ``done`` seeds have one, ``waiting`` seeds have none.
    """

    task: Task
    data: TaskData
    config: FinetuneConfig
    sources: Mapping[str, str]
    bench_id: str
    folder: Path
    done: tuple[int, ...]
    waiting: tuple[int, ...]

    def ceilings(self, model: str) -> dict[str, dict[str, float]]:
        """Split -> what perfect logits reach; none for classification."""
        if self.task.kind != "span":
            return {}
        encoder = load_encoder(model, map_quotes=self.config.map_quotes)
        return {name: ceiling(rows, encoder, self.config) for name, rows in self.data.evaluation.items()}

    def trial(self, seed: int, ceilings: Mapping[str, Mapping[str, float]], **common: Any) -> Trial:
        """One seed as a job; ``common`` is what all trials of a run share."""
        task, config, bench = self.task.name, self.config, self.bench_id
        return Trial(task=task, config=config, bench_id=bench, seed=seed, ceiling=ceilings, **common)

    def records(self, seeds: Sequence[int] | None = None) -> list[Record]:
        """The records there are of these seeds; by default of all, those of earlier runs among them."""
        if seeds is None:
            return [read_record(path) for path in sorted(self.folder.glob("seed-*.json"))]
        paths = [self.folder / f"{seed_name(seed)}.json" for seed in seeds]
        return [read_record(path) for path in paths if path.exists()]


def load_tasks(names: str, data: Path, limit: int | None) -> tuple[list[TaskData], list[str]]:
    """The data of the tasks; of ``all``, those whose files are there, and what is said of the others.

    Raises:
        UserError: a task that was named has no files, or none has.
    """
    loaded, absent = [], []
    for task in get_tasks(names):
        try:
            loaded.append(load(task, data, limit))
        except MissingFilesError as error:
            if names != "all":
                raise
            absent.append(str(error))
    if not loaded:
        raise UserError(absent[0])
    return loaded, absent


def facts_of(model: str, name: str | None) -> dict[str, Any]:
    """What records say of the model, under its name in records.

    Raises:
        UserError: it cannot be used, or its name cannot name a folder.
    """
    if model == DEFAULT_MODEL and not Path(model).is_dir():
        raise UserError(
            f"{model} does not exist; run `make pretrain-small`, or give a model's folder or Hub id"
        )
    facts = model_facts(model)
    facts["name"] = name or facts["name"]
    if Path(facts["name"]).name != facts["name"] or facts["name"].startswith("."):
        raise UserError(f"the model name {facts['name']!r} cannot name a folder; give another with --name")
    return facts


def make_plan(
    data: TaskData,
    facts: Mapping[str, Any],
    options: Mapping[str, Any],
    record: Record | None,
    seeds: Sequence[int],
    results: Path,
) -> Plan:
    """The plan of one task; ``options`` are settings of the command line, ``record`` one that is replayed.

    Raises:
        UserError: the model takes no inputs of the length that the settings have, or a finished record is of
            the same weights with another ``config.json``.
    """
    config, sources = resolve(data.task, facts, options, {} if record is None else record.config)
    longest = facts.get("longest_input")
    if longest is not None and config.max_length > longest:
        raise UserError(
            f"{facts['name']} takes {longest} tokens, not {config.max_length} as {data.task.title} has them; "
            f"give --max-length {longest}"
        )
    bench = identify(data.task, data, facts, config)
    paths = {seed: record_path(results, facts["name"], data.task.name, bench, seed) for seed in seeds}
    done = [seed for seed, path in paths.items() if is_finished(path)]
    for seed in done:
        recorded = read_record(paths[seed]).model
        if _other_config(recorded, facts):
            raise UserError(
                f"{paths[seed]} is of these weights with another config.json; give this model another "
                "--name, or delete that record"
            )
    waiting = [seed for seed in seeds if seed not in done]
    folder = next(iter(paths.values())).parent
    return Plan(data.task, data, config, sources, bench, folder, tuple(done), tuple(waiting))


def _other_config(recorded: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether a record's model had another ``config.json``; False for records that do not say."""
    return recorded.get("config_sha256", facts.get("config_sha256")) != facts.get("config_sha256")


def differences(record: Record, plan: Plan, facts: Mapping[str, Any]) -> list[str]:
    """What of a plan's identity differs from a record's; nothing where it is the same run."""
    pairs = {
        "weights": (record.model["weights_sha256"], facts["weights_sha256"]),
        "tokenizer": (record.model.get("tokenizer_sha256"), facts["tokenizer_sha256"]),
        "config.json": (_other_config(record.model, facts), False),
        "settings": (record.config, plain(plan.config)),
        "data": (record.data_sha256, plan.data.sha256),
        "protocol": (
            (record.protocol, record.protocol_note),
            (plan.data.protocol, plan.data.protocol_note),
        ),
    }
    found = [name for name, (theirs, ours) in pairs.items() if theirs != ours]
    return found or (["version of the task"] if record.bench_id != plan.bench_id else [])


def work(plan: Plan) -> float:
    """Rough cost of a run in characters: those trained on cost three times those predicted, an epoch."""

    def characters(rows: Sequence[Any]) -> int:
        fields = ("question", "context") if plan.task.kind == "span" else ("text_a", "text_b")
        limit = plan.config.max_length * (4 if plan.task.kind == "span" else 1)  # spans read several windows
        return sum(min(limit, sum(len(getattr(row, field) or "") for field in fields)) for row in rows)

    evaluated = sum(characters(rows) for rows in plan.data.evaluation.values())
    return 3 * plan.config.epochs * characters(plan.data.splits["train"]) + evaluated
