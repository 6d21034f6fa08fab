"""The report of a corpus: what came in, what each rule took, what is left."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corpus import decontaminate
from corpus.config import CorpusConfig
from corpus.job import Job, block_files, blocks, read_counts
from corpus.recurring import RULES as RECURRING
from corpus.rules import ALL_RULES
from corpus.vocab import UNK

Table = tuple[Sequence[str], Sequence[Sequence[Any]]]


def _sum(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Nested counters added up."""
    total: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping):
                total[key] = _sum([total.get(key, {}), value])
            else:
                total[key] = total.get(key, 0) + value
    return total


def by_file(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was read, an entry a file: of a large file every part counted for itself."""
    files: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        files.setdefault(entry["file"], []).append({k: v for k, v in entry.items() if k != "file"})
    return [{"file": name, **_sum(parts)} for name, parts in files.items()]


def summarize(job: Job, benchmark: decontaminate.Benchmark | None = None) -> dict[str, Any]:
    """Everything the steps counted, added up over ranks: the same for any number of workers."""
    read, clean = read_counts(job, "read"), read_counts(job, "clean")
    sign, keep, pack = (read_counts(job, step) for step in ("sign", "keep", "pack"))
    inputs = by_file([entry for part in read for entry in part["files"]])
    summary: dict[str, Any] = {
        "inputs": inputs,
        "skipped": _sum([entry["skipped"] for entry in inputs]),
        "totals": _sum([part["totals"] for part in [*clean, *sign, *keep]]),
        "rules": _sum([part["rules"] for part in [*clean, *sign]]),
        "packed": _sum([{k: v for k, v in part.items() if k != "documents"} for part in pack]),
        "documents": sum(part["documents"] for part in pack),
        "changed": [example for part in clean for example in part["changed"]],
        "blocks": len(blocks(job)),
    }
    if benchmark is not None:
        summary["overlap"] = overlap_report(job, benchmark)
    return summary


def overlap_report(job: Job, benchmark: decontaminate.Benchmark) -> dict[str, dict[str, int]]:
    """Benchmark strings found in the corpus, for each file of the data folder."""
    import numpy as np

    found, left = (
        np.unique(np.concatenate([np.load(path) for path in block_files(job, folder, "npy")]))
        for folder in ("found", "left")
    )
    return decontaminate.hits_per_file(benchmark, found, left)


# --- tables ---------------------------------------------------------------------------------------


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "-"


def funnel(summary: Mapping[str, Any]) -> Table:
    """Documents and Han characters after each step."""
    t = Counter(summary["totals"])
    steps: list[tuple[str, int, int]] = [("read", t["documents_in"], t["han_in"])]
    documents = t["documents_in"] - t["not_sampled"]
    if t["not_sampled"]:
        steps.append(("sampled", documents, t["han_in"] - t["not_sampled_han"]))
    steps.append(("cleaned", t["cleaned"], t["cleaned_han"]))
    kept, kept_han = t["cleaned"] - t["emptied"], t["signed_han"] - t["emptied_han"]
    steps.append(("without recurring lines", kept, kept_han))
    for name in ("duplicate", "near_duplicate"):
        kept, kept_han = kept - t[name], kept_han - t[f"{name}_han"]
        steps.append((f"without {name.replace('_', ' ')}s", kept, kept_han))
    rows = [
        (name, f"{n:,}", percent(n, t["documents_in"]), f"{han:,}", percent(han, t["han_in"]))
        for name, n, han in steps
    ]
    return ("step", "documents", "of read", "Han characters", "of read"), rows


def rule_table(summary: Mapping[str, Any], config: CorpusConfig) -> Table:
    """What each rule did, in the order the rules run; duplicates and contaminated documents at the end."""
    c, t = Counter(summary["rules"]), Counter(summary["totals"])
    rows: list[Sequence[Any]] = []
    for name in (*(rule.__name__ for rule in ALL_RULES), *RECURRING, "benchmark_text"):
        numbers = [c[f"{name}.{kind}"] for kind in ("changed", "dropped", "rejected", "characters")]
        if any(numbers):
            rows.append((name, *(f"{n:,}" if n else "" for n in numbers)))
    for name in ("emptied", "duplicate", "near_duplicate"):
        if t[name]:
            rows.append((name, "", "", f"{t[name]:,}", f"{t[name + '_han']:,}"))
    return ("rule", "changed", "lines dropped", "documents rejected", "characters removed"), rows


def group_table(summary: Mapping[str, Any]) -> Table:
    """Kept documents by source and script."""
    groups = summary["packed"].get("groups", {})
    rows: list[Sequence[Any]] = []
    total: Counter[str] = Counter()
    for key in sorted(groups, key=lambda k: (-groups[k]["tokens"], k)):
        total.update(groups[key])
        rows.append((*key.split("\t"), *_group_cells(groups[key])))
    rows.append(("all", "", *_group_cells(total)))
    return ("source", "script", "documents", "Han characters", "tokens", "[UNK]", "held out"), rows


def _group_cells(group: Mapping[str, int]) -> tuple[str, ...]:
    g = Counter(group)
    unk = percent(g["unk"], g["tokens"])
    return f"{g['documents']:,}", f"{g['han']:,}", f"{g['tokens']:,}", unk, f"{g['held_out']:,}"


def row_table(summary: Mapping[str, Any], config: CorpusConfig) -> Table:
    """Rows of each length and what packing lost."""
    rows: list[Sequence[Any]] = []
    for length in config.lengths:
        c = Counter(summary["packed"].get("rows", {}).get(str(length), {}))
        n = c["rows_train"] + c["rows_heldout"]
        tokens = c["tokens_train"] + c["tokens_heldout"]
        rows.append(
            (
                length,
                f"{c['rows_train']:,}",
                f"{c['rows_heldout']:,}",
                f"{tokens:,}",
                f"{tokens / n:.1f}" if n else "-",
                percent(c["single"], n),
                f"{c['tokens_lost']:,} ({percent(c['tokens_lost'], c['tokens_in'])})",
            )
        )
    header = (
        "length",
        "training rows",
        "held-out rows",
        "tokens",
        "mean length",
        "one segment",
        "tokens lost",
    )
    return header, rows


def histogram(summary: Mapping[str, Any]) -> Table:
    """Documents by length in characters (powers of two)."""
    sizes = {int(k): n for k, n in summary["packed"].get("sizes", {}).items()}
    most = max(sizes.values(), default=1)
    rows: list[Sequence[Any]] = []
    for bits in range(min(sizes, default=0), max(sizes, default=-1) + 1):
        n = sizes.get(bits, 0)
        span = f"{2 ** (bits - 1) if bits else 0:,} to {2**bits - 1:,}"
        rows.append((span, f"{n:,}", "█" * round(40 * n / most)))
    return ("characters", "documents", ""), rows


def input_table(summary: Mapping[str, Any]) -> Table:
    rows: list[Sequence[Any]] = [
        (part["file"], f"{part['documents']:,}", f"{part['han']:,}", _skips(part["skipped"]))
        for part in summary["inputs"]
    ]
    return ("file", "documents", "Han characters", "skipped"), rows


def _skips(counts: Mapping[str, int]) -> str:
    skipped = [
        f"{k.removeprefix('skipped: ')} {n:,}" for k, n in sorted(counts.items()) if k.startswith("skipped")
    ]
    return ", ".join(skipped)


def overlap_table(summary: Mapping[str, Any]) -> Table:
    rows: list[Sequence[Any]] = [
        (
            name,
            f"{n['strings']:,}",
            f"{n['whole']:,}",
            percent(n["whole"], n["strings"]),
            f"{n['any']:,}",
            f"{n['left']:,}",
        )
        for name, n in summary["overlap"].items()
    ]
    return ("file", "strings", "found (nine tenths)", "share", "share a 13-gram", "left in the corpus"), rows


def sections(summary: Mapping[str, Any], config: CorpusConfig) -> list[tuple[str, str, Table]]:
    """Title, explanation and table of each part of the report."""
    parts = [
        ("Funnel", "What is left after each step.", funnel(summary)),
        (
            "Inputs",
            "Pages and records that hold no document are skipped while reading.",
            input_table(summary),
        ),
        (
            "Rules",
            "In the order they run. Examples of what they took are in `rejected/`.",
            rule_table(summary, config),
        ),
        ("Sources", f"Kept documents. [UNK] is id {UNK}.", group_table(summary)),
        ("Rows", f"Packing: {config.packing}. Lengths count [CLS] and [SEP].", row_table(summary, config)),
        ("Lengths", "Kept documents by length.", histogram(summary)),
    ]
    if "overlap" in summary:
        note = "Benchmark strings of 13 letters or more whose 13-grams are in the cleaned documents."
        parts.append(("Benchmark overlap", note, overlap_table(summary)))
    return parts


# --- pages ----------------------------------------------------------------------------------------

Examples = Mapping[str, Sequence[str]]


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|")


def markdown(summary: Mapping[str, Any], config: CorpusConfig, name: str, examples: Examples) -> str:
    """The report as Markdown."""
    out = [f"# Corpus {name}", ""]
    for title, note, (header, rows) in sections(summary, config):
        out += [f"## {title}", "", note, ""]
        out += ["| " + " | ".join(map(_cell, header)) + " |", "|" + " --- |" * len(header)]
        out += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
        out.append("")
    out += ["## What rules took", ""]
    for rule, texts in examples.items():
        out += [f"**{rule}**", ""] + [f"- `{_short(text)}`" for text in texts] + [""]
    return "\n".join(out)


def _short(text: str, size: int = 120) -> str:
    line = " ⏎ ".join(text.split("\n")).replace("`", "'").strip()
    return line if len(line) <= size else line[:size] + "…"


_STYLE = """
body { font: 15px/1.6 system-ui, "Noto Sans CJK SC", sans-serif; max-width: 70rem; margin: 2rem auto;
  padding: 0 1rem; color: #1d2433; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem }
p { color: #596173; margin: .2rem 0 .6rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .25rem .8rem; border-bottom: 1px solid #e4e7ee; white-space: nowrap }
th { font-weight: 600; background: #f5f6f9 } th:first-child, td:first-child { text-align: left }
.bar td:last-child { text-align: left; color: #3b6fd4; letter-spacing: -1px }
pre { white-space: pre-wrap; word-break: break-word; background: #f5f6f9; padding: .6rem .8rem;
  border-radius: 6px; margin: .3rem 0; font: 13px/1.5 ui-monospace, "Noto Sans Mono CJK SC", monospace }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem }
summary { cursor: pointer; margin: .5rem 0 }
@media (max-width: 45rem) { .pair { grid-template-columns: 1fr } }
@media (prefers-color-scheme: dark) { body { background: #14171f; color: #d9dee8 }
  th, pre { background: #1f2430 } th, td { border-color: #2c3342 } p { color: #98a1b3 } }
"""


def web_page(summary: Mapping[str, Any], config: CorpusConfig, name: str, examples: Examples) -> str:
    """The report as one self-contained HTML page."""
    e = html.escape
    out = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Corpus {e(name)}</title><style>{_STYLE}</style><h1>Corpus {e(name)}</h1>",
    ]
    for title, note, (header, rows) in sections(summary, config):
        kind = ' class="bar"' if header[-1] == "" else ""
        out.append(f'<h2>{e(title)}</h2><p>{e(note)}</p><div class="scroll"><table{kind}>')
        for tag, row in [("th", header), *(("td", row) for row in rows)]:
            out.append("<tr>" + "".join(f"<{tag}>{e(str(cell))}</{tag}>" for cell in row) + "</tr>")
        out.append("</table></div>")
    out.append("<h2>What rules took</h2><p>A sample; more in the folder rejected.</p>")
    for rule, texts in examples.items():
        shown = "".join(f"<pre>{e(text[:400])}</pre>" for text in texts)
        out.append(f"<details><summary>{e(rule)}</summary>{shown}</details>")
    out.append("<h2>Before and after</h2><p>Documents that the rules changed, from their beginning.</p>")
    for example in summary["changed"][:12]:
        before, after = e(example["before"]), e(example["after"])
        out.append(
            f"<details><summary>{e(example['id'])}</summary>"
            f'<div class="pair"><pre>{before}</pre><pre>{after}</pre></div></details>'
        )
    return "\n".join(out) + "\n"
