"""Packed rows as batches. Batch ``k`` is a pure function of (rows, config, k): order, masks and all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpus.vocab import PAD
from pretrain.config import PretrainConfig, ramp
from pretrain.masking import ELECTRA_HIDING, MASKINGS, Hiding, hide
from provenance import UserError, read_manifest, verify_manifest

# First word of a random stream's key, so that no two purposes share numbers.
_ORDER, _MASKS, _HELDOUT = 0, 1, 2
_SLICE = 2**24  # tokens counted at a time


@dataclass(frozen=True)
class Batch:
    """Rows for one forward pass: (rows, tokens) int64 but where said.

    positions: (chosen,) int64 into the flattened rows. attention_mask: (rows, tokens) fp32, None where
    nothing is padded. tokens: how many are no padding.
    """

    input_ids: torch.Tensor
    masked_ids: torch.Tensor
    token_type_ids: torch.Tensor
    positions: torch.Tensor
    attention_mask: torch.Tensor | None
    tokens: int

    def to(self, device: torch.device) -> Batch:
        """The same batch on ``device``."""
        moved: Any = {
            k: v.to(device, non_blocking=True) for k, v in vars(self).items() if isinstance(v, torch.Tensor)
        }
        return replace(self, **moved) if device.type != "cpu" else self


class PackedRows:
    """Rows of one split, memory-mapped: nothing is copied before a row is asked for."""

    def __init__(self, folder: Path) -> None:
        import datasets

        try:
            rows: Any = datasets.load_from_disk(str(folder))
        except FileNotFoundError:
            raise UserError(f"{folder} does not exist; build the corpus with rows of this length") from None
        missing = {"input_ids", "token_type_ids", "word_starts"} - set(rows.column_names)
        if missing:
            raise UserError(f"{folder} lacks the column {sorted(missing)[0]}; build the corpus again")
        table = rows.data.table
        # Per column and chunk two views into the Arrow file; row i is values[offsets[i] : offsets[i + 1]].
        self._chunks = {
            name: [(chunk.offsets.to_numpy(), chunk.values) for chunk in table.column(name).chunks]
            for name in ("input_ids", "token_type_ids", "word_starts")
        }
        sizes = [len(offsets) - 1 for offsets, _ in self._chunks["input_ids"]]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.folder = folder

    def __len__(self) -> int:
        return int(self._starts[-1])

    def column(self, name: str, index: int) -> np.ndarray:
        """Column ``name`` of row ``index``: (tokens,)."""
        chunk = int(np.searchsorted(self._starts, index, side="right")) - 1
        offsets, values = self._chunks[name][chunk]
        at = index - int(self._starts[chunk])
        begin, end = int(offsets[at]), int(offsets[at + 1])
        return values.slice(begin, end - begin).to_numpy(zero_copy_only=False)

    def token_counts(self, vocab_size: int) -> np.ndarray:
        """How often each id stands in all rows: (vocab_size,) int64."""
        counts = np.zeros(vocab_size, dtype=np.int64)
        for _, values in self._chunks["input_ids"]:
            for at in range(0, len(values), _SLICE):
                counts += np.bincount(values[at : at + _SLICE].to_numpy(), minlength=vocab_size)
        return counts

    def padded(self, name: str, indices: np.ndarray) -> np.ndarray:
        """Column ``name`` of several rows, padded with 0 to the longest: (rows, tokens)."""
        rows = [self.column(name, int(index)) for index in indices]
        out = np.zeros((len(rows), max(len(row) for row in rows)), dtype=rows[0].dtype)
        for place, row in zip(out, rows, strict=True):
            place[: len(row)] = row
        return out


def open_corpus(
    folder: Path, length: int, *, verify: bool = True
) -> tuple[PackedRows, PackedRows, dict[str, Any]]:
    """Training rows, held-out rows and the manifest of a corpus folder.

    Args:
        verify: hash every file; one process of a run does it for all.

    Raises:
        UserError: the folder does not verify, has no rows of ``length`` tokens, or no training rows.
    """
    manifest = verify_manifest(folder, "corpus.build") if verify else read_manifest(folder)
    if not (folder / f"rows-{length}").is_dir():
        there = ", ".join(sorted(p.name for p in folder.glob("rows-*"))) or "none"
        raise UserError(
            f"{folder} has no rows-{length} (there are: {there}); build the corpus with this length"
        )
    train, heldout = (PackedRows(folder / f"rows-{length}" / split) for split in ("train", "heldout"))
    if not len(train):
        raise UserError(f"{train.folder} holds no rows; build the corpus from more text")
    return train, heldout, manifest


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, rows: int) -> np.ndarray:
    return np.random.default_rng([_ORDER, seed, epoch]).permutation(rows)


def row_indices(config: PretrainConfig, rows: int, step: int) -> np.ndarray:
    """Rows of global batch ``step``: (batch_size,). Each epoch is a permutation of its own over all rows."""
    places = step * config.batch_size + np.arange(config.batch_size)
    epochs = places // rows
    return np.concatenate(
        [_order(config.seed, int(e), rows)[places[epochs == e] % rows] for e in np.unique(epochs)]
    )


def mask_fraction(config: PretrainConfig, step: int) -> float:
    """Share of a row's tokens that is chosen at ``step``."""
    return ramp(config.mask_fraction, config.final_mask_fraction, step, config.steps)


def make_batch(
    rows: PackedRows,
    indices: np.ndarray,
    scores: np.ndarray,
    config: PretrainConfig,
    hiding: Hiding,
    step: int,
) -> Batch:
    """Tensors of some rows, padded to the longest.

    Args:
        indices: (n,) row numbers.
        scores: (2, n, length) uniform numbers: who is chosen, who is hidden.
        step: of the run, for what share of the tokens is chosen.
    """
    input_ids = rows.padded("input_ids", indices).astype(np.int64)
    if input_ids.shape[1] > config.length:
        raise UserError(
            f"{rows.folder} holds a row of more than {config.length} tokens; build the corpus again"
        )
    scores = scores[:, :, : input_ids.shape[1]]
    starts = rows.padded("word_starts", indices)
    fraction = mask_fraction(config, step)
    chosen = MASKINGS[config.masking](input_ids, scores[0], config.length, fraction, starts)
    present = input_ids != PAD
    return Batch(
        input_ids=torch.from_numpy(input_ids),
        masked_ids=torch.from_numpy(hide(input_ids, chosen, scores[1], hiding)),
        token_type_ids=torch.from_numpy(rows.padded("token_type_ids", indices).astype(np.int64)),
        positions=torch.from_numpy(np.flatnonzero(chosen)),
        attention_mask=None if present.all() else torch.from_numpy(present.astype(np.float32)),
        tokens=int(present.sum()),
    )


def train_batches(
    rows: PackedRows,
    config: PretrainConfig,
    step: int,
    *,
    rank: int,
    processes: int,
    micro: int,
    hiding: Hiding = ELECTRA_HIDING,
) -> list[Batch]:
    """Micro-batches of process ``rank`` in ``step``; a row's masks depend on (seed, step, row) alone."""
    indices = row_indices(config, len(rows), step)
    shape = (2, config.batch_size, config.length)
    scores = np.random.default_rng([_MASKS, config.seed, step]).random(shape, dtype=np.float32)
    local = config.batch_size // processes
    return [
        make_batch(rows, indices[at : at + micro], scores[:, at : at + micro], config, hiding, step)
        for at in range(rank * local, (rank + 1) * local, micro)
    ]


def heldout_batches(
    rows: PackedRows, config: PretrainConfig, limit: int, size: int, hiding: Hiding = ELECTRA_HIDING
) -> list[Batch]:
    """Batches over the first ``limit`` rows with masks that are the same at every step of every run: as many
    as at its end."""
    count, end = min(limit, len(rows)), config.steps
    scores = np.random.default_rng([_HELDOUT, 0]).random((2, count, config.length), dtype=np.float32)
    return [
        make_batch(rows, np.arange(at, min(at + size, count)), scores[:, at : at + size], config, hiding, end)
        for at in range(0, count, size)
    ]
