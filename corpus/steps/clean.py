"""Step clean: one block's documents through weights, rules and conversion."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow.parquet as pq

from corpus import rules
from corpus.config import weights_of
from corpus.job import (
    RAW,
    REJECTED,
    Job,
    blocks,
    columns_of,
    copies_of,
    counts_path,
    write_array,
    write_table,
)
from corpus.recurring import group_of, line_records
from corpus.script import converter, count_han
from provenance import write_json

EXAMPLES, SHOWN = 3, 600  # changed documents a rank keeps for the report, and their characters


def _example(before: str, after: str) -> tuple[str, str] | None:
    """The beginnings of both if more than space changed there."""
    before, after = before[:SHOWN], after[:SHOWN]
    pairs = zip("".join(before.split()), "".join(after.split()), strict=False)
    return (before, after) if any(a != b for a, b in pairs) else None


def clean_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Leave out what the weights leave out, clean, convert; note the lines that may recur elsewhere."""
    config, weights = job.config, weights_of(job.config)
    convert = converter(config.convert) if config.convert != "none" else None
    tally = rules.Tally()
    totals: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    changed: list[dict[str, str]] = []
    read: dict[str, Counter[str]] = {}
    for record in pq.read_table(blocks(job)[rank]).to_pylist():
        han = count_han(record["text"])
        totals.update(documents_in=1, han_in=han)
        read.setdefault(record["source"], Counter()).update(documents=1, han=han)
        if not copies_of(record["id"], weights.get(record["source"], 1.0)):
            totals.update(not_sampled=1, not_sampled_han=han)
            continue
        text = rules.clean(record["text"], config, tally, record["id"])
        if text is None:
            totals.update(rejected=1, rejected_han=han)
            continue
        if convert:
            text = convert(text)
        if len(changed) < EXAMPLES and (example := _example(record["text"], text)):
            changed.append({"id": record["id"], "before": example[0], "after": example[1]})
        totals.update(cleaned=1, cleaned_han=count_han(text))
        kept.append({**record, "text": text})
    groups = [group_of(record["id"], record["source"]) for record in kept]
    lines = line_records([record["text"] for record in kept], groups, config)
    name = f"{rank:05d}"
    write_table(job.work / "clean" / f"{name}.parquet", columns_of(kept, RAW), RAW)
    write_array(job.work / "lines" / f"{name}.npy", lines)
    samples = [{"id": key, "rule": rule, "text": text[:2000]} for rule, key, text in tally.samples]
    write_table(job.work / "rejected" / f"{name}.parquet", columns_of(samples, REJECTED), REJECTED)
    write_json(
        counts_path(job, "clean", rank),
        {
            "totals": totals,
            "read": read,
            "rules": tally.counts,
            "lines": tally.most_dropped(),
            "changed": changed,
            "groups": Counter(groups),
        },
    )
