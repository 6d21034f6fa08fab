"""Cleaning rules over what is left of a document once its lines are clean.

Each takes a text and the configuration and returns the text, or None to reject the document. See
:mod:`corpus.rules.order`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from corpus.config import CorpusConfig
from corpus.rules import blocklist
from corpus.rules.gates import LINE_END, Texts, members, needs, where
from corpus.script import HAN, LETTER, count_han
from corpus.wiki.brackets import EMPTY, remove_empty_brackets

Grams = NDArray[np.uint64]
_FACTOR = np.uint32(0x9E3779B1)
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
LEAST_TERMS = 4  # different ones: news and medicine may hold a few

_KANA = re.compile("[\u3041-\u30ff]")


@needs(*EMPTY)
def empty_brackets(text: str, config: CorpusConfig) -> str:
    """Brackets left with nothing but punctuation and space go, from the inside out."""
    return remove_empty_brackets(text)


@cache
def _at_least(number: int, pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?s:.*?{pattern}){{{number}}}")


@where(lambda texts, config: texts.han < config.min_han)
def too_short(text: str, config: CorpusConfig) -> str | None:
    """Fewer Han characters than ``min_han``."""
    return text if _at_least(config.min_han, HAN.pattern).match(text) else None


def _perhaps_foreign(texts: Texts, config: CorpusConfig) -> NDArray[np.bool_]:
    kana = texts.count(members(_KANA.pattern)[texts.codes])
    return (texts.han < config.min_han_share * texts.sizes) | (kana > config.max_kana_share * texts.han)


@where(_perhaps_foreign)
def not_chinese(text: str, config: CorpusConfig) -> str | None:
    """Too small a share of Han among the letters, or too much kana."""
    han, kana = count_han(text), len(_KANA.findall(text))
    if kana > config.max_kana_share * (han + kana):
        return None
    least = config.min_han_share  # letters are counted only where they could be too many
    return text if han >= least * len(text) or han >= least * len(LETTER.findall(text)) else None


@where(lambda texts, config: texts.count(texts.codes == LINE_END) >= 6)
def repeated_lines(text: str, config: CorpusConfig) -> str | None:
    """Documents of six lines or more whose lines mostly repeat earlier ones."""
    lines = text.split("\n")
    repeated = 1 - len(set(lines)) / len(lines)
    return None if len(lines) >= 6 and repeated > config.max_repeated_lines else text


WINDOW = 500  # characters


def _says_little(window: str, least: float) -> bool:
    enough = least * (len(window) - 1)
    # each distinct character but one is the second of a pair of its own: half of most texts shows enough
    if len(window) <= 20 or len(set(window[: len(window) // 2])) > enough:
        return False
    return len(set(pairwise(window))) < enough


def _windows(text: str) -> list[str]:
    """Start, middle and end of a text, or all of a short one."""
    if len(text) <= WINDOW:
        return [text]
    middle = (len(text) - WINDOW) // 2
    return [text[:WINDOW], text[middle : middle + WINDOW], text[-WINDOW:]]


def _perhaps_repeated(texts: Texts, config: CorpusConfig) -> NDArray[np.bool_]:
    """Texts whose first window may say little: the pairs in it fall into few of 512 places."""
    sizes = np.minimum(texts.sizes, WINDOW)
    row = np.repeat(np.arange(len(sizes)), sizes)
    pairs = np.arange(len(row)) + np.repeat(texts.starts - np.cumsum(sizes) + sizes, sizes)
    place = _mixed(texts.codes[pairs] * _FACTOR + texts.codes[pairs + 1]) >> np.uint32(23)
    held = np.zeros((len(sizes), 512), dtype=bool)
    held[row, place] = True
    return np.count_nonzero(held, axis=1) - 1 < config.min_distinct_pairs * sizes


@where(_perhaps_repeated)
def repeated_characters(text: str, config: CorpusConfig) -> str | None:
    """Texts that say one thing over and over: few distinct character pairs at start, middle and end."""
    some = all(_says_little(window, config.min_distinct_pairs) for window in _windows(text))
    return None if some else text


FUNCTION_CHARACTERS = (
    "[的是不了在有我他她它这這们們和与與及或之而以于於为為也就都要会會能可但还還很没沒被把从從并並将將等所其此个個"
    "着著过過到对對来來上下中者得若如则則因由]"
)
LEAST_JUDGED = 100  # characters; shorter texts may do without a function word, or say a thing twice


def few_function_words(text: str, config: CorpusConfig) -> str | None:
    """Stuffed keywords, menus and lists of products: hardly any character that joins words to sentences."""
    if len(text) < LEAST_JUDGED:
        return text
    for window in _windows(text):
        number = ceil(config.min_function_share * len(window))
        if _at_least(number, FUNCTION_CHARACTERS).match(window):
            return text
    return text if count_han(text) < LEAST_JUDGED else None


def _grams(codes: Grams, size: int) -> Grams:
    """A number for each run of ``size`` characters, a power of two; equal for equal runs."""
    grams, step = codes, 1
    while step < size:
        grams = grams[:-step] * _MIX + grams[step:]
        grams ^= grams >> _SHIFT
        step *= 2
    return grams


def _mixed(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    hashes = (hashes ^ hashes >> np.uint32(15)) * _FACTOR
    return hashes ^ hashes >> np.uint32(13)


def _perhaps_copied(texts: Texts, config: CorpusConfig) -> NDArray[np.bool_]:
    """Texts whose 8-grams may be few or whose 4-grams may come often.

    Each text has as many places as characters, and each gram falls into one: no more places are filled than
    there are distinct grams, and none comes more often than the fullest place.
    """
    fours = np.zeros_like(texts.codes)  # the last ones of a text reach beyond it, which fills places more
    fours[:-1] = _mixed(texts.codes[:-1] * _FACTOR + texts.codes[1:])
    fours[:-2] = _mixed(fours[:-2] * _FACTOR + fours[2:])
    eights = fours.copy()
    eights[:-4] = _mixed(fours[:-4] * _FACTOR + fours[4:])
    spans = texts.sizes + 1
    starts, size = np.repeat(texts.starts, spans), np.repeat(spans.astype(np.uint64), spans)
    filled = np.zeros(len(texts.codes), dtype=bool)
    filled[starts + (eights * size >> np.uint64(32)).astype(np.int64)] = True
    times = np.bincount(starts + (fours * size >> np.uint64(32)).astype(np.int64), minlength=len(filled))
    grams = texts.sizes - 7
    few = texts.count(filled) - 8 < (1 - config.max_repeated_grams) * grams
    often = np.maximum.reduceat(times, texts.starts) > config.max_top_gram * texts.sizes / 4
    return (few | often) & (texts.sizes >= LEAST_JUDGED)


@where(_perhaps_copied)
def repeated_grams(text: str, config: CorpusConfig) -> str | None:
    """Texts of 100 characters or more that mostly copy themselves, or repeat one slogan throughout.

    The first is the share of 8-grams seen before (``max_repeated_grams``), the second the share of the text
    in its most frequent 4-gram (``max_top_gram``): two filters of Gopher (Rae et al., 2021) for characters.
    """
    if len(text) < LEAST_JUDGED:
        return text
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    eights = np.sort(_grams(codes, 8))
    distinct = 1 + np.count_nonzero(eights[1:] != eights[:-1])
    if 1 - distinct / len(eights) > config.max_repeated_grams:
        return None
    fours = _grams(codes, 4)
    fours = np.sort(fours[:-1][fours[:-1] != fours[1:]])  # a run of one character counts once
    most = 1 + int(config.max_top_gram * len(text) / 4)  # of one 4-gram; sorted, equal ones are neighbours
    return None if (fours[most:] == fours[:-most]).any() else text


def _perhaps_blocked(texts: Texts, config: CorpusConfig) -> NDArray[np.bool_]:
    first, second = blocklist.beginnings(config.blocklist)
    starts = np.zeros(len(texts.codes), dtype=bool)
    starts[:-1] = first[texts.codes[:-1]] & second[texts.codes[1:]]
    return texts.count(starts) >= LEAST_TERMS


@where(_perhaps_blocked)
def blocked_terms(text: str, config: CorpusConfig) -> str | None:
    """Spam: four or more different terms of the blocklist, and more of them than ``max_blocked_share``."""
    terms = blocklist.pattern(config.blocklist)
    found = terms.findall(text) if terms else []
    if len(found) < LEAST_TERMS or len(set(found)) < LEAST_TERMS:
        return text
    return None if sum(map(len, found)) > config.max_blocked_share * len(text) else text
