"""What a report is made of. Each part has all its numbers as text, so that every page shows the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SHOWN = 300  # characters of an example
_UNSEEN = re.compile(
    r"[^\S \n\u3000]|[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


@dataclass(frozen=True)
class Figures:
    """Headline figures: (what, number, more about it)."""

    entries: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Bar:
    """One line of a chart; the shares, of the chart's whole width, lie one after the other.

    Attributes:
        label: what it is.
        text: its number.
        kept: share that stayed, or the number's share.
        lost: share that went.
        minor: whether it explains the bar above it.
    """

    label: str
    text: str
    kept: float = 0.0
    lost: float = 0.0
    minor: bool = False


@dataclass(frozen=True)
class Chart:
    """A picture of bars."""

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Table:
    """Rows of text; the first ``labels`` columns are words, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int = 1


@dataclass(frozen=True)
class Examples:
    """Texts under a heading that says what became of them; (what each is, text)."""

    title: str
    texts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Change:
    """A text before and after the rules."""

    title: str
    before: str
    after: str


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    items: Sequence[str]


Part = Figures | Chart | Table | Examples | Change | Points


@dataclass(frozen=True)
class Section:
    """A title, what the section shows, and its parts."""

    title: str
    note: str
    parts: Sequence[Part]


def number(n: int) -> str:
    """With a comma at each thousand."""
    return f"{n:,}"


def percent(part: float, whole: float) -> str:
    """``part`` in hundredths of ``whole``; less than a hundredth of a percent does not become nothing."""
    if not whole:
        return "-"
    share = 100 * part / whole
    return "< 0.01 %" if 0 < share < 0.005 else f"{share:.2f} %"


def share(part: float, whole: float) -> float:
    """``part / whole`` within [0, 1]; 0 where there is no whole."""
    return min(1.0, max(0.0, part / whole)) if whole else 0.0


def visible(text: str) -> str:
    """U+FFFD for each character that would not be seen, or moves others."""
    return _UNSEEN.sub("\ufffd", text)


def short(text: str) -> str:
    """The beginning of a text as it may be shown."""
    text = visible(text.strip())
    return text if len(text) <= SHOWN else text[:SHOWN].rstrip() + "…"
