"""Packed rows as Arrow files in a folder that ``datasets.load_from_disk`` memory-maps.

The folder is written by hand and not by ``save_to_disk``, whose fingerprints and shards vary from run to
run: the same rows must give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpus.pack import Row
from provenance import atomic_file, write_text

ROWS_PER_BATCH = 1000  # rows in an Arrow record batch, as datasets writes them
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


class RowBuffer:
    """Rows in flat arrays until they are written."""

    def __init__(self) -> None:
        self.ids, self.types, self.starts = array("H"), array("B"), array("B")
        self.ends = array("i", [0])

    def add(self, row: Row) -> None:
        self.ids.extend(row.input_ids)
        self.types.extend(row.token_type_ids)
        self.starts.extend(row.word_starts)
        self.ends.append(len(self.ids))

    def table(self) -> pa.Table:
        offsets = pa.array(np.frombuffer(self.ends, dtype=np.int32))
        columns = (
            np.frombuffer(self.ids, dtype=np.uint16),
            np.frombuffer(self.types, dtype=np.uint8),
            np.frombuffer(self.starts, dtype=np.uint8).astype(bool),
        )
        lists = [pa.ListArray.from_arrays(offsets, pa.array(values)) for values in columns]
        return pa.table(lists, schema=SCHEMA)


def write_rows(path: Path, table: pa.Table) -> None:
    """An Arrow stream file, written atomically."""
    with atomic_file(path) as partial, pa.ipc.new_stream(partial, SCHEMA) as writer:
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


def finish_split(
    folder: Path, split: str, parts: Sequence[Path], *, one_file: bool = False
) -> dict[str, int]:
    """Make ``folder`` a dataset of the rows in ``parts``, in order; gives the rows of each file.

    Parts without rows are left out; ``one_file`` joins the parts (for splits of a few rows each).
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables = [(path, read_rows(path)) for path in parts]
    tables = [(path, table) for path, table in tables if table.num_rows]
    names = [f"data-{i:05d}-of-{len(tables):05d}.arrow" for i in range(len(tables))]
    if one_file or not tables:
        name = "data-00000-of-00001.arrow"
        joined = pa.concat_tables([table for _, table in tables]) if tables else RowBuffer().table()
        write_rows(folder / name, joined.combine_chunks())
        rows = {name: joined.num_rows}
    else:
        for name, (path, _) in zip(names, tables, strict=True):
            link_or_copy(path, folder / name)
        rows = {name: table.num_rows for name, (_, table) in zip(names, tables, strict=True)}
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
