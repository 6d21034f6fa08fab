"""Sections of mere numbers: sources and scripts, lengths, unknown characters, inputs, settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from corpus.config import CorpusConfig
from corpus.report.counts import all_groups
from corpus.report.parts import Bar, Chart, Part, Points, Section, Table, number, percent, share

LISTED, MOST_LISTED = 50, 30  # rows of a table that may be long, and of one that begins with the largest
Summary = Mapping[str, Any]


def long_table(header: Sequence[str], rows: Sequence[Sequence[str]], labels: int = 1) -> list[Part]:
    """The first ``LISTED`` rows, and how many there are."""
    parts: list[Part] = [Table(header, rows[:LISTED], labels)]
    if len(rows) > LISTED:
        parts.append(Points([f"{LISTED} of {number(len(rows))} are listed; manifest.json has the others."]))
    return parts


def sources_section(summary: Summary) -> Section:
    """Documents, characters and tokens by source and script."""
    groups, read = summary["packed"].get("groups", {}), summary["read"]
    scripts: dict[str, Counter[str]] = {}
    sources: dict[str, Counter[str]] = {name: Counter() for name in read}
    for key, group in groups.items():
        source, script = key.split("\t")
        sources.setdefault(source, Counter()).update(group)
        scripts.setdefault(script, Counter()).update(group)
    total = all_groups(summary)
    order = sorted(sources, key=lambda name: (-sources[name]["tokens"], name))
    largest = max((g["tokens"] for g in sources.values()), default=0)
    bars = [
        Bar(
            name,
            f"{number(sources[name]['tokens'])} · {percent(sources[name]['tokens'], total['tokens'])}",
            share(sources[name]["tokens"], largest),
        )
        for name in order[:LISTED]
    ]
    rows = [_source_row(name, sources[name], read.get(name, {})) for name in order]
    rows.append(
        _source_row("all", total, {key: sum(r[key] for r in read.values()) for key in ("documents", "han")})
    )
    kept = ("documents read", "kept", "of read", "Han read", "Han kept", "of read")
    header = ("source", *kept, "tokens", "[UNK]", "held out")
    by_script = [_group_row(name, scripts[name], total) for name in sorted(scripts)]
    by_both = [(*key.split("\t"), *_group_row("", groups[key], total)[1:]) for key in sorted(groups)]
    script_header = ("script", "documents", "Han characters", "tokens", "of all", "[UNK]")
    return Section(
        "Sources and scripts",
        "Scripts: hans simplified, hant traditional, mixed both, none where no character tells.",
        [
            Chart("Tokens by source", bars),
            *long_table(header, rows),
            Table(script_header, by_script),
            *long_table(("source", *script_header), by_both, 2),
        ],
    )


def _source_row(name: str, kept: Mapping[str, int], read: Mapping[str, int]) -> tuple[str, ...]:
    k, r = Counter(kept), Counter(read)
    documents = (number(r["documents"]), number(k["documents"]), percent(k["documents"], r["documents"]))
    han = (number(r["han"]), number(k["han"]), percent(k["han"], r["han"]))
    return name, *documents, *han, number(k["tokens"]), percent(k["unk"], k["tokens"]), number(k["held_out"])


def _group_row(name: str, group: Mapping[str, int], total: Mapping[str, int]) -> tuple[str, ...]:
    g = Counter(group)
    tokens = (number(g["tokens"]), percent(g["tokens"], total["tokens"]), percent(g["unk"], g["tokens"]))
    return name, number(g["documents"]), number(g["han"]), *tokens


def length_section(summary: Summary, config: CorpusConfig) -> Section:
    """Lengths of documents and rows, and what packing lost."""
    sizes = {int(k): n for k, n in summary["packed"].get("sizes", {}).items()}
    most, total = max(sizes.values(), default=0), sum(sizes.values())
    bars = []
    for bits in range(min(sizes, default=0), max(sizes, default=-1) + 1):
        n = sizes.get(bits, 0)
        span = f"{number(2 ** (bits - 1) if bits else 0)} to {number(2**bits - 1)}"
        bars.append(Bar(span, f"{number(n)} · {percent(n, total)}", share(n, most)))
    rows = []
    for length in config.lengths:
        c: Counter[str] = Counter(summary["packed"].get("rows", {}).get(str(length), {}))
        n, tokens = c["rows_train"] + c["rows_heldout"], c["tokens_train"] + c["tokens_heldout"]
        counts = map(number, (c["rows_train"], c["rows_heldout"], tokens))
        shares = (percent(tokens, n * length), percent(c["single"], n))
        lost = (number(c["tokens_lost"]), percent(c["tokens_lost"], c["tokens_in"]))
        rows.append((str(length), *counts, *shares, *lost))
    header = (
        "rows of",
        "training",
        "held out",
        "tokens",
        "filled",
        "one segment",
        "tokens lost",
        "of tokens",
    )
    note = f"Packing: {config.packing}. Tokens of rows include [CLS] and [SEP]."
    return Section(
        "Lengths", note, [Chart("Kept documents by length in characters", bars), Table(header, rows)]
    )


def unknown_section(summary: Summary) -> Section:
    """What the vocabulary does not know."""
    total = all_groups(summary)
    unknown = list(summary["packed"].get("unknown", {}).items())[:MOST_LISTED]
    rows = [(text, " ".join(f"U+{ord(c):04X}" for c in text[:4]), number(n)) for text, n in unknown]
    note = (
        f"{number(total['unk'])} of {number(total['tokens'])} tokens are [UNK]. The most frequent characters "
        "and runs behind them; each block counts its most frequent ones, so these are lower bounds. "
        "The shares by source are in the table of sources."
    )
    return Section("Unknown characters", note, [Table(("text", "code points", "times"), rows, 2)])


def input_section(summary: Summary, config: CorpusConfig, facts: Mapping[str, Any]) -> Section:
    """What was read, what was skipped, and the settings."""
    hashes: dict[str, list[str]] = {}
    for entry in facts["inputs"]:
        hashes.setdefault(entry["name"], []).append(entry.get("sha256") or entry.get("revision", ""))
    rows = [
        (
            part["file"],
            " ".join(hashes.get(part["file"], [])),
            *map(number, (part["documents"], part["han"], _skipped(part["skipped"]))),
        )
        for part in summary["inputs"]
    ]
    skipped = sorted(
        (reason.removeprefix("skipped: "), number(n))
        for reason, n in summary["skipped"].items()
        if reason.startswith("skipped: ")
    )
    parts = long_table(("input", "sha256", "documents", "Han characters", "skipped"), rows, 2)
    if skipped:
        parts.append(Table(("skipped because", "pages or records"), skipped))
    if facts.get("benchmarks"):
        parts += long_table(("benchmark file", "sha256"), sorted(facts["benchmarks"].items()), 2)
    return Section("Inputs", "Pages and records that hold no document are skipped while reading.", parts)


def _skipped(counts: Mapping[str, int]) -> int:
    return sum(n for reason, n in counts.items() if reason.startswith("skipped: "))


def settings_section(config: CorpusConfig, facts: Mapping[str, Any]) -> Section:
    """Every setting, those that differ from the defaults first."""
    default, rows = CorpusConfig(), []
    for entry in fields(CorpusConfig):
        value, usual = (_setting(getattr(c, entry.name)) for c in (config, default))
        rows.append(
            (f"--{entry.name.replace('_', '-')}", value, "" if value == usual else f"default {usual}")
        )
    rows.sort(key=lambda row: not row[2])
    note = f"Code {facts['code']}. manifest.json repeats them; --from manifest.json builds with them again."
    return Section("Settings", note, [Table(("setting", "value", ""), rows, 3)])


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return (" ".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)
