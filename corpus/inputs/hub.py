"""Datasets of the Hugging Face Hub, or in a local folder, as inputs: streamed, at a pinned revision."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from provenance import UserError, sha256_file

PREFIX = "datasets:"
_PATIENCE = 10  # seconds to wait for the Hub


@dataclass(frozen=True)
class Dataset:
    """A split of a dataset.

    Attributes:
        path: ``org/name`` on the Hub, or a local folder.
        config: name of the configuration; empty: the default one.
        split: its split.
        revision: commit on the Hub, or sha256 over the files of the folder.
        shards: number of files that the split consists of.
    """

    path: str
    config: str = ""
    split: str = "train"
    revision: str = ""
    shards: int = 0

    def __str__(self) -> str:
        return f"{PREFIX}{self.path}:{self.config}:{self.split}"

    @property
    def name(self) -> str:
        """The dataset's own name, without the organisation or the folders above."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    def _load(self) -> Any:
        import datasets

        datasets.disable_progress_bars()
        local = Path(self.path).is_dir()
        return datasets.load_dataset(
            self.path,
            self.config or None,
            split=self.split,
            streaming=True,
            revision=None if local else self.revision,
        )

    def rows(self, shard: int, text_key: str) -> Iterator[Mapping[str, Any]]:
        """The rows of one of the shards.

        Raises:
            UserError: there is no column ``text_key``, or the rows cannot be read.
        """
        try:
            data = self._load().shard(num_shards=self.shards, index=shard)
            for row in data:
                if text_key not in row:
                    raise UserError(
                        f'{self} has no column "{text_key}" (it has {", ".join(row)}); give --text-key'
                    )
                yield row
        except UserError:
            raise
        except Exception as error:  # of the network, of any file format
            raise _unreadable(self, error) from None


def _unreadable(dataset: Dataset, error: Exception) -> UserError:
    reason = (str(error).strip() or type(error).__name__).split("\n")[0][:200]
    return UserError(f"{dataset} cannot be read ({reason}); without a network, give its files or its folder")


def _revision(path: str) -> str:
    if Path(path).is_dir():
        digest = hashlib.sha256()
        for file in sorted(Path(path).rglob("*")):
            if file.is_file():
                digest.update(f"{file.relative_to(path).as_posix()}\0{sha256_file(file)}\n".encode())
        return digest.hexdigest()
    from huggingface_hub import HfApi

    return HfApi().dataset_info(path, timeout=_PATIENCE).sha or ""


def find_dataset(spelling: str) -> Dataset:
    """``datasets:org/name[:config[:split]]`` with its revision; a local folder may stand for org/name.

    Raises:
        UserError: it is spelt otherwise, does not exist or cannot be reached.
    """
    path, *more = spelling.removeprefix(PREFIX).split(":")
    if not path or len(more) > 2:
        raise UserError(f"{spelling} is not {PREFIX}ORG/NAME[:CONFIG[:SPLIT]]")
    config, split = [*more, "", ""][:2]
    dataset = Dataset(path, config, split or "train")
    try:
        dataset = replace(dataset, revision=_revision(path))
        return replace(dataset, shards=dataset._load().num_shards)
    except Exception as error:
        raise _unreadable(dataset, error) from None
