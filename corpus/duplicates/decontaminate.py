"""Overlap between benchmark texts and corpus documents, in 13-grams of letters and digits.

Every string in the files under a data folder counts as benchmark text, so no reader of a task is needed.
Simplified and traditional, full and half width, upper and lower case compare as equal: cleaning and
conversion hide nothing.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpus.hashing import Letters, letter_table, letter_values, letters_of, slices, window_hashes
from corpus.script import converter
from provenance import UserError

GRAM = 13
FOUND_SHARE = 0.9  # of a string's 13-grams: with so many in the corpus the string counts as found
LEAST_NEED, MOST_NEED = 8, 30  # 13-grams in a line of longer own text that show it holds benchmark text
KINDS = {".json", ".jsonl", ".tsv", ".csv", ".txt"}
EVALUATION = {"dev", "valid", "validation", "eval", "test", "challenge", "trial"}
COVERED_SHARE = 0.75  # of a line's letters in such 13-grams: the line is hardly anything else
_BITS = 27  # of a gram's hash, looked up before the search: 16 MB, of which a million grams fill 1 %


@functools.cache
def folded_values() -> np.ndarray:
    """uint64 (1114112,): :func:`letter_values` of the simplified, half-width, lower-case character."""
    codes = np.flatnonzero(letter_table())
    codes = codes[(codes < 0xD800) | (codes > 0xDFFF)]
    folded = [unicodedata.normalize("NFKC", chr(code)).lower() for code in codes]
    single = [f if len(f) == 1 else chr(code) for f, code in zip(folded, codes, strict=True)]
    simplified = converter("t2s")("\n".join(single)).split("\n")
    values = letter_values().copy()
    values[codes] = letter_values()[[ord(character[0]) for character in simplified]]
    return values


def grams(letters: Letters) -> tuple[np.ndarray, np.ndarray]:
    """uint64 (n,) hashes of the 13-grams inside segments; int64 (n,) where in ``codes`` each begins."""
    hashes = window_hashes(letters.codes, GRAM, folded_values())
    ends = np.repeat(letters.ends, letters.sizes)[: len(hashes)]
    starts = np.flatnonzero(np.arange(GRAM, GRAM + len(hashes)) <= ends)
    return hashes[starts], starts


# --- benchmark files ------------------------------------------------------------------------------


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
    try:
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        text = data.decode("utf-8-sig", "replace")
        name = path.name.removesuffix(".gz")
        if name.endswith(".json"):
            found = list(_strings(json.loads(text)))
        elif name.endswith(".jsonl"):
            found = [s for line in text.split("\n") if line.strip() for s in _strings(json.loads(line))]
        else:
            found = [cell for line in text.split("\n") for cell in line.rstrip("\r").split("\t")]
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise UserError(f"{path} cannot be read ({error}); mend it or take it out of the folder") from None
    return list(dict.fromkeys(found))


def is_evaluation(file: str) -> bool:
    """Whether a file's name says that it is a development or test split: ``cmrc2018/dev.json``."""
    stem = Path(file).name.split(".")[0].lower()
    return not EVALUATION.isdisjoint(re.split(r"[^a-z]+", stem))


@dataclass(frozen=True)
class Benchmark:
    """The 13-grams of one data folder.

    Attributes:
        files: names relative to the folder.
        strings: for each file, how many strings of 13 letters or more it has.
        table: uint64, ascending, each gram once.
        needs: uint64, for each gram how many such grams in a line show that the line holds its string; 0:
            no development or test string has it.
        indices: int64, the grams of all strings in turn as indices into ``table``.
        ends: int64, for each string where it ends in ``indices``.
    """

    files: tuple[str, ...]
    strings: tuple[int, ...]
    table: np.ndarray
    needs: np.ndarray
    indices: np.ndarray
    ends: np.ndarray


def benchmark_files(folder: Path) -> list[Path]:
    """Every ``.json``, ``.jsonl``, ``.tsv``, ``.csv`` and ``.txt`` file below ``folder``, ``.gz`` too.

    Raises:
        UserError: there is none, or no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; give the one that holds <task>/<split>.<suffix>")
    paths = sorted(p for p in folder.rglob("*") if Path(p.name.removesuffix(".gz")).suffix in KINDS)
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise UserError(
            f"{folder} holds no benchmark file (.json, .jsonl, .tsv, .csv, .txt); give the data folder"
        )
    return paths


def load_benchmark(folder: Path, convert: str = "none") -> Benchmark:
    """Read the benchmark files below ``folder``.

    Args:
        convert: OpenCC configuration of the corpus, which benchmark text goes through, too.

    Raises:
        UserError: there is none, or one cannot be read.
    """
    files = [path.relative_to(folder).as_posix() for path in benchmark_files(folder)]
    conversion: Callable[[str], str] = converter(convert) if convert != "none" else str
    hashed, sizes, strings, evaluation = [np.empty(0, dtype=np.uint64)], [], [], []
    for file in files:
        count = 0
        texts = [conversion(text) for text in benchmark_strings(folder / file)]
        for part in slices(texts):
            letters = letters_of(texts[part])
            hashed.append(grams(letters)[0])
            own = letters.sizes - GRAM + 1
            sizes += own[own > 0].tolist()
            count += int((own > 0).sum())
        strings.append(count)
        evaluation += [is_evaluation(file)] * count
    table, indices = np.unique(np.concatenate(hashed), return_inverse=True)
    lengths = np.array(sizes, dtype=np.int64)
    need = np.clip(np.ceil(FOUND_SHARE * lengths), LEAST_NEED, MOST_NEED).astype(np.uint64)
    never = np.iinfo(np.uint64).max
    needs = np.full(len(table), never)
    counted = np.repeat(np.array(evaluation, dtype=bool), lengths)
    np.minimum.at(needs, indices[counted], np.repeat(need, lengths)[counted])
    needs[needs == never] = 0
    return Benchmark(tuple(files), tuple(strings), table, needs, indices, np.cumsum(lengths))


# --- documents ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lookup:
    """What a rank needs to recognise benchmark text: ``table`` and ``needs`` of a benchmark, and a filter.

    Attributes:
        bits: uint8, a bit for each value of a hash's first bits: whether the table has such a hash.
    """

    table: np.ndarray
    needs: np.ndarray
    bits: np.ndarray


def lookup_of(table: np.ndarray, needs: np.ndarray) -> Lookup:
    """The lookup of a benchmark's ``table`` and ``needs``."""
    heads = table >> np.uint64(64 - _BITS)
    bits = np.zeros(1 << (_BITS - 3), dtype=np.uint8)
    np.bitwise_or.at(bits, heads >> np.uint64(3), _bit(heads))
    return Lookup(table, needs, bits)


def _bit(heads: np.ndarray) -> np.ndarray:
    return np.left_shift(np.uint8(1), (heads & np.uint64(7)).astype(np.uint8))


def find(hashes: np.ndarray, lookup: Lookup) -> tuple[np.ndarray, np.ndarray]:
    """Which of ``hashes`` a benchmark has: their places, and their indices into the benchmark's table."""
    heads = hashes >> np.uint64(64 - _BITS)
    places = np.flatnonzero(lookup.bits[heads >> np.uint64(3)] & _bit(heads))
    wanted = hashes[places]
    order = np.argsort(wanted)  # neighbours in the table are looked up together: half the time
    indices = np.empty(len(wanted), dtype=np.int64)
    indices[order] = np.searchsorted(lookup.table, wanted[order])
    indices[indices == len(lookup.table)] = 0
    found = lookup.table[indices] == wanted if len(lookup.table) else np.zeros(0, dtype=bool)
    return places[found], indices[found]


@dataclass(frozen=True)
class Overlap:
    """Benchmark grams in some documents.

    Attributes:
        indices: of the grams found, into the benchmark's table.
        lines: for each of them, the line it begins in.
        holds: bool (lines,): whether a line holds development or test text.
    """

    indices: np.ndarray
    lines: np.ndarray
    holds: np.ndarray


def overlap(documents: Letters, line_ends: np.ndarray, lookup: Lookup) -> Overlap:
    """Benchmark text in ``documents``.

    A line holds benchmark text if nine tenths of the 13-grams of a development or test string begin in it
    (at least 8; 30 are enough), or if such grams cover three quarters of its letters.

    Args:
        line_ends: int64, where each line of the documents ends in ``documents.codes``.
    """
    hashes, starts = grams(documents)
    places, indices = find(hashes, lookup)
    starts = starts[places]
    lines = np.searchsorted(line_ends, starts, side="right")
    needs = lookup.needs[indices]
    counted = needs > 0
    if not counted.any():
        return Overlap(indices, lines, np.zeros(len(line_ends), dtype=bool))
    hits = np.bincount(lines[counted], minlength=len(line_ends))
    least = np.full(len(line_ends), np.iinfo(np.uint64).max)
    np.minimum.at(least, lines[counted], needs[counted])
    steps = np.zeros(len(documents.codes) + 1, dtype=np.int8)
    steps[starts[counted]] += 1
    steps[starts[counted] + GRAM] -= 1
    covered = np.cumsum(np.cumsum(steps[:-1], dtype=np.int8) > 0)
    of_line = np.diff(np.concatenate([[0], covered])[line_ends], prepend=0)
    mostly = of_line >= COVERED_SHARE * np.maximum(np.diff(line_ends, prepend=0), 1)
    return Overlap(indices, lines, (hits.astype(np.uint64) >= least) | mostly)


def hits_per_file(benchmark: Benchmark, found: np.ndarray, left: np.ndarray) -> dict[str, dict[str, int]]:
    """For each file: its strings of 13 letters or more, those of which nine tenths are found in the corpus
    (``whole``), those sharing any gram with it (``any``), and those still found after removal (``left``).

    Args:
        found: indices into ``benchmark.table`` of all grams seen in the corpus; they may repeat.
        left: the same, in what stayed.
    """
    report = {}
    starts = np.concatenate([[0], benchmark.ends[:-1]]).astype(np.int64)
    sizes = benchmark.ends - starts
    shares = []
    for indices in (found, left):
        seen = np.zeros(len(benchmark.table), dtype=np.int64)
        seen[indices] = 1
        hits = np.add.reduceat(seen[benchmark.indices], starts) if len(sizes) else sizes
        shares.append(hits / np.maximum(sizes, 1))
    ends = np.cumsum(benchmark.strings)
    for name, count, end in zip(benchmark.files, benchmark.strings, ends, strict=True):
        before, after = (share[end - count : end] for share in shares)
        report[name] = {
            "strings": count,
            "whole": int((before >= FOUND_SHARE).sum()),
            "any": int((before > 0).sum()),
            "left": int((after >= FOUND_SHARE).sum()),
        }
    return report
