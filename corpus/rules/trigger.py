r"""Where a line rule has to look: a pattern that is found in every line the rule acts on.

Most rules act on few lines. One search of the whole text for what such a line must hold costs a fraction of
calling the rule on each line, and the result is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from corpus.rules.gates import R, Rule

_EVERY_LINE = re.compile(r"\n")


def lines_with(pattern: str) -> Callable[[R], R]:
    r"""Declare that a line rule changes or drops only lines in which ``pattern`` is found.

    A line is searched together with the ``\n`` before it, so ``\n`` in the pattern is the start of a line. A
    match must not reach into the text of the next line. Alternatives that each begin with a literal are fast.
    """

    def declare(rule: R) -> R:
        rule.trigger = re.compile(pattern)  # type: ignore[attr-defined]
        return rule

    return declare


def trigger_of(rule: Rule) -> re.Pattern[str]:
    """The pattern that was declared for ``rule``; without one it looks at every line."""
    trigger: re.Pattern[str] = getattr(rule, "trigger", _EVERY_LINE)
    return trigger


def lines_found(trigger: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    r"""Start and end of each line of ``text`` in which ``trigger`` is found.

    Args:
        text: lines, each with a ``\n`` before it.
    """
    found = trigger.search(text)
    while found:
        start = text.rfind("\n", 0, found.start() + 1) + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        found = trigger.search(text, end)
