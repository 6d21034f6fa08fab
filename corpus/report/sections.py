"""The report's content, most important first: sections of figures, charts, tables and examples."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from corpus.config import CorpusConfig
from corpus.duplicates.decontaminate import is_evaluation
from corpus.duplicates.recurring import RULES as RECURRING
from corpus.report.counts import all_groups
from corpus.report.examples import Found, spread
from corpus.report.funnel import funnel_charts, stages
from corpus.report.parts import (
    Bar,
    Change,
    Chart,
    Examples,
    Figures,
    Part,
    Points,
    Section,
    Table,
    number,
    percent,
    share,
)
from corpus.report.tables import (
    LISTED,
    MOST_LISTED,
    Summary,
    input_section,
    length_section,
    settings_section,
    sources_section,
    unknown_section,
)
from corpus.rules.order import ALL_RULES
from corpus.steps.sign import BENCHMARK_TEXT

CHARTED = 15  # rules in the chart
CHANGES, CONTEXT = 10, 60  # documents shown before and after; characters shown before what changed
OTHER_REASONS = {
    "recurring_line": "A line that many documents of one site or source hold.",
    "repeated_paragraph": "A long line that an earlier document holds, too.",
    BENCHMARK_TEXT: "A line that holds development or test text of a benchmark.",
    "emptied": "Documents too short without such lines.",
    "duplicate": "Documents whose letters and digits equal those of an earlier one.",
    "near_duplicate": "Documents that are nearly the same as an earlier one.",
    "failed_page": "Pages that could not be read.",
}


def meaning(reason: str) -> str:
    """What a rule does: the first sentence of its docstring; or the entry of ``OTHER_REASONS``."""
    for rule in ALL_RULES:
        if rule.__name__ == reason:
            said = " ".join((rule.__doc__ or "").replace("``", "").split())
            return re.split(r"(?<=[^.]\.) (?=[A-Z])", said)[0]
    return OTHER_REASONS.get(reason, "")


def headline(summary: Summary, config: CorpusConfig) -> Figures:
    """What a reader wants to know first."""
    t: Counter[str] = Counter(summary["totals"])
    total = all_groups(summary)
    entries = [
        (
            "documents",
            number(summary["documents"]),
            f"{percent(summary['documents'], t['documents_in'])} of read",
        ),
        ("Han characters", number(total["han"]), f"{percent(total['han'], t['han_in'])} of read"),
        ("tokens", number(total["tokens"]), f"{percent(total['unk'], total['tokens'])} unknown"),
    ]
    for length in config.lengths:
        c = Counter(summary["packed"]["rows"].get(str(length), {}))
        held_out = f"{number(c['rows_heldout'])} held out"
        entries.append((f"rows of {length}", number(c["rows_train"] + c["rows_heldout"]), held_out))
    duplicates = t["duplicate"] + t["near_duplicate"]
    entries.append(("duplicates", number(duplicates), f"{number(t['near_duplicate'])} of them near"))
    if "overlap" in summary:
        files = [n for file, n in summary["overlap"].items() if is_evaluation(file)]
        strings, whole, left = (sum(n[key] for n in files) for key in ("strings", "whole", "left"))
        more = f"found of {number(strings)} dev and test strings, {number(left)} left"
        entries.append(("benchmark text", number(whole), more))
    return Figures(entries)


def rules_section(summary: Summary, found: Found) -> Section:
    """What each rule did, in the order in which they run."""
    c: Counter[str] = Counter(summary["rules"])
    t: Counter[str] = Counter(summary["totals"])
    names = [*(rule.__name__ for rule in ALL_RULES), *RECURRING, BENCHMARK_TEXT]
    removed = {name: c[f"{name}.characters"] for name in names}
    largest = max(removed.values(), default=0)
    order = sorted((name for name in names if removed[name] > 0), key=lambda name: -removed[name])[:CHARTED]
    bars = [Bar(name, number(removed[name]), lost=share(removed[name], largest)) for name in order]
    rows = []
    for name in names:
        counts = [c[f"{name}.{kind}"] for kind in ("changed", "dropped", "rejected", "characters")]
        rows.append((name, *(number(n) if n else "" for n in counts), meaning(name)))
    table = Table(
        ("rule", "texts or lines changed", "lines dropped", "documents rejected", "characters removed"),
        [row[:-1] for row in rows if any(row[1:-1])],
    )
    silent = [row[0] for row in rows if not any(row[1:-1])]
    parts: list[Part] = [Chart("Rules that removed most characters", bars), table]
    if silent:
        parts.append(Points([f"Found nothing to do: {', '.join(silent)}."]))
    taken = {name: c[f"{name}.dropped"] + c[f"{name}.rejected"] + t[name] for name in found.rejected}
    for name in sorted(found.rejected, key=lambda name: ((names.index(name) if name in names else 99), name)):
        title = (
            f"{name}: {number(taken[name])} taken. {meaning(name)}"
            if taken[name]
            else f"{name}. {meaning(name)}"
        )
        parts.append(Examples(title, [("", text) for text in found.rejected[name]]))
    note = "In the order in which they run. Below: what they took; more of it is in the folder rejected."
    return Section("Rules", note, parts)


def lines_section(summary: Summary) -> Section:
    """The lines that were dropped most often."""
    rows = []
    for key, n in list(summary["lines"].items())[:MOST_LISTED]:
        rule, _, line = key.partition("\t")
        rows.append((line, rule, number(n)))
    note = "Each block counts its most frequent ones, so these are lower bounds."
    return Section("Most frequent dropped lines", note, [Table(("line", "rule", "times"), rows, 2)])


def duplicates_section(summary: Summary, config: CorpusConfig, found: Found) -> Section:
    """Clusters of documents that are alike."""
    t: Counter[str] = Counter(summary["totals"])
    rows = [
        ("exact", number(t["duplicate"]), number(t["duplicate_han"])),
        ("near", number(t["near_duplicate"]), number(t["near_duplicate_han"])),
    ]
    parts: list[Part] = [Table(("duplicates", "documents dropped", "Han characters"), rows)]
    if found.sizes:
        most, bars = max(found.sizes.values()), []
        for bits in range(1, max(found.sizes).bit_length()):
            least, last = 2**bits, 2 ** (bits + 1) - 1
            n = sum(many for size, many in found.sizes.items() if least <= size <= last)
            bars.append(Bar(f"{least} to {number(last)} documents", number(n), share(n, most)))
        parts.append(Chart("Clusters by size", bars))
    for cluster in found.clusters:
        title = f"{number(cluster.size)} documents, least similarity {cluster.least:.2f}"
        pair = [(f"{cluster.first[0]} (first)", cluster.first[1]), (cluster.other[0], cluster.other[1])]
        parts.append(Examples(title, pair))
    note = (
        f"Documents of similarity {config.min_similarity} or more are near duplicates; the first of a "
        "cluster stays. Shown: the largest clusters, then those whose documents are least alike, each with "
        "its first document and the one least like that. All members are in clusters.parquet."
    )
    return Section("Duplicates", note, parts)


def overlap_section(summary: Summary, config: CorpusConfig) -> Section:
    """Benchmark text in the corpus, by task and split."""
    rows = []
    for file, n in summary["overlap"].items():
        task, _, name = file.rpartition("/")
        numbers = (number(n["strings"]), number(n["whole"]), percent(n["whole"], n["strings"]))
        rows.append((task or "-", name, *numbers, number(n["any"]), number(n["left"])))
    c: Counter[str] = Counter(summary["rules"])
    if config.decontaminate:
        done = (
            f"Development and test text was removed: {number(c[f'{BENCHMARK_TEXT}.dropped'])} lines, "
            f"{number(c[f'{BENCHMARK_TEXT}.characters'])} characters. Text of training files stays."
        )
    else:
        done = "Nothing was removed: --decontaminate removes development and test text."
    header = ("task", "file", "strings", "found", "of strings", "share a 13-gram", "left")
    note = (
        "Strings of 13 letters or more in the benchmark files; found: nine tenths of their 13-grams are in "
        "the cleaned documents; left: they are in the corpus still."
    )
    return Section("Benchmark text", note, [Points([done]), Table(header, rows, 2)])


def text_section(summary: Summary, found: Found) -> Section:
    """Kept documents, and documents before and after the rules."""
    parts: list[Part] = [
        Examples(f"Kept: {name}", texts) for name, texts in list(found.kept.items())[:LISTED]
    ]
    for change in spread(summary["changed"], CHANGES):
        parts.append(Change(change["id"], *from_difference(change["before"], change["after"])))
    note = (
        "Documents that were kept, from their beginning; documents that the rules changed, before and after. "
        "\ufffd stands for a character that cannot be seen."
    )
    return Section("Kept and changed text", note, parts)


def from_difference(before: str, after: str) -> tuple[str, str]:
    """Both texts from a little before the place where they begin to differ."""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    start = sum(1 for _ in same) - CONTEXT
    return ("…" + before[start:], "…" + after[start:]) if start > 0 else (before, after)


def sections(summary: Summary, config: CorpusConfig, found: Found, facts: Mapping[str, Any]) -> list[Section]:
    """The whole report.

    Args:
        summary: what the steps counted.
        found: the texts to show.
        facts: ``inputs`` (name and sha256 of each), ``benchmarks`` (sha256 of each file), ``code``.
    """
    funnel = stages(summary)
    note = "Blue is what each stage left, red what it took; below it the reasons."
    parts: list[Section] = [
        Section("In short", "", [headline(summary, config)]),
        Section("Funnel", note, funnel_charts(funnel)),
        rules_section(summary, found),
        sources_section(summary),
        duplicates_section(summary, config, found),
    ]
    if "overlap" in summary:
        parts.append(overlap_section(summary, config))
    return [
        *parts,
        text_section(summary, found),
        lines_section(summary),
        length_section(summary, config),
        unknown_section(summary),
        input_section(summary, config, facts),
        settings_section(config, facts),
    ]
