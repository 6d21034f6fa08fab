"""Cleaning rules over what is left of a document once its lines are clean.

Each takes a text and the configuration and returns the text, or None to reject the document. See
:mod:`corpus.rules`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from corpus.brackets import remove_empty_brackets
from corpus.config import CorpusConfig
from corpus.script import HAN, LETTER, count_han

_KANA = re.compile("[\u3041-\u30ff]")
# of a script other than Han, or one of some signs that are no letters
_PERHAPS_OTHER_LETTER = re.compile(
    "[A-Za-z\u00aa-\u1fff\u2070-\u2fff\u3005-\u33ff\ua000-\uf8ff\ufb00-\ufdff\ufe70-\ufeff"
    "\uff21-\uff3a\uff41-\uff5a\uff66-\uffff\U00010000-\U0001ffff\U00040000-\U0010ffff]"
)


def empty_brackets(text: str, config: CorpusConfig) -> str:
    """Brackets left with nothing but punctuation and space go, from the inside out."""
    return remove_empty_brackets(text)


@cache
def _at_least(number: int) -> re.Pattern[str]:
    return re.compile(rf"(?s:.*?{HAN.pattern}){{{number}}}")


def too_short(text: str, config: CorpusConfig) -> str | None:
    """Fewer Han characters than ``min_han``."""
    return text if _at_least(config.min_han).match(text) else None


def not_chinese(text: str, config: CorpusConfig) -> str | None:
    """Too small a share of Han among the letters, or too much kana."""
    if not _PERHAPS_OTHER_LETTER.search(text):
        return text
    han, kana = count_han(text), len(_KANA.findall(text))
    if kana > config.max_kana_share * (han + kana):
        return None
    least = config.min_han_share  # letters are counted only where they could be too many
    return text if han >= least * len(text) or han >= least * len(LETTER.findall(text)) else None


def repeated_lines(text: str, config: CorpusConfig) -> str | None:
    """Documents of six lines or more whose lines mostly repeat earlier ones."""
    lines = text.split("\n")
    repeated = 1 - len(set(lines)) / len(lines)
    return None if len(lines) >= 6 and repeated > config.max_repeated_lines else text


def _says_little(window: str, least: float) -> bool:
    enough = least * (len(window) - 1)
    # each distinct character but one is the second of a pair of its own: half of most texts shows enough
    if len(window) <= 20 or len(set(window[: len(window) // 2])) > enough:
        return False
    return len(set(pairwise(window))) < enough


def repeated_characters(text: str, config: CorpusConfig) -> str | None:
    """Texts that say one thing over and over: few distinct character pairs at start, middle and end."""
    windows = [text]
    if len(text) > 500:
        middle = len(text) // 2
        windows = [text[:500], text[middle - 250 : middle + 250], text[-500:]]
    return None if all(_says_little(window, config.min_distinct_pairs) for window in windows) else text
