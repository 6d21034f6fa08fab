"""Packed rows as Arrow files in a folder that ``datasets.load_from_disk`` memory-maps.

The folder is written by hand and not by ``save_to_disk``, whose fingerprints and shards vary from run to
run: the same rows must give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpus.tokens.pack import Row
from corpus.tokens.wordpiece import ranges
from corpus.vocab import CLS, SEP
from provenance import atomic_file, write_text

ROWS_PER_BATCH = 1000  # rows in an Arrow record batch, as datasets writes them
SHARD_BYTES = 500_000_000  # of a file, at most, as datasets writes them
_TYPES = {"input_ids": "uint16", "token_type_ids": "uint8", "word_starts": "bool"}
_FEATURES = {
    name: {"feature": {"dtype": dtype, "_type": "Value"}, "_type": "List"} for name, dtype in _TYPES.items()
}
SCHEMA = pa.schema(
    [
        ("input_ids", pa.list_(pa.uint16())),
        ("token_type_ids", pa.list_(pa.uint8())),
        ("word_starts", pa.list_(pa.bool_())),
    ],
    metadata={"huggingface": json.dumps({"info": {"features": _FEATURES}})},
)


def table_of(rows: Sequence[Row], ids: np.ndarray, word_starts: np.ndarray) -> pa.Table:
    """``[CLS] a [SEP]`` or ``[CLS] a [SEP] b [SEP]`` for each row; type 1 from b's first token to its [SEP].

    A segment's first token counts as a word start, also where a cut fell inside a word; so do special tokens.

    Args:
        rows: stretches of the tokens.
        ids: uint16 (tokens,).
        word_starts: bool (tokens,).
    """
    flat = [(*span, r, s) for r, row in enumerate(rows) for s, spans in enumerate(row) for span in spans]
    start, end, row, segment = np.array(flat, dtype=np.int64).reshape(-1, 4).T
    sizes = end - start
    in_a = np.bincount(row, sizes * (segment == 0), len(rows)).astype(np.int64) + 2  # with [CLS] and [SEP]
    in_b = np.bincount(row, sizes * (segment == 1), len(rows)).astype(np.int64)
    in_b += in_b > 0  # with [SEP]
    ends = np.cumsum(in_a + in_b)
    begins = ends - in_a - in_b
    input_ids = np.full(in_a.sum() + in_b.sum(), SEP, dtype=np.uint16)
    input_ids[begins] = CLS
    source = ranges(start, sizes)
    special = 2 + (
        in_b > 0
    )  # in each row; before a token: those of earlier rows, [CLS], and for B the [SEP] of A
    before = (np.cumsum(special) - special)[row] + 1 + segment
    places = np.arange(len(source)) + np.repeat(before, sizes)
    input_ids[places] = ids[source]
    starts = np.ones(len(input_ids), dtype=bool)
    starts[places] = word_starts[source]
    starts[begins + 1] = True
    starts[(begins + in_a)[in_b > 0]] = True
    types = np.repeat(np.tile(np.array([0, 1], dtype=np.uint8), len(rows)), np.stack([in_a, in_b], 1).ravel())
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    lists = [pa.ListArray.from_arrays(offsets, pa.array(values)) for values in (input_ids, types, starts)]
    return pa.table(lists, schema=SCHEMA)


def write_rows(path: Path, tables: Iterable[pa.Table]) -> None:
    """An Arrow stream file of all rows, written atomically; one table is in memory at a time."""
    with atomic_file(path) as partial, pa.ipc.new_stream(partial, SCHEMA) as writer:
        for table in tables:
            for batch in table.to_batches(max_chunksize=ROWS_PER_BATCH):
                writer.write_batch(batch)


def read_rows(path: Path) -> pa.Table:
    """The rows of one Arrow file, memory-mapped."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_stream(source).read_all()


def link_or_copy(source: Path, target: Path) -> None:
    """Give ``source`` a second name, which costs no space; copy it where the file system has no links.

    It stays where it was, so that a build that is killed while it assembles can be taken up again.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def shards(parts: Sequence[tuple[Path, int]], shard_bytes: int) -> list[list[Path]]:
    """Files in order, each with its size, in groups of ``shard_bytes`` at most; a larger file stays alone."""
    groups: list[list[Path]] = []
    room = 0
    for path, size in parts:
        if size > room:
            groups.append([])
            room = shard_bytes
        groups[-1].append(path)
        room -= size
    return groups


def finish_split(
    folder: Path, split: str, parts: Sequence[Path], *, shard_bytes: int = SHARD_BYTES
) -> dict[str, int]:
    """Make ``folder`` a dataset of the rows in ``parts``, in order; gives the rows of each file.

    Its files are as large as ``shard_bytes`` allows: a dataset keeps each file open, and a part is a block of
    some 10 MB. A part that fills a shard alone is linked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    filled = [(path, path.stat().st_size) for path in parts if read_rows(path).num_rows]
    groups = shards(filled, shard_bytes) or [[]]
    rows: dict[str, int] = {}
    for index, group in enumerate(groups):
        name = f"data-{index:05d}-of-{len(groups):05d}.arrow"
        if len(group) == 1:
            link_or_copy(group[0], folder / name)
        else:
            write_rows(folder / name, map(read_rows, group))
        rows[name] = sum(read_rows(path).num_rows for path in group)
    digest = hashlib.sha256()
    for name in rows:
        digest.update(name.encode())
        with open(folder / name, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    state: dict[str, object] = {
        "_data_files": [{"filename": name} for name in rows],
        "_fingerprint": digest.hexdigest()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": split,
    }
    info = {"citation": "", "description": "", "features": _FEATURES, "homepage": "", "license": ""}
    write_text(folder / "state.json", json.dumps(state, indent=2))
    write_text(folder / "dataset_info.json", json.dumps(info, indent=2))
    return rows
