"""Step clean: one block's documents through sampling, rules, conversion and the look at benchmark text."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from corpus import decontaminate, dedup, rules
from corpus.config import CorpusConfig
from corpus.job import CLEAN, REJECTED, Job, blocks, columns_of, counts_path, share_of, write_table
from corpus.script import converter, count_han, script_of
from provenance import atomic_file, write_json

EXAMPLES = 3  # changed documents a rank keeps for the report


def sample_shares(config: CorpusConfig) -> dict[str, float]:
    """``("history=0.3",)`` as a dict."""
    return {name: float(share) for name, _, share in (entry.partition("=") for entry in config.sample)}


@cache
def _benchmark_table(folder: Path) -> np.ndarray:
    return np.load(folder / "benchmark.npy")


def clean_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Sample, clean, convert, look for benchmark text, tell the script; for one block."""
    config, shares = job.config, sample_shares(job.config)
    convert = converter(config.convert) if config.convert != "none" else None
    tally = rules.Tally()
    totals: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    changed: list[dict[str, str]] = []
    found: list[np.ndarray] = []
    for record in pq.read_table(blocks(job)[rank]).to_pylist():
        han = count_han(record["text"])
        totals.update(documents_in=1, han_in=han)
        if share_of(f"sample/{record['id']}") >= shares.get(record["source"], 1.0):
            totals.update(not_sampled=1, not_sampled_han=han)
            continue
        text = rules.clean(record["text"], config, tally, record["id"])
        if text is None:
            totals.update(rejected=1, rejected_han=han)
            continue
        if convert:
            text = convert(text)
        if job.benchmark:
            shared, own = decontaminate.overlap(text, _benchmark_table(job.work))
            found.append(shared)
            if decontaminate.is_contaminated(len(shared), own):
                totals.update(contaminated=1, contaminated_han=count_han(text))
                tally.sample("contaminated", record["id"], text)
                if config.contaminated == "drop":
                    continue
        if text != record["text"] and len(changed) < EXAMPLES and len(text) > 60:
            changed.append({"id": record["id"], "before": record["text"][:600], "after": text[:600]})
        kept_han = count_han(text)
        totals.update(cleaned=1, cleaned_han=kept_han)
        kept.append(
            {
                **record,
                "text": text,
                "script": script_of(text),
                "fingerprint": dedup.fingerprint(text),
                "han": kept_han,
            }
        )
    write_table(job.work / "clean" / f"{rank:05d}.parquet", columns_of(kept, CLEAN), CLEAN)
    samples = [{"id": key, "rule": rule, "text": text[:2000]} for rule, key, text in tally.samples]
    write_table(job.work / "rejected" / f"{rank:05d}.parquet", columns_of(samples, REJECTED), REJECTED)
    if job.benchmark:
        with atomic_file(job.work / "found" / f"{rank:05d}.npy") as partial, open(partial, "wb") as file:
            np.save(file, np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64))
    write_json(counts_path(job, "clean", rank), {"totals": totals, "rules": tally.counts, "changed": changed})
