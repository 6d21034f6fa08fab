"""One build's settings and the files its steps hand on to one another."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import CorpusConfig
from corpus.inputs.documents import Part
from provenance import atomic_file


@dataclass(frozen=True)
class Job:
    """What a rank needs to know.

    Attributes:
        config: the corpus configuration.
        parts: what each rank of the read step reads, in input order.
        work: folder of intermediate files.
        vocab: verified vocab.txt.
        benchmark: whether work/benchmark.npy holds benchmark grams to look for, and their needs.
        tokenizer: as in Runtime.
    """

    config: CorpusConfig
    parts: tuple[tuple[Part, ...], ...]
    work: Path
    vocab: Path
    benchmark: bool = False
    tokenizer: Literal["fast", "reference"] = "fast"


Step = Callable[..., None]  # of (data, rank, world size, job)


def blocks(job: Job) -> list[Path]:
    """The blocks that reading made, in input order."""
    return sorted((job.work / "raw").glob("*/*.parquet"))


def counts_path(job: Job, step: str, rank: int) -> Path:
    return job.work / "counts" / f"{step}-{rank:05d}.json"


def read_counts(job: Job, step: str) -> list[dict[str, Any]]:
    """What each rank of a step counted, in rank order."""
    return [json.loads(path.read_text()) for path in sorted((job.work / "counts").glob(f"{step}-*.json"))]


def block_files(job: Job, folder: str, suffix: str = "parquet") -> list[Path]:
    """What a step wrote for each block, in input order."""
    return [job.work / folder / f"{rank:05d}.{suffix}" for rank in range(len(blocks(job)))]


def write_array(path: Path, array: np.ndarray) -> None:
    """A ``.npy`` file, written atomically; numpy itself would not say that the disk is full."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    with atomic_file(path) as partial:
        partial.write_bytes(buffer.getbuffer())


def write_table(path: Path, columns: dict[str, Any], schema: pa.Schema) -> None:
    """A Parquet file; the same columns give the same bytes."""
    with atomic_file(path) as partial:
        pq.write_table(pa.table(columns, schema=schema), partial, compression="zstd")


_TEXT = [(name, pa.string()) for name in ("id", "source", "title", "text")]
RAW = pa.schema(_TEXT)
SIGNED = pa.schema([*_TEXT, ("script", pa.string()), ("han", pa.int32()), ("emptied", pa.bool_())])
DOCUMENTS = pa.schema([*_TEXT, ("script", pa.string())])
REJECTED = pa.schema([(name, pa.string()) for name in ("id", "rule", "text")])
KEEP = pa.schema([("keep", pa.bool_()), ("held_out", pa.bool_()), ("copies", pa.int32())])
CLUSTERS = pa.schema(
    [("id", pa.string()), ("cluster", pa.int64()), ("kept", pa.bool_()), ("similarity", pa.float32())]
)


def columns_of(records: Sequence[dict[str, Any]], schema: pa.Schema) -> dict[str, list[Any]]:
    return {name: [record[name] for record in records] for name in schema.names}


def share_of(key: str) -> float:
    """A number in [0, 1) that ``key`` alone decides (its sha256)."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64


def copies_of(key: str, weight: float) -> int:
    """How often a document counts whose source has ``weight``: its id decides the fraction."""
    whole = int(weight)
    return whole + (whole < weight and share_of(f"sample/{key}") < weight - whole)
