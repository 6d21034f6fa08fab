"""Cleaning: the rules in their order, what each did, and a text through all of them.

A rule is a pure function that takes a text and the configuration and returns the text to go on with, or
``None`` to reject it. Text rules see a whole document, line rules one line; a line that is rejected is
dropped from its document. A rule's name is its counter, its rejection reason and its test id. To add one:
write the function beside its like and put it into a tuple here.

Benchmark texts never pass through here: their answer offsets would shift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from corpus.config import CorpusConfig
from corpus.hashing import slices
from corpus.rules import boilerplate as boilerplate_rules
from corpus.rules import document as document_rules
from corpus.rules import line as line_rules
from corpus.rules import personal_data
from corpus.rules import text as text_rules
from corpus.rules.gates import Rule, gates
from corpus.rules.trigger import lines_found, trigger_of

TEXT_RULES: tuple[Rule, ...] = (
    text_rules.html_remains,  # first: entities hide spaces and invisible characters
    text_rules.wrapped_lines,
    text_rules.line_ends,
    text_rules.broken_decimals,
    text_rules.normal_form_c,
    text_rules.wide_letters,
    text_rules.invisible_characters,
    text_rules.code_fences,
)
LINE_RULES: tuple[Rule, ...] = (
    line_rules.front_matter,
    line_rules.rule_line,
    line_rules.table_row,
    line_rules.code_line,
    line_rules.markdown,
    boilerplate_rules.boilerplate,
    boilerplate_rules.site_notes,
    line_rules.addresses,
    line_rules.bracket_edges,
    line_rules.variant_markup,
    line_rules.contact_advert,
    personal_data.email_addresses,
    personal_data.identity_numbers,
    personal_data.bank_cards,
    personal_data.mobile_numbers,
    line_rules.mojibake,
    line_rules.long_runs,
    line_rules.leading_marks,
    line_rules.link_list,
    line_rules.keyword_list,
    line_rules.no_han,
    line_rules.little_han,
)
DOCUMENT_RULES: tuple[Rule, ...] = (
    document_rules.empty_brackets,
    document_rules.too_short,
    document_rules.not_chinese,
    document_rules.repeated_lines,
    document_rules.repeated_characters,
    document_rules.repeated_grams,
    document_rules.few_function_words,
    document_rules.blocked_terms,
)
ALL_RULES = TEXT_RULES + LINE_RULES + DOCUMENT_RULES
LINE_SHOWN, LINES_COUNTED = 100, 100  # characters of a dropped line, and lines, that a block's counts hold


@dataclass
class Tally:
    """What the rules did: ``<rule>.changed``, ``<rule>.dropped`` (lines) or ``.rejected`` (documents),
    ``<rule>.characters`` removed by either, how often each line was dropped (rule, its beginning), and a
    bounded sample of what went (rule, document id, text)."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: list[tuple[str, str, str]] = field(default_factory=list)
    samples_per_rule: int = 100
    _sampled: Counter[str] = field(default_factory=Counter)

    def record(
        self, rule: Rule, before: str, after: str | None, *, unit: str, key: str, whole: str = ""
    ) -> None:
        """Count what ``rule`` made of ``before``; ``whole`` is the example where nothing was left of it."""
        name = rule.__name__
        self.counts[f"{name}.{'changed' if after is not None else unit}"] += 1
        self.counts[f"{name}.characters"] += len(before) - len(after or "")
        if after is None:
            self.sample(name, key, before or whole)
            if unit == "dropped":
                self.lines[name, before[:LINE_SHOWN]] += 1

    def most_dropped(self) -> dict[str, int]:
        """The lines that were dropped most often, as ``<rule><tab><line>``."""
        return {f"{name}\t{line}": n for (name, line), n in self.lines.most_common(LINES_COUNTED)}

    def sample(self, name: str, key: str, text: str) -> None:
        """Keep ``text`` as an example unless ``samples_per_rule`` of this rule are kept already."""
        self._sampled[name] += 1
        if self._sampled[name] <= self.samples_per_rule:
            self.samples.append((name, key, text))


def _on_lines(rule: Rule, text: str, config: CorpusConfig, tally: Tally, key: str) -> str:
    """``text``, its lines with a line end before each, after ``rule``; lines of which nothing is left go."""
    pieces: list[str] = []
    copied = 0
    for start, end in lines_found(trigger_of(rule), text):
        before = text[start:end]
        after = rule(before, config)
        if after != before:
            tally.record(rule, before, after, unit="dropped", key=key)
            pieces.append(text[copied : start - 1])
            if after and (after := after.strip()):
                pieces.append("\n" + after)
            copied = end
    return "".join(pieces) + text[copied:] if pieces else text


def _stripped(text: str) -> str:
    """The lines that are not empty, stripped, a line end before each."""
    return "".join(["\n" + stripped for line in text.split("\n") if (stripped := line.strip())])


def _through(
    rules: Sequence[Rule],
    texts: list[str | None],
    config: CorpusConfig,
    act: Callable[[Rule, str, int], str | None],
) -> None:
    """Each text, in place, after ``act(rule, text, its index)`` of the rules that may change it, in order."""
    here = [index for index, text in enumerate(texts) if text is not None]
    if not here:
        return
    changed = np.zeros(len(here), dtype=bool)  # such a text may by now hold what it lacked
    for rule, acts in zip(rules, gates(rules, [texts[i] or "" for i in here], config), strict=True):
        for place in np.flatnonzero(acts | changed).tolist():
            index = here[place]
            before = texts[index]
            if before is not None and (after := act(rule, before, index)) != before:
                texts[index], changed[place] = after, True


def _clean_some(
    texts: Sequence[str], config: CorpusConfig, tally: Tally, keys: Sequence[str]
) -> list[str | None]:
    after: list[str | None] = list(texts)

    def on_text(rule: Rule, text: str, index: int) -> str | None:
        result = rule(text, config)
        if result != text:
            tally.record(rule, text, result, unit="rejected", key=keys[index], whole=texts[index])
        return result

    def on_lines(rule: Rule, text: str, index: int) -> str | None:
        return _on_lines(rule, text, config, tally, keys[index])

    _through(TEXT_RULES, after, config, on_text)
    after = [None if text is None else _stripped(text) for text in after]
    _through(LINE_RULES, after, config, on_lines)
    after = [None if text is None else text[1:] for text in after]
    _through(DOCUMENT_RULES, after, config, on_text)
    return after


def clean_all(
    texts: Sequence[str], config: CorpusConfig, tally: Tally | None = None, keys: Sequence[str] = ()
) -> list[str | None]:
    """Each document's text after all rules, or None if it is rejected.

    Lines are stripped, empty ones left out. Many texts at once take a fraction of the time.

    Args:
        tally: collects counts and samples.
        keys: the documents' ids, for the samples.
    """
    tally, keys = Tally() if tally is None else tally, keys or [""] * len(texts)
    cleaned: list[str | None] = []
    for part in slices(texts):
        cleaned += _clean_some(texts[part], config, tally, keys[part])
    return cleaned


def clean(text: str, config: CorpusConfig, tally: Tally | None = None, key: str = "") -> str | None:
    """:func:`clean_all` of one document."""
    return clean_all([text], config, tally, [key])[0]
