"""Pictures of scores: against parameters, against pretraining, and tables drawn as pictures.

The same input gives the same bytes: no dates, no version of the library, and only characters of the font
that comes with matplotlib (others are written as their code point), whatever fonts a machine has.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib import font_manager, ft2font
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.groups import LABELS, PROTOCOLS, Group
from benchmarks.models import ENCODERS
from benchmarks.published import Published
from benchmarks.render import Sheet
from benchmarks.task import Task
from pretrain.config import PRESETS
from pretrain.flops import step_flops

FONT, SIZE = "DejaVu Sans", 8  # points
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "zh-electra", "font.family": FONT, "font.size": SIZE}
HEADINGS = {"full": "full protocol (hollow: published by HFL)", "reduced": "reduced protocol (other data)"}
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442", "#000000"]


@dataclass(frozen=True)
class Series:
    """Scores of one model on one task, in percent: one per seed, or a published one alone.

    ``protocol`` is full, reduced or published; ``flops`` those of pretraining where they are known.
    """

    model: str
    task: str
    protocol: str
    parameters: float | None
    flops: float | None
    scores: tuple[float, ...]


def headline(task: Task) -> tuple[str, str]:
    """(split, metric) that stands for a task: its main metric, on test where that is published."""
    return ("test" if "test" in task.files else "dev", task.main_metric)


def measured(tasks: Sequence[Task], groups: Sequence[Group]) -> list[Series]:
    """Our records, every seed."""
    series = []
    for task in tasks:
        for group in groups:
            scores = group.scores(*headline(task)) if group.first.task == task.name else {}
            if scores:
                model = group.first.model
                series.append(
                    Series(
                        model=group.name,
                        task=task.name,
                        protocol=group.first.protocol,
                        parameters=model["parameters"],
                        flops=model.get("pretraining_flops"),
                        scores=tuple(scores[seed] for seed in sorted(scores)),
                    )
                )
    return series


def published(tasks: Sequence[Task], rows: Sequence[Published]) -> list[Series]:
    """HFL's rows: their mean, or their only number; FLOPs of those whose schedule is one of our presets."""
    sizes = {encoder.title: encoder.pretraining for encoder in ENCODERS.values() if encoder.pretraining}
    cells = {(task.title, headline(task)[0], LABELS[task.main_metric]): task.name for task in tasks}
    series = []
    for row in rows:
        task_name = cells.get((row.task, row.split, row.metric))
        if row.group != "HFL" or task_name is None:
            continue
        millions = re.fullmatch(r"~?([\d.]+)M", row.params)
        preset = PRESETS[sizes[row.model]] if row.model in sizes else None
        series.append(
            Series(
                model=row.model,
                task=task_name,
                protocol="published",
                parameters=1e6 * float(millions[1]) if millions else None,
                flops=step_flops(preset) * preset.steps if preset else None,
                scores=(float(row.mean or row.max),),
            )
        )
    return series


def scatter(
    tasks: Sequence[Task],
    series: Sequence[Series],
    place: Callable[[Series], float | None],
    title: str,
    axis: str,
) -> Figure:
    """One panel per task, one row per protocol; every seed is a dot, and published models are hollow.

    Args:
        tasks: in the order of the panels.
        series: what is drawn.
        place: horizontal place of a series, above 0; None or 0 leaves it out.
        title: of the figure.
        axis: what ``place`` is.
    """
    shown = [one for one in series if place(one)]
    rows = [p for p in PROTOCOLS if any(s.protocol == p for s in shown)] or ["full"]
    models = sorted({s.model for s in shown if s.protocol != "published"})
    colours = {model: COLOURS[i % len(COLOURS)] for i, model in enumerate(models)}
    with matplotlib.rc_context(STYLE):
        width, height = 2.6 * len(tasks), 2.6 * len(rows) + 0.9  # inches
        figure = Figure(figsize=(width, height))
        figure.suptitle(title, y=1 - 0.15 / height)
        figure.subplots_adjust(
            *(0.6 / width, 0.75 / height, 1 - 0.1 / width, 1 - 0.55 / height), wspace=0.25, hspace=0.2
        )
        axes = figure.subplots(len(rows), len(tasks), squeeze=False, sharex=True)
        for line, protocol in zip(axes, rows, strict=True):
            line[0].set_ylabel(HEADINGS[protocol])
            for panel, task in zip(line, tasks, strict=True):
                split, metric = headline(task)
                panel.set_title(f"{task.title} {split} {LABELS[metric]}", fontsize=8)
                panel.set_xscale("log")
                panel.grid(alpha=0.3, linewidth=0.5)
                wanted = (protocol, "published") if protocol == "full" else (protocol,)
                drawn = [s for s in shown if s.task == task.name and s.protocol in wanted]
                if not drawn:
                    panel.tick_params(labelleft=False)
                    panel.text(0.5, 0.5, "no scores", transform=panel.transAxes, ha="center", color="#777777")
                for one in drawn:
                    x, hollow = place(one), one.protocol == "published"
                    panel.scatter(
                        [x] * len(one.scores),
                        one.scores,
                        s=14,
                        linewidths=0.8,
                        facecolors="none" if hollow else colours[one.model],
                        edgecolors="#777777" if hollow else colours[one.model],
                        alpha=0.8,
                    )
        for panel in axes[-1]:
            panel.set_xlabel(axis)
        dots = [
            Line2D(
                [], [], marker="o", linestyle="", color=colours[model], markersize=4, label=drawable(model)
            )
            for model in models
        ]
        if dots:
            figure.legend(handles=dots, loc="lower center", ncols=min(4, len(dots)), frameon=False)
    return figure


# --- tables as pictures ---------------------------------------------------------------------------

ROW, GAP, LEFT = 0.2, 0.16, 0.15  # inches
NOT_DRAWN = ("Notes", "Source", "Setting", "Bench id")


def picture(title: str, sheets: Sequence[Sheet]) -> Figure:
    """Tables one under the other with rules above, below and under the heads; long remarks are left out."""
    blocks = []
    for sheet in sheets:
        kept = [i for i, name in enumerate(sheet.header) if name not in NOT_DRAWN]
        lines = [[drawable(line[i]) for i in kept] for line in (sheet.header, *sheet.rows)]
        widths = [max(_width(line[i]) for line in lines) + GAP for i in range(len(kept))]
        blocks.append((sheet.title, lines, widths))
    width = max([sum(widths) for _, _, widths in blocks] + [_width(title), 4.0]) + 2 * LEFT
    height = ROW * (2 + sum(len(lines) + 2.5 for _, lines, _ in blocks))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), facecolor="white")
        y = height - ROW

        def write(x: float, text: str, **style: object) -> None:
            figure.text(x / width, y / height, text, va="center", **style)  # type: ignore[arg-type]

        def rule(weight: float, right: float) -> None:
            line = Line2D([LEFT / width, right / width], [(y + ROW / 2) / height] * 2, color="black")
            line.set_linewidth(weight)
            figure.add_artist(line)

        write(LEFT, title, fontsize=10, weight="bold")
        for name, lines, widths in blocks:
            right = LEFT + sum(widths)
            y -= 1.5 * ROW
            write(LEFT, drawable(name), style="italic")
            for number, line in enumerate(lines):
                y -= ROW
                if number < 2:
                    rule((1.2, 0.6)[number], right)
                x = LEFT
                for cell, wide in zip(line, widths, strict=True):
                    write(x, cell, weight="bold" if number == 0 else "normal")
                    x += wide
            y -= ROW
            rule(1.2, right)
    return figure


@functools.cache
def _characters() -> frozenset[int]:
    """Code points of matplotlib's own font."""
    return frozenset(ft2font.FT2Font(font_manager.findfont(FONT)).get_charmap())


def drawable(text: str) -> str:
    """``text`` with each character that the font lacks as its code point, and no mathematics in it."""
    known = "".join(c if ord(c) in _characters() else f"U+{ord(c):04X} " for c in text)
    return known.replace("$", r"\$")


@functools.cache
def _bold() -> ft2font.FT2Font:
    font = ft2font.FT2Font(font_manager.findfont(font_manager.FontProperties(family=FONT, weight="bold")))
    font.set_size(SIZE, 72)
    return font


def _width(text: str) -> float:
    """Inches of a text in a table; bold, so that heads fit too."""
    _bold().set_text(text)
    return float(_bold().get_width_height()[0]) / 64 / 72


# --- bytes ----------------------------------------------------------------------------------------


def png(figure: Figure) -> bytes:
    """The figure as PNG without metadata."""
    out = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(out, format="png", dpi=120, metadata={"Software": None})
    return out.getvalue()


def svg(figure: Figure) -> str:
    """The figure as SVG whose text is text; without XML declaration, so that it can stand in a page."""
    out = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
