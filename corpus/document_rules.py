"""Cleaning rules over what is left of a document once its lines are clean.

Each takes a text and the configuration and returns the text, or None to reject the document. See
:mod:`corpus.rules`.
"""

from __future__ import annotations

import re

from corpus.brackets import remove_empty_brackets
from corpus.config import CorpusConfig
from corpus.script import LETTER, count_han

_KANA = re.compile("[\u3041-\u30ff]")


def empty_brackets(text: str, config: CorpusConfig) -> str:
    """Brackets left with nothing but punctuation and space go, from the inside out."""
    return remove_empty_brackets(text)


def too_short(text: str, config: CorpusConfig) -> str | None:
    """Fewer Han characters than ``min_han``."""
    return text if count_han(text) >= config.min_han else None


def not_chinese(text: str, config: CorpusConfig) -> str | None:
    """Too small a share of Han among the letters, or too much kana."""
    han, kana = count_han(text), len(_KANA.findall(text))
    if kana > config.max_kana_share * (han + kana):
        return None
    return text if han >= config.min_han_share * len(LETTER.findall(text)) else None


def repeated_lines(text: str, config: CorpusConfig) -> str | None:
    """Documents of six lines or more whose lines mostly repeat earlier ones."""
    lines = text.split("\n")
    repeated = 1 - len(set(lines)) / len(lines)
    return None if len(lines) >= 6 and repeated > config.max_repeated_lines else text


def _says_little(window: str, least: float) -> bool:
    pairs = [window[i : i + 2] for i in range(len(window) - 1)]
    return len(pairs) >= 20 and len(set(pairs)) < least * len(pairs)


def repeated_characters(text: str, config: CorpusConfig) -> str | None:
    """Texts that say one thing over and over: few distinct character pairs at start, middle and end."""
    middle = len(text) // 2
    windows = (text[:500], text[max(0, middle - 250) : middle + 250], text[-500:])
    return None if all(_says_little(window, config.min_distinct_pairs) for window in windows) else text
