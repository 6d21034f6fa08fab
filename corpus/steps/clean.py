"""Step clean: one block's documents through weights, conversion and rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import weights_of
from corpus.duplicates.recurring import group_of, line_records
from corpus.job import (
    RAW,
    REJECTED,
    Job,
    blocks,
    copies_of,
    counts_path,
    write_array,
    write_table,
)
from corpus.rules.gates import count_han_each
from corpus.rules.order import Tally, clean_all
from corpus.script import converter
from corpus.wiki.wikitext import convert_unprotected
from provenance import write_json

EXAMPLES, SHOWN = 3, 600  # changed documents a rank keeps for the report, and their characters


def _example(before: str, after: str) -> tuple[str, str] | None:
    """The beginnings of both if more than space changed there."""
    if before == after:
        return None
    before, after = before[:SHOWN], after[:SHOWN]
    pairs = zip("".join(before.split()), "".join(after.split()), strict=False)
    return (before, after) if any(a != b for a, b in pairs) else None


def _examples(keys: Iterable[str], before: Iterable[str], after: Iterable[str]) -> list[dict[str, str]]:
    found = ((key, _example(*pair)) for key, *pair in zip(keys, before, after, strict=True))
    shown = ({"id": key, "before": pair[0], "after": pair[1]} for key, pair in found if pair)
    return list(islice(shown, EXAMPLES))


def clean_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Leave out what the weights leave out, convert, clean; note the lines that may recur elsewhere.

    Text is converted first: the rules remove the marks around what no conversion may touch.
    """
    config, weights = job.config, weights_of(job.config)
    table = pq.read_table(blocks(job)[rank])
    keys, sources, texts = (table[name].to_pylist() for name in ("id", "source", "text"))
    han = count_han_each(texts)
    read: dict[str, Counter[str]] = {}
    for source, count in zip(sources, han, strict=True):
        counter = read.setdefault(source, Counter())
        counter["documents"] += 1
        counter["han"] += count

    sampled = [i for i, key in enumerate(keys) if copies_of(key, weights.get(sources[i], 1.0))]
    converted = [texts[i] for i in sampled]
    if config.convert != "none":
        convert = converter(config.convert)
        converted = [convert_unprotected(text, convert) for text in converted]
    tally = Tally()
    cleaned = dict(zip(sampled, clean_all(converted, config, tally, [keys[i] for i in sampled]), strict=True))
    after = {i: text for i, text in cleaned.items() if text is not None}
    kept = list(after.values())
    groups = [group_of(keys[i], sources[i]) for i in after]

    name = f"{rank:05d}"
    rest = table.select([column for column in RAW.names if column != "text"]).take(
        pa.array(after, pa.int64())
    )
    columns = {column: rest[column] for column in rest.column_names} | {"text": kept}
    write_table(job.work / "clean" / f"{name}.parquet", columns, RAW)
    write_array(job.work / "lines" / f"{name}.npy", line_records(kept, groups, config))
    rejected = list(zip(*tally.samples, strict=True)) or [(), (), ()]
    columns = {"id": rejected[1], "rule": rejected[0], "text": [text[:2000] for text in rejected[2]]}
    write_table(job.work / "rejected" / f"{name}.parquet", columns, REJECTED)
    han_sampled, han_kept = sum(han[i] for i in sampled), sum(han[i] for i in after)
    write_json(
        counts_path(job, "clean", rank),
        {
            "totals": {
                "documents_in": len(han),
                "han_in": sum(han),
                "not_sampled": len(han) - len(sampled),
                "not_sampled_han": sum(han) - han_sampled,
                "rejected": len(sampled) - len(after),
                "rejected_han": han_sampled - han_kept,
                "cleaned": len(after),
                "cleaned_han": sum(count_han_each(kept)),
            },
            "read": read,
            "rules": tally.counts,
            "lines": tally.most_dropped(),
            "changed": _examples((keys[i] for i in after), (texts[i] for i in after), kept),
            "groups": Counter(groups),
        },
    )
