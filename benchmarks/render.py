"""Tables of text as Markdown and LaTeX (booktabs)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LATEX = {
    **{character: rf"\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "<": r"$<$",
    ">": r"$>$",
}


@dataclass(frozen=True)
class Sheet:
    """A titled table of text; every row is as long as ``header``."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def markdown(title: str, text: str, sheets: Sequence[Sheet]) -> str:
    """A page: heading, a paragraph, and one section per table."""
    parts = [f"# {title}", text]
    for sheet in sheets:
        lines = [sheet.header, ["---"] * len(sheet.header), *sheet.rows]
        table = "\n".join(
            "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines
        )
        parts += [f"## {sheet.title}", table]
    if not sheets:
        parts.append("No records and no published rows.")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text as LaTeX source."""
    return re.sub("|".join(map(re.escape, LATEX)), lambda match: LATEX[match[0]], text)


def latex(label: str, sheets: Sequence[Sheet]) -> str:
    """One ``table`` per sheet, scaled to the width of the text; needs booktabs and graphicx.

    Notes stay in the Markdown and CSV files: they are too long for a printed table.
    """
    blocks = [r"% \usepackage{booktabs,graphicx}"]
    for number, sheet in enumerate(sheets, start=1):
        kept = [index for index, name in enumerate(sheet.header) if name != "Notes"]
        lines = [
            " & ".join(escape(line[index]) for index in kept) + r" \\" for line in [sheet.header, *sheet.rows]
        ]
        blocks.append(
            "\n".join(
                [
                    r"\begin{table}",
                    r"\centering",
                    rf"\caption{{{escape(sheet.title)}}}",
                    rf"\label{{tab:{label}-{number}}}",
                    r"\resizebox{\textwidth}{!}{%",
                    rf"\begin{{tabular}}{{{'l' * len(kept)}}}",
                    r"\toprule",
                    lines[0],
                    r"\midrule",
                    *lines[1:],
                    r"\bottomrule",
                    r"\end{tabular}}",
                    r"\end{table}",
                ]
            )
        )
    return "\n\n".join(blocks) + "\n"
