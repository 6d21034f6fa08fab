"""One build's settings and the files its steps hand on to one another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import CorpusConfig
from provenance import atomic_file


@dataclass(frozen=True)
class Job:
    """What a rank needs to know.

    Attributes:
        config: the corpus configuration.
        inputs: input files in order.
        work: folder of intermediate files.
        vocab: verified vocab.txt.
        benchmark: whether work/benchmark.npy holds benchmark grams to look for.
    """

    config: CorpusConfig
    inputs: tuple[Path, ...]
    work: Path
    vocab: Path
    benchmark: bool = False


Step = Callable[..., None]  # of (data, rank, world size, job)


def blocks(job: Job) -> list[Path]:
    """The blocks that reading made, in input order."""
    return sorted((job.work / "raw").glob("*/*.parquet"))


def counts_path(job: Job, step: str, rank: int) -> Path:
    return job.work / "counts" / f"{step}-{rank:05d}.json"


def read_counts(job: Job, step: str) -> list[dict[str, Any]]:
    """What each rank of a step counted, in rank order."""
    return [json.loads(path.read_text()) for path in sorted((job.work / "counts").glob(f"{step}-*.json"))]


def write_table(path: Path, columns: dict[str, Any], schema: pa.Schema) -> None:
    """A Parquet file; the same columns give the same bytes."""
    with atomic_file(path) as partial:
        pq.write_table(pa.table(columns, schema=schema), partial, compression="zstd")


_TEXT = [(name, pa.string()) for name in ("id", "source", "title", "text")]
RAW = pa.schema(_TEXT)
CLEAN = pa.schema([*_TEXT, ("script", pa.string()), ("fingerprint", pa.binary(16)), ("han", pa.int32())])
DOCUMENTS = pa.schema([*_TEXT, ("script", pa.string())])
REJECTED = pa.schema([(name, pa.string()) for name in ("id", "rule", "text")])
KEEP = pa.schema([("keep", pa.bool_()), ("held_out", pa.bool_())])


def columns_of(records: Sequence[dict[str, Any]], schema: pa.Schema) -> dict[str, list[Any]]:
    return {name: [record[name] for record in records] for name in schema.names}


def share_of(key: str) -> float:
    """A number in [0, 1) that ``key`` alone decides (its sha256)."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
