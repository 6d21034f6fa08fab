"""Rows of Parquet files and of datasets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpus.config import CorpusConfig
from corpus.inputs.compression import DAMAGE, SUFFIXES, damaged, opened
from corpus.inputs.documents import Document, Part, Tally, stem
from corpus.inputs.formats.lines import document_of
from corpus.inputs.hub import Dataset
from provenance import UserError


def _rows(
    entries: Iterable[Mapping[str, Any]], part: Part, prefix: str, source: str, text_key: str
) -> Iterator[Document]:
    for number, entry in enumerate(entries, part.number):
        text = entry.get(text_key)
        if text is not None and not isinstance(text, str):
            raise UserError(f'{part.path} row {number} has no text under "{text_key}"; give --text-key')
        yield document_of(f"{prefix}/{number}", source, entry, text or "")


def _entries(batches: Iterable[Any], part: Part) -> Iterator[Mapping[str, Any]]:
    """The rows of record batches; they may hold what Python has not, as times in the year 9999999."""
    first = part.number
    for batch in batches:
        try:
            rows = batch.to_pylist()
        except Exception as error:  # of text that is not UTF-8, of times, of time zones
            where = f" in rows {first} to {first + batch.num_rows - 1}"
            raise damaged(part.file, error, where) from None
        yield from rows
        first += len(rows)


@contextmanager
def parquet_file(path: Path) -> Iterator[Any]:
    """The Parquet file at ``path``, which may be compressed once more; damage is raised as UserError."""
    import pyarrow
    import pyarrow.parquet

    try:
        with opened(path) as file, tempfile.TemporaryFile() as plain:
            if path.suffix.lower() in SUFFIXES:  # it is read from its end, which such a stream cannot
                shutil.copyfileobj(file, plain)
                yield pyarrow.parquet.ParquetFile(plain, page_checksum_verification=True)
            else:
                yield pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
    except (pyarrow.ArrowException, *DAMAGE) as error:
        raise damaged(path, error) from None


def read_parquet(part: Part, config: CorpusConfig, tally: Tally) -> Iterator[Document]:
    """A row a document; those without an id are numbered."""
    path, key = part.file, config.text_key
    with parquet_file(path) as table:
        present = table.schema_arrow.names
        if key not in present:
            raise UserError(f'{path} has no column "{key}" (it has {", ".join(present)}); give --text-key')
        columns = [name for name in ("id", "source", "title", key) if name in present]
        groups = list(range(part.start, table.num_row_groups if part.end is None else part.end))
        batches = table.iter_batches(batch_size=256, columns=columns, row_groups=groups)
        yield from _rows(_entries(batches, part), part, stem(path), stem(path), key)


def read_dataset(part: Part, config: CorpusConfig, tally: Tally) -> Iterator[Document]:
    """The documents of shards of a dataset; those without an id are numbered within their shard."""
    dataset = part.path
    assert isinstance(dataset, Dataset)
    for shard in range(part.start, dataset.shards if part.end is None else part.end):
        rows = dataset.rows(shard, config.text_key)
        yield from _rows(rows, part, f"{dataset.name}/{shard}", dataset.name, config.text_key)
