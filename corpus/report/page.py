"""The report as one HTML page that needs nothing else, and as Markdown with the same content."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import singledispatch
from typing import Any

from corpus.report.parts import (
    SHOWN,
    Bar,
    Change,
    Chart,
    Examples,
    Figures,
    Points,
    Section,
    Table,
    short,
    visible,
)

BLOCKS = 30  # characters of the longest bar in Markdown
LEAST_ALIKE = 0.3  # share of two texts that is the same from which on differences are marked

# --- HTML -----------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --text: #1d2433; --soft: #5b6475; --page: #fff; --box: #f4f6f9;
  --edge: #dfe3ea; --kept: #3b6fd4; --lost: #d8574b; --gone: #fbe0dd; --new: #d9f0dc }
@media (prefers-color-scheme: dark) { :root { --text: #dde2ec; --soft: #9aa4b6; --page: #14171f;
  --box: #1e232e; --edge: #313847; --kept: #6f9bf0; --lost: #e8796d; --gone: #5a2824; --new: #1f4a2a } }
* { box-sizing: border-box }
body { font: 15px/1.6 system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  max-width: 72rem; margin: 1.5rem auto 4rem; padding: 0 1rem; color: var(--text); background: var(--page) }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .2rem; padding-top: .6rem; border-top: 1px solid var(--edge) }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem }
a { color: var(--kept) }
p, .more { color: var(--soft); margin: .2rem 0 .8rem }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem }
.figures div { background: var(--box); border-radius: 8px; padding: .6rem .8rem }
.figures b { display: block; font-size: 1.35rem; line-height: 1.3; font-variant-numeric: tabular-nums }
.figures span { color: var(--soft); font-size: .87rem; display: block }
.charts { display: grid; gap: 0 2.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)) }
.chart { display: grid; grid-template-columns: fit-content(16rem) 1fr auto; gap: 0 .8rem;
  align-items: center; font-variant-numeric: tabular-nums }
.bar { display: contents } .bar span { overflow-wrap: anywhere } .bar span:last-child { text-align: right }
.bar svg { width: 100%; height: .95rem; background: var(--box); border-radius: 3px }
.minor { color: var(--soft); font-size: .87rem } .minor svg { height: .4rem }
.minor span:first-child { padding-left: 1rem }
.kept { fill: var(--kept) } .lost { fill: var(--lost) }
.scroll { overflow-x: auto; margin: .6rem 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .2rem .7rem; border-bottom: 1px solid var(--edge); vertical-align: top;
  white-space: nowrap }
th { font-weight: 600; background: var(--box); vertical-align: bottom; white-space: normal }
.word { text-align: left; white-space: normal; overflow-wrap: break-word; max-width: min(34rem, 80vw);
  unicode-bidi: isolate }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--box); padding: .5rem .7rem;
  margin: .3rem 0; border-radius: 6px; font: inherit; font-size: .9rem; unicode-bidi: isolate }
del { background: var(--gone); text-decoration: line-through }
ins { background: var(--new); text-decoration: none }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: .2rem .8rem }
.pair > * { min-width: 0 }
details { margin: .3rem 0 } summary { cursor: pointer; overflow-wrap: anywhere }
small { color: var(--soft); overflow-wrap: anywhere }
@media (max-width: 46rem) { .pair { grid-template-columns: 1fr }
  .chart { display: block }
  .bar { display: grid; grid-template-columns: 1fr auto; gap: 0 .8rem; margin-bottom: .3rem }
  .bar svg { grid-column: 1 / -1; grid-row: 2 } }
"""


def _escape(text: str) -> str:
    return html.escape(visible(text))


def _svg(bar: Bar) -> str:
    """The two shares as rectangles; the text beside them says the numbers."""
    pieces, at = [], 0.0
    for kind, part in (("kept", bar.kept), ("lost", bar.lost)):
        if part > 0:
            pieces.append(f'<rect class="{kind}" x="{1000 * at:.1f}" width="{1000 * part:.1f}" height="10"/>')
        at += part
    return f'<svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">{"".join(pieces)}</svg>'


@singledispatch
def _html(part: Any) -> str:
    raise TypeError(part)


@_html.register
def _(part: Figures) -> str:
    cells = "".join(
        f"<div><span>{_escape(what)}</span><b>{_escape(n)}</b><span>{_escape(more)}</span></div>"
        for what, n, more in part.entries
    )
    return f'<div class="figures">{cells}</div>'


@_html.register
def _(part: Chart) -> str:
    lines = "\n".join(
        f'<div class="bar{" minor" * bar.minor}"><span>{_escape(short(bar.label))}</span>{_svg(bar)}'
        f"<span>{_escape(bar.text)}</span></div>"
        for bar in part.bars
    )
    return f'<section><h3>{_escape(part.title)}</h3><div class="chart">\n{lines}\n</div></section>'


@_html.register
def _(part: Table) -> str:
    lines = []
    for tag, row in [("th", part.header), *(("td", row) for row in part.rows)]:
        cells = [
            f"<{tag}{' class=word' * (i < part.labels)}>{_escape(short(cell))}</{tag}>"
            for i, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table>\n{chr(10).join(lines)}\n</table></div>'


@_html.register
def _(part: Examples) -> str:
    texts = "".join(
        (f"<small>{_escape(short(what))}</small>" if what else "") + f"<pre>{_escape(short(text))}</pre>"
        for what, text in part.texts
    )
    return f"<details><summary>{_escape(short(part.title))}</summary>{texts}</details>"


def marked(before: str, after: str) -> tuple[str, str]:
    """The beginnings of both texts as HTML, with what only one of them has in ``del`` and ``ins``.

    A difference that reaches the end of both may be none: the texts go on. Where little is the same, as where
    much was dropped, nothing is marked.
    """
    old, new = visible(before)[:SHOWN], visible(after)[:SHOWN]
    sides: tuple[list[str], list[str]] = ([], [])
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    unlike = matcher.ratio() < LEAST_ALIKE
    for kind, a, b, c, d in matcher.get_opcodes():
        same = unlike or kind == "equal" or (b == len(old) and d == len(new) and SHOWN in (b, d))
        for side, tag, piece in ((sides[0], "del", old[a:b]), (sides[1], "ins", new[c:d])):
            shown = _escape(piece)
            if not same and piece:
                shown = f"<{tag}>" + shown.replace("\n", "⏎\n") + f"</{tag}>"
            side.append(shown)
    ends = ("…" * (len(text) > SHOWN) for text in (before, after))
    old, new = ("".join(side) + end for side, end in zip(sides, ends, strict=True))
    return old, new


@_html.register
def _(part: Change) -> str:
    before, after = marked(part.before.strip(), part.after.strip())
    return (
        f"<details open><summary>Changed: {_escape(short(part.title))}</summary>"
        f'<div class="pair"><pre>{before}</pre><pre>{after}</pre></div></details>'
    )


@_html.register
def _(part: Points) -> str:
    return "".join(f'<div class="more">{_escape(item)}</div>' for item in part.items)


def _anchor(title: str) -> str:
    """As Markdown viewers make it of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def web_page(name: str, sections: Sequence[Section]) -> str:
    """The report as HTML."""
    links = "".join(f'<a href="#{_anchor(s.title)}">{_escape(s.title)}</a>' for s in sections[1:])
    out = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Corpus {_escape(name)}</title><style>{STYLE}</style></head>",
        f"<body><h1>Corpus {_escape(name)}</h1>",
    ]
    for index, section in enumerate(sections):
        if index:
            out.append(f'<h2 id="{_anchor(section.title)}">{_escape(section.title)}</h2>')
        out += [f"<p>{_escape(section.note)}</p>"] if section.note else []
        charts = [_html(part) for part in section.parts if isinstance(part, Chart)]
        out += [f'<div class="charts">{"".join(charts)}</div>'] if charts else []
        out += [_html(part) for part in section.parts if not isinstance(part, Chart)]
        if not index:
            out.append(f"<h3>Contents</h3><nav>{links}</nav>")
    return "\n".join([*out, "</body></html>", ""])


# --- Markdown -------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """Text of a cell or heading; nothing in it is markup."""
    text = " ".join(short(text).split("\n"))
    return re.sub(r"([\\|*\[\]`])", r"\\\1", html.escape(text, quote=False))


def _code(text: str) -> str:
    """Text as a code span on one line."""
    line = " ⏎ ".join(part.strip() for part in short(text).split("\n") if part.strip())
    return "`" + line.replace("`", "'") + "`"


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]], labels: int = 1) -> Iterator[str]:
    yield "| " + " | ".join(map(_plain, header)) + " |"
    yield "|" + "".join(" --- |" if i < labels else " ---: |" for i in range(len(header)))
    for row in rows:
        yield "| " + " | ".join(map(_plain, row)) + " |"
    yield ""


@singledispatch
def _markdown(part: Any) -> Iterator[str]:
    raise TypeError(part)


@_markdown.register
def _(part: Figures) -> Iterator[str]:
    yield from _rows(("", "", ""), part.entries)


@_markdown.register
def _(part: Chart) -> Iterator[str]:
    yield from (f"**{_plain(part.title)}**", "")
    rows = []
    for bar in part.bars:
        picture = "█" * round(BLOCKS * bar.kept) + "░" * round(BLOCKS * bar.lost)
        rows.append((f"– {bar.label}" if bar.minor else bar.label, bar.text, picture))
    yield from _rows(("", "", "█ left ░ taken" if any(b.lost for b in part.bars) else ""), rows)


@_markdown.register
def _(part: Table) -> Iterator[str]:
    yield from _rows(part.header, part.rows, part.labels)


@_markdown.register
def _(part: Examples) -> Iterator[str]:
    yield from (f"**{_plain(part.title)}**", "")
    for what, text in part.texts:
        yield f"- {_plain(what) + ': ' if what else ''}{_code(text)}"
    yield ""


@_markdown.register
def _(part: Change) -> Iterator[str]:
    yield from (f"**Changed: {_plain(part.title)}**", "")
    yield from (f"- before: {_code(part.before)}", f"- after: {_code(part.after)}", "")


@_markdown.register
def _(part: Points) -> Iterator[str]:
    yield from [*(f"- {_plain(item)}" for item in part.items), ""]


def markdown(name: str, sections: Sequence[Section]) -> str:
    """The report as Markdown."""
    out = [f"# Corpus {_plain(name)}", ""]
    for index, section in enumerate(sections):
        out += [f"## {_plain(section.title)}", ""] if index else []
        out += [_plain(section.note), ""] if section.note else []
        for part in section.parts:
            out += _markdown(part)
        if not index:
            out += [*(f"- [{_plain(s.title)}](#{_anchor(s.title)})" for s in sections[1:]), ""]
    return "\n".join(out)
