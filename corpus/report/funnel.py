"""The funnel: documents and Han characters from stage to stage, and what each stage took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpus.duplicates.recurring import RULES as RECURRING
from corpus.report.counts import all_groups
from corpus.report.parts import Bar, Chart, number, percent, share
from corpus.rules.order import ALL_RULES
from corpus.steps.sign import BENCHMARK_TEXT


@dataclass(frozen=True)
class Stage:
    """What is left after a stage, and what it took, by reason; what enters less what it took is left."""

    name: str
    documents: int
    han: int
    took_documents: Mapping[str, int] = field(default_factory=dict)
    took_han: Mapping[str, int] = field(default_factory=dict)


def stages(summary: Mapping[str, Any]) -> list[Stage]:
    """From what was read to what was packed; the last as the packing itself counted it."""
    t: Counter[str] = Counter(summary["totals"])
    c: Counter[str] = Counter(summary["rules"])
    rejected = {rule.__name__: c[f"{rule.__name__}.rejected"] for rule in ALL_RULES}
    changed_han = t["han_in"] - t["not_sampled_han"] - t["rejected_han"] - t["cleaned_han"]
    losses: list[tuple[str, Mapping[str, int], Mapping[str, int]]] = []
    if t["not_sampled"]:
        losses.append(("sampled", {"weights": t["not_sampled"]}, {"weights": t["not_sampled_han"]}))
    by_rules = {"whole documents": t["rejected_han"], "lines and passages": changed_han}
    losses.append(("rules", rejected, by_rules))
    losses.append(("recurring lines", {}, {name: c[f"{name}.han"] for name in RECURRING}))
    if c[f"{BENCHMARK_TEXT}.dropped"]:
        losses.append(("benchmark text", {}, {BENCHMARK_TEXT: c[f"{BENCHMARK_TEXT}.han"]}))
    for reason, name in (
        ("emptied", "emptied"),
        ("duplicate", "exact duplicates"),
        ("near_duplicate", "near duplicates"),
    ):
        losses.append((name, {reason: t[reason]}, {reason: t[f"{reason}_han"]}))
    found = [Stage("read", t["documents_in"], t["han_in"])]
    for name, documents, han in losses:
        before = found[-1]
        found.append(
            Stage(
                name,
                before.documents - sum(documents.values()),
                before.han - sum(han.values()),
                {reason: n for reason, n in documents.items() if n},
                {reason: n for reason, n in han.items() if n},
            )
        )
    return [*found, Stage("packed", summary["documents"], all_groups(summary)["han"])]


def _chart(title: str, numbers: Sequence[tuple[str, int, Mapping[str, int]]]) -> Chart:
    whole = before = numbers[0][1]
    bars = []
    for name, left, took in numbers:
        lost = share(before - left, whole)
        bars.append(Bar(name, f"{number(left)} · {percent(left, whole)}", share(left, whole), lost))
        for reason, n in sorted(took.items(), key=lambda item: -item[1]):
            bars.append(Bar(reason, f"−{number(n)}", lost=share(n, whole), minor=True))
        before = left
    return Chart(title, bars)


def funnel_charts(found: Sequence[Stage]) -> list[Chart]:
    """The funnel of documents and that of Han characters."""
    return [
        _chart("Documents left after each stage", [(s.name, s.documents, s.took_documents) for s in found]),
        _chart("Han characters left after each stage", [(s.name, s.han, s.took_han) for s in found]),
    ]
