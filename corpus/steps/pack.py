"""Step pack: one block's documents are tokenized and packed into rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.hashing import slices
from corpus.job import DOCUMENTS, KEEP, Job, counts_path, write_table
from corpus.tokens.pack import Row, pack_document
from corpus.tokens.rows import SCHEMA, table_of, write_rows
from corpus.tokens.words import BATCH, BETWEEN, encode, word_piece
from corpus.vocab import UNK
from provenance import write_json

CHECKED = 20_000  # characters of a block whose ids are compared with those of tokenizers
UNKNOWN = 50  # most frequent unknown characters that a rank reports


def check_tokens(texts: list[str], job: Job) -> None:
    """Compare the ids of documents all over the block with those of ``tokenizers``.

    Raises:
        UserError: they differ.
    """
    step = max(1, sum(map(len, texts)) // CHECKED)
    word_piece(job.vocab).check(BETWEEN.join(text[:CHECKED] for text in texts[::step]))


def pack_step(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Tokenize and pack one block's documents; write them and their rows."""
    config = job.config
    name = f"{rank:05d}"
    table = pq.read_table(job.work / "signed" / f"{name}.parquet")
    keep = pq.read_table(job.work / "keep" / f"{name}.parquet")
    for column in KEEP.names:
        table = table.append_column(column, keep[column])
    table = table.filter(table["keep"])
    write_table(job.work / "documents" / f"{name}.parquet", {n: table[n] for n in DOCUMENTS.names}, DOCUMENTS)
    texts = table["text"].to_pylist()
    splits = ["heldout" if held_out else "train" for held_out in table["held_out"].to_pylist()]
    copies = table["copies"].to_pylist()
    keys = [f"{config.seed}/{key}" for key in table["id"].to_pylist()]
    reference = job.tokenizer == "reference"
    if not reference:
        check_tokens(texts, job)

    written = {(n, split): [SCHEMA.empty_table()] for n in config.lengths for split in ("train", "heldout")}
    totals = {n: Counter[str]() for n in config.lengths}
    tokens: list[np.ndarray] = []
    unk: list[np.ndarray] = []
    unknown: Counter[str] = Counter()
    for part in slices(texts, BATCH) if texts else ():
        encoded = encode(
            texts[part], job.vocab, config.segmenter, dictionary=config.dictionary, reference=reference
        )
        documents = list(zip(encoded.bounds, keys[part], splits[part], copies[part], strict=True))
        for n in config.lengths:
            rows: dict[str, list[Row]] = {"train": [], "heldout": []}
            for bounds, key, split, times in documents:
                for copy in range(1 if split == "heldout" else times):
                    rows[split] += pack_document(
                        bounds,
                        n,
                        key=f"{key}/copy {copy}" if copy else key,
                        packing=config.packing,
                        min_fragment=config.min_fragment,
                        counts=totals[n],
                    )
            for split, made in rows.items():
                written[n, split].append(table_of(made, encoded.ids, encoded.word_starts))
        first, end = np.array([(bounds[0], bounds[-1]) for bounds in encoded.bounds]).T
        unk_before = np.concatenate([[0], np.cumsum(encoded.ids == UNK)])
        tokens.append(end - first)
        unk.append(unk_before[end] - unk_before[first])
        unknown += encoded.unknown
    for (n, split), tables in written.items():
        joined = pa.concat_tables(tables).combine_chunks()
        totals[n][f"rows_{split}"] += joined.num_rows
        totals[n][f"tokens_{split}"] += pc.sum(pc.list_value_length(joined["input_ids"])).as_py() or 0
        write_rows(job.work / f"rows-{n}" / split / f"{name}.arrow", [joined])
    table = table.append_column("tokens", [np.concatenate([np.empty(0, np.int64), *tokens])])
    table = table.append_column("unk", [np.concatenate([np.empty(0, np.int64), *unk])])
    write_json(
        counts_path(job, "pack", rank),
        {
            "documents": table.num_rows,
            "rows": totals,
            "groups": group_counts(table),
            "sizes": Counter(str(len(text).bit_length()) for text in texts),
            "unknown": dict(unknown.most_common(UNKNOWN)),
        },
    )


def group_counts(table: pa.Table) -> dict[str, dict[str, int]]:
    """Documents, Han characters, tokens, unknown tokens and held-out documents of each source and script."""
    summed = ("han", "tokens", "unk", "held_out")
    grouped = table.group_by(["source", "script"], use_threads=False).aggregate(
        [("id", "count"), *((column, "sum") for column in summed)]
    )
    return {
        f"{group['source']}\t{group['script']}": {
            "documents": group["id_count"],
            **{column: group[f"{column}_sum"] for column in summed},
        }
        for group in grouped.to_pylist()
    }
