"""The results as one static page: tables that sort, plots inlined, nothing fetched from anywhere.

Without scripts it is a page of plain tables; the script only adds sorting to their heads.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.render import Sheet

STYLE = """
:root { color-scheme: light dark; --line: #ccc; --soft: #f4f4f4; --link: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #222; --link: #8ab4f8; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 88rem; padding: 1rem; }
nav a { color: var(--link); margin-right: 1rem; white-space: nowrap; }
.scroll { overflow-x: auto; margin: 0 0 1.5rem; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
thead { border-bottom: 2px solid var(--line); border-top: 2px solid var(--line); }
tbody { border-bottom: 2px solid var(--line); }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; }
td { white-space: nowrap; }
td.wide { white-space: normal; min-width: 18rem; }
tbody tr:nth-child(even) { background: var(--soft); }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid var(--link); }
th[aria-sort=ascending] button::after { content: " \\25b2"; }
th[aria-sort=descending] button::after { content: " \\25bc"; }
figure { margin: 0 0 1.5rem; overflow-x: auto; }
figure svg { background: white; height: auto; min-width: 60rem; width: 100%; }
"""
# A cell's sort key is its first number (12.3M, 63.40 (62.82) ± 0.39), else its text; empty cells stay last.
SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const numeric = [...body.rows].every(row => /^(\\(?[\\d~]|$)/.test(row.cells[column].textContent));
      const key = row => {
        const text = row.cells[column].textContent;
        return text === "" ? null : numeric ? parseFloat(text.replace(/^[(~]+/, "")) : text;
      };
      const order = (a, b) => numeric ? a - b : a.localeCompare(b);
      const rows = [...body.rows].map(row => [key(row), row]);
      rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null)
        : (falling ? -1 : 1) * order(a, b));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
"""
WIDE = ("Notes", "Source", "Setting")


@dataclass(frozen=True)
class Section:
    """One part of the page: ``figures`` are (caption, SVG)."""

    name: str
    title: str
    text: str
    sheets: Sequence[Sheet]
    figures: Sequence[tuple[str, str]] = ()


def _table(sheet: Sheet) -> str:
    heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in sheet.header)
    lines = []
    for row in sheet.rows:
        cells = (
            f'<td class="wide">{html.escape(cell)}</td>' if name in WIDE else f"<td>{html.escape(cell)}</td>"
            for name, cell in zip(sheet.header, row, strict=True)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll"><table>\n<caption>{html.escape(sheet.title)}</caption>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody>\n</table></div>"
    )


def page(title: str, text: str, sections: Sequence[Section]) -> str:
    """The page as HTML."""
    links = "\n".join(f'<a href="#{s.name}">{html.escape(s.title)}</a>' for s in sections)
    parts = []
    for section in sections:
        parts.append(f'<section id="{section.name}">\n<h2>{html.escape(section.title)}</h2>')
        if section.text:
            parts.append(f"<p>{html.escape(section.text)}</p>")
        for caption, drawing in section.figures:
            parts.append(f"<figure>\n{drawing}\n<figcaption>{html.escape(caption)}</figcaption>\n</figure>")
        parts += [_table(sheet) for sheet in section.sheets] or ["<p>No records and no published rows.</p>"]
        parts.append("</section>")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
<p>{html.escape(text)}</p>
<nav>
{links}
</nav>
{chr(10).join(parts)}
<script>{SCRIPT}</script>
</body>
</html>
"""
