"""What decides a corpus (hashed into its config id) and what only decides how it runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Literal


@dataclass(frozen=True)
class CorpusConfig:
    """Every setting that changes a token of the corpus.

    Attributes:
        min_han: a document with fewer Han characters is rejected.
        min_han_share: least share of Han among the letters of a document.
        min_line_han_share: least share of Han among the letters of a line of 20 or more characters and less
            than six Han; with less the line is dropped (code, foreign text).
        max_kana_share: largest share of kana among kana and Han (above it the text is Japanese).
        max_repeated_lines: largest share of lines that repeat an earlier line of the document.
        min_distinct_pairs: least share of distinct character pairs in a document's first 500 characters.
        convert: OpenCC configuration applied to the text, or none: a corpus in simplified characters alone
            leaves the traditional ones of the vocabulary untrained.
        dedup: drop documents whose letters and digits equal those of an earlier one.
        sample: shares of sources to keep, as source=share, chosen by sha256 of the document id.
        contaminated: what happens to documents that overlap benchmark text (with --decontaminate).
        segmenter: where words start; rjieba is jieba's dictionary in Rust.
        length: most tokens in a row, [CLS] and [SEP] included.
        packing: carry loses no overflow; google is the published rule, which cuts it off.
        min_fragment: tokens; a shorter remainder of a longer document is dropped (carry).
        held_out: share of documents, by sha256 of the id, whose rows are kept for evaluation.
        seed: of the packing's random choices.
    """

    min_han: int = 4
    min_han_share: float = 0.2
    min_line_han_share: float = 0.1
    max_kana_share: float = 0.2
    max_repeated_lines: float = 0.5
    min_distinct_pairs: float = 0.2
    convert: str = "none"
    dedup: bool = True
    sample: tuple[str, ...] = ()
    contaminated: Literal["report", "drop"] = "report"
    segmenter: Literal["rjieba", "jieba"] = "rjieba"
    length: Literal["128", "512", "both"] = "both"
    packing: Literal["carry", "google"] = "carry"
    min_fragment: int = 16
    held_out: float = 0.005
    seed: int = 12345

    @property
    def lengths(self) -> tuple[int, ...]:
        return (128, 512) if self.length == "both" else (int(self.length),)


@dataclass(frozen=True)
class Runtime:
    """Settings that change no output byte.

    Attributes:
        workers: processes that work at once; the default is the number of cores.
        progress: show bars on a terminal, elsewhere a line for each finished step.
        keep_work: keep the folder of intermediate files after success.
    """

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    progress: bool = True
    keep_work: bool = False


_WEB = CorpusConfig()

PRESETS: dict[str, CorpusConfig] = {
    "web": _WEB,
    "wiki": replace(_WEB, min_han=16),
    "sample": replace(_WEB, length="128", held_out=0.05),
}

WIKI_DUMP = "https://dumps.wikimedia.org/zhwiki/latest/zhwiki-latest-pages-articles.xml.bz2"
