"""What decides a corpus (hashed into its config id) and what only decides how it runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Literal

from provenance import UserError

LENGTHS = range(8, 4097)  # tokens that a row may be asked to hold
MOST_WEIGHT = 20  # times that a document may count: training repeats the corpus anyway


@dataclass(frozen=True)
class CorpusConfig:
    """Every setting that changes a token of the corpus.

    Attributes:
        text_key: key or column that holds the text, in JSON lines, Parquet and datasets.
        encoding: of text, JSON lines and HTML; auto: UTF-8 where the file is that, else GB 18030 or Big5
            where it reads as Chinese in one of them.
        text_documents: what a document is in a text file: what blank lines divide, each line, or the file.
        keep_disambiguation: read the disambiguation pages of a wiki, too.
        min_han: a document with fewer Han characters is rejected.
        min_han_share: least share of Han among the letters of a document.
        min_line_han_share: least share of Han among the letters of a line of 20 or more characters and less
            than six Han; with less the line is dropped (code, foreign text).
        max_kana_share: largest share of kana among kana and Han (above it the text is Japanese).
        max_repeated_lines: largest share of lines that repeat an earlier line of the document.
        min_distinct_pairs: least share of distinct character pairs in 500 characters of a document.
        max_repeated_grams: largest share of runs of eight characters that repeat an earlier one.
        max_top_gram: largest share of a document that its most frequent run of four characters makes up.
        min_function_share: least share of function characters (的, 是, 不 ...) in 500 characters of a text.
        max_blocked_share: largest share of characters in terms of the blocklist, where four terms occur.
        blocklist: terms of spam: bundled, none, or a UTF-8 file with one a line.
        personal_data: mobile, identity and card numbers, e-mail addresses: mask, drop their lines, or keep.
        convert: OpenCC configuration applied to the text, or none: a corpus in simplified characters alone
            leaves the traditional ones of the vocabulary untrained.
        recurring_lines: documents of a site or source that hold a line before it counts as boilerplate and
            all its copies are dropped; 0: off. Ordinary short sentences and headings never count.
        recurring_share: least share of the site's or source's documents that must hold such a line, too.
        repeated_paragraphs: letters; a line at least as long that an earlier document holds is dropped;
            0: off.
        dedup: drop documents whose letters and digits equal those of an earlier one.
        near_duplicates: drop documents that are nearly the same as an earlier one.
        min_similarity: Jaccard similarity of the sets of character 5-grams, as MinHash estimates it, from
            which on documents are nearly the same.
        decontaminate: drop lines that hold development or test text of the files under --benchmarks.
        weights: source=weight; below 1 that share of its documents is taken, chosen by sha256 of the id, and
            with 2.5 each document's training rows come twice or three times.
        segmenter: where words start; rjieba is jieba's dictionary in Rust.
        dictionary: words to add to the segmenter's own: none, or a UTF-8 file with one a line, each with its
            frequency and part of speech if they are known.
        length: most tokens in a row, [CLS] and [SEP] included; both: 128 and 512. Each of several lengths has
            its own rows; short ones, such as 64, make the first steps of a training on a CPU cheap.
        packing: carry loses no overflow; google is the published rule, which cuts it off.
        min_fragment: tokens; a shorter remainder of a longer document is dropped (carry).
        held_out: share of documents, by sha256 of the id, whose rows are kept for evaluation.
        seed: of the packing's random choices.
    """

    text_key: str = "text"
    encoding: Literal["auto", "utf-8", "gb18030", "big5"] = "auto"
    text_documents: Literal["blank", "line", "file"] = "blank"
    keep_disambiguation: bool = False
    min_han: int = 4
    min_han_share: float = 0.15
    min_line_han_share: float = 0.1
    max_kana_share: float = 0.35
    max_repeated_lines: float = 0.5
    min_distinct_pairs: float = 0.2
    max_repeated_grams: float = 0.6
    max_top_gram: float = 0.25
    min_function_share: float = 0.015
    max_blocked_share: float = 0.03
    blocklist: str = "bundled"
    personal_data: Literal["mask", "drop", "keep"] = "mask"
    convert: str = "none"
    recurring_lines: int = 20
    recurring_share: float = 0.001
    repeated_paragraphs: int = 40
    dedup: bool = True
    near_duplicates: bool = True
    min_similarity: float = 0.7
    decontaminate: bool = False
    weights: tuple[str, ...] = ()
    segmenter: Literal["rjieba", "jieba"] = "rjieba"
    dictionary: str = "none"
    length: Literal["both"] | tuple[int, ...] = "both"
    packing: Literal["carry", "google"] = "carry"
    min_fragment: int = 16
    held_out: float = 0.005
    seed: int = 12345

    @property
    def lengths(self) -> tuple[int, ...]:
        """Ascending, each once."""
        return (128, 512) if self.length == "both" else tuple(sorted(set(self.length)))


def weights_of(config: CorpusConfig) -> dict[str, float]:
    """``("history=0.3",)`` as a dict.

    Raises:
        UserError: an entry is no source and number above 0 up to MOST_WEIGHT, or a source comes twice.
    """
    weights: dict[str, float] = {}
    for entry in config.weights:
        name, _, number = entry.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = 0.0
        if not name or not 0 < weight <= MOST_WEIGHT:
            raise UserError(
                f"--weights {entry} is not SOURCE=WEIGHT with a weight above 0 and up to {MOST_WEIGHT}, "
                "such as history=0.3"
            )
        if name in weights:
            raise UserError(f"--weights names {name} twice; give each source one weight")
        weights[name] = weight
    return weights


@dataclass(frozen=True)
class Runtime:
    """Settings that change no output byte.

    Attributes:
        workers: processes that work at once; the default is the number of cores.
        progress: show bars on a terminal, elsewhere a line for each finished step.
        keep_work: keep the folder of intermediate files after success.
        tokenizer: reference takes the ids from tokenizers itself, several times slower; fast gives the same
            ids, and compares a sample of every block.
        executor: local, or a cluster that sees the same folders: ray (RAY_ADDRESS names it) or slurm.
        slurm: sbatch options as NAME=VALUE; partition and time are needed.
    """

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    progress: bool = True
    keep_work: bool = False
    tokenizer: Literal["fast", "reference"] = "fast"
    executor: Literal["local", "ray", "slurm"] = "local"
    slurm: tuple[str, ...] = ()


_WEB = CorpusConfig()

PRESETS: dict[str, CorpusConfig] = {
    "web": _WEB,
    "wiki": replace(_WEB, min_han=16),
    "sample": replace(_WEB, length=(128,), held_out=0.05),
}
