"""Overlap between benchmark texts and corpus documents, in 13-grams of letters and digits.

Every string in the files under a data folder counts as benchmark text, so no reader of a task is needed.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from provenance import UserError

GRAM = 13
CONTAMINATED_GRAMS = 30  # a document sharing this many 13-grams, or half of its own, counts as contaminated
_NOT_LETTERS = re.compile(r"[\W_]+")
_MULTIPLIERS = np.random.default_rng(13).integers(1 << 62, 1 << 63, GRAM, dtype=np.uint64) | np.uint64(1)


def grams(text: str) -> np.ndarray:
    """uint64 (n - 12,): one hash for each run of 13 letters or digits; empty for shorter texts."""
    letters = _NOT_LETTERS.sub("", text)
    codes = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    size = len(codes) - GRAM + 1
    if size <= 0:
        return np.empty(0, dtype=np.uint64)
    hashes = np.zeros(size, dtype=np.uint64)
    for offset, multiplier in enumerate(_MULTIPLIERS):
        hashes += codes[offset : offset + size] * multiplier
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def benchmark_strings(path: Path) -> list[str]:
    """Every string of a JSON, JSON-lines or tab-separated file (``.gz`` too), without repeats, in order."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    text = data.decode("utf-8-sig", "replace")
    name = path.name.removesuffix(".gz")
    try:
        if name.endswith(".json"):
            found = list(_strings(json.loads(text)))
        elif name.endswith(".jsonl"):
            found = [s for line in text.split("\n") if line.strip() for s in _strings(json.loads(line))]
        else:
            found = [cell for line in text.split("\n") for cell in line.rstrip("\r").split("\t")]
    except ValueError as error:
        raise UserError(f"{path} is not JSON ({error}); mend it or take it out of the folder") from None
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Benchmark:
    """The 13-grams of one data folder.

    Attributes:
        files: names relative to the folder.
        table: uint64, ascending, each gram once.
        strings: for each file, the grams of each of its strings as indices into ``table``.
    """

    files: tuple[str, ...]
    table: np.ndarray
    strings: tuple[tuple[np.ndarray, ...], ...]


def load_benchmark(folder: Path) -> Benchmark:
    """Read every ``.json``, ``.jsonl``, ``.tsv``, ``.csv`` and ``.txt`` file below ``folder``.

    Raises:
        UserError: there is none, or a JSON file does not parse.
    """
    kinds = {".json", ".jsonl", ".tsv", ".csv", ".txt"}
    paths = [
        p
        for p in sorted(folder.rglob("*"))
        if p.is_file() and Path(p.name.removesuffix(".gz")).suffix in kinds
    ]
    if not paths:
        raise UserError(
            f"{folder} holds no benchmark file (.json, .jsonl, .tsv, .csv, .txt); give the data folder"
        )
    hashed = [[g for g in map(grams, benchmark_strings(path)) if len(g)] for path in paths]
    everything = [g for file in hashed for g in file]
    table = np.unique(np.concatenate(everything)) if everything else np.empty(0, dtype=np.uint64)
    strings = tuple(tuple(np.searchsorted(table, g) for g in file) for file in hashed)
    return Benchmark(tuple(p.relative_to(folder).as_posix() for p in paths), table, strings)


def overlap(text: str, table: np.ndarray) -> tuple[np.ndarray, int]:
    """Indices into ``table`` of the grams ``text`` shares with it, and the number of grams of ``text``."""
    own = grams(text)
    if not len(own) or not len(table):
        return np.empty(0, dtype=np.int64), len(own)
    places = np.searchsorted(table, own)
    places[places == len(table)] = 0
    return np.unique(places[table[places] == own]), len(own)


def is_contaminated(shared: int, own: int) -> bool:
    """Whether a document with ``own`` grams, ``shared`` of them in a benchmark, counts as contaminated."""
    return shared > 0 and (shared >= CONTAMINATED_GRAMS or 2 * shared >= own)


def hits_per_file(benchmark: Benchmark, found: np.ndarray) -> dict[str, dict[str, int]]:
    """For each file: its strings of 13 letters or more, those found in the corpus at least nine tenths
    (``whole``) and those sharing any gram with it (``any``).

    Args:
        found: indices into ``benchmark.table`` of all grams seen in the corpus.
    """
    seen = np.zeros(len(benchmark.table), dtype=bool)
    seen[found] = True
    report = {}
    for name, strings in zip(benchmark.files, benchmark.strings, strict=True):
        shares = [float(seen[indices].mean()) for indices in strings]
        report[name] = {
            "strings": len(shares),
            "whole": sum(share >= 0.9 for share in shares),
            "any": sum(share > 0 for share in shares),
        }
    return report
