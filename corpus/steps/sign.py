"""Step sign: one block's documents without the lines to drop, and what their duplicates are known by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from corpus.duplicates import decontaminate, minhash
from corpus.duplicates.recurring import RULES
from corpus.hashing import Letters, letters_of, segment_hashes, slices
from corpus.job import REJECTED, SIGNED, Job, counts_path, write_array, write_table
from corpus.rules.order import LINE_SHOWN, Tally
from corpus.script import count_han, scripts_of
from corpus.steps.recurring import dropped_lines
from provenance import write_json

BENCHMARK_TEXT = "benchmark_text"
Drops = dict[int, dict[int, str]]  # document -> line of it -> the rule that drops the line


@cache
def _lookup(folder: Path) -> decontaminate.Lookup:
    return decontaminate.lookup_of(*np.load(folder / "benchmark.npy", mmap_mode="r"))


def _without(text: str, dropped: Iterable[int]) -> str:
    gone = set(dropped)
    return "\n".join(line for i, line in enumerate(text.split("\n")) if i not in gone) if gone else text


def _boilerplate(dropped: Mapping[int, str]) -> list[int]:
    return [line for line, rule in dropped.items() if rule == RULES[0]]


def _recurring(job: Job, rank: int, texts: list[str]) -> Drops:
    """The lines that step recurring found in this block."""
    ends = np.cumsum([text.count("\n") + 1 for text in texts], dtype=np.int64)
    lines, rules = dropped_lines(job, rank)
    owners = np.searchsorted(ends, lines, side="right")
    begins = np.concatenate([[0], ends])[owners]
    drops: Drops = defaultdict(dict)
    for owner, line, rule in zip(owners.tolist(), (lines - begins).tolist(), rules.tolist(), strict=True):
        drops[owner][line] = RULES[rule]
    return drops


def _find_benchmark(job: Job, first: int, texts: list[str], drops: Drops) -> tuple[np.ndarray, np.ndarray]:
    """Benchmark grams in ``texts``, which begin at document ``first``: all, and those in lines that stay.

    Adds the lines that hold development or test text to ``drops`` if that is wanted.
    """
    split = [text.split("\n") for text in texts]
    counts = np.array([len(lines) for lines in split], dtype=np.int64)
    ends, begins = np.cumsum(counts), np.cumsum(counts) - counts
    letters = letters_of([line for lines in split for line in lines])
    documents = Letters(letters.codes, letters.ends[ends - 1])
    overlap = decontaminate.overlap(documents, letters.ends, _lookup(job.work))
    gone = np.zeros(len(letters.ends), dtype=bool)
    for line in np.flatnonzero(overlap.holds).tolist() if job.config.decontaminate else ():
        document = int(np.searchsorted(ends, line, side="right"))
        drops[first + document].setdefault(line - int(begins[document]), BENCHMARK_TEXT)
    for document in range(len(texts)):
        for line in drops.get(first + document, ()):
            gone[int(begins[document]) + line] = True
    return overlap.indices, overlap.indices[~gone[overlap.lines]]


def sign_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Drop lines; fingerprint, signature, script and size of what is left.

    Documents are compared without boilerplate, but with the paragraphs that others hold and with benchmark
    text: without these, what is left of a copy would pass for a text of its own.
    """
    config, name = job.config, f"{rank:05d}"
    table = pq.read_table(job.work / "clean" / f"{name}.parquet")
    ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
    drops = _recurring(job, rank, texts)
    fingerprints, signatures = [], []
    found, left = np.zeros((2, len(_lookup(job.work).table) if job.benchmark else 0), dtype=bool)
    for part in slices(texts):
        numbers = range(part.start, part.stop)
        letters = letters_of([_without(texts[i], _boilerplate(drops.get(i, {}))) for i in numbers])
        fingerprints.append(segment_hashes(letters))
        if config.near_duplicates:
            signatures.append(minhash.signatures(letters))
        if job.benchmark:
            everything, staying = _find_benchmark(job, part.start, texts[part], drops)
            found[everything], left[staying] = True, True
    after = [_without(text, drops.get(i, ())) for i, text in enumerate(texts)]
    han = [count_han(text) for text in after]
    columns = {
        **{column: table[column] for column in ("id", "source", "title")},
        "text": after,
        "script": [script for part in slices(after) for script in scripts_of(after[part])],
        "han": han,
        "emptied": [i in drops and n < max(1, config.min_han) for i, n in enumerate(han)],
    }
    write_table(job.work / "signed" / f"{name}.parquet", columns, SIGNED)
    write_array(job.work / "fingerprints" / f"{name}.npy", np.concatenate(fingerprints))
    if config.near_duplicates:
        write_array(job.work / "signatures" / f"{name}.npy", np.concatenate(signatures, axis=1))
    for folder, seen in (("found", found), ("left", left)):
        if job.benchmark:
            write_array(job.work / folder / f"{name}.npy", np.flatnonzero(seen))
    tally = _count(ids, texts, drops)
    samples = {
        column: [sample[i] for sample in tally.samples] for column, i in (("rule", 0), ("id", 1), ("text", 2))
    }
    write_table(job.work / "rejected" / f"{name}-lines.parquet", samples, REJECTED)
    write_json(
        counts_path(job, "sign", rank),
        {"totals": {"signed_han": sum(han)}, "rules": tally.counts, "lines": tally.most_dropped()},
    )


def _count(ids: list[str], texts: list[str], drops: Drops) -> Tally:
    """What the dropped lines were."""
    tally = Tally()
    for document, dropped in sorted(drops.items()):
        lines = texts[document].split("\n")
        for line, rule in sorted(dropped.items()):
            tally.counts[f"{rule}.dropped"] += 1
            tally.counts[f"{rule}.characters"] += len(lines[line])
            tally.counts[f"{rule}.han"] += count_han(lines[line])
            tally.lines[rule, lines[line][:LINE_SHOWN]] += 1
            tally.sample(rule, ids[document], lines[line][:2000])
    return tally
