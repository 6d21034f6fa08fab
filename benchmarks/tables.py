"""Records and published scores as tables: ``python -m benchmarks.tables [--results DIR] [--out DIR]``.

Measured numbers of the full protocol, of reduced protocols, and published numbers stand in tables of their
own. The same records give the same bytes: sorted, without dates or facts of the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import tyro

from benchmarks import frames, plots, published, render
from benchmarks.arguments import Folder
from benchmarks.console import console_tables, table_console
from benchmarks.groups import LABELS, PROTOCOLS, Group, columns, load_groups, settings
from benchmarks.page import Section, page
from benchmarks.published import Published, load_published
from benchmarks.render import Sheet
from benchmarks.task import Task
from benchmarks.tasks import get_tasks
from provenance import atomic_file, run_cli

LEGEND = (
    "All scores are in percent. Measured: max (mean) ± standard deviation (n - 1) over n fine-tuning seeds "
    "of one checkpoint. A maximum on test is chosen on test: the fair test score is the one at the seed that "
    "is best on dev. The deviation over seeds does not hold the noise of the choice of items: items_low to "
    "items_high in the CSV files, the 95 % bootstrap interval of one run over its items, does. Ceiling: EM "
    "that perfect logits reach under the limits on windows and answers. Published: max (mean) of the "
    "publisher's runs under the publisher's protocol."
)
PLOTS: tuple[tuple[str, str, str, Callable[[plots.Series], float | None]], ...] = (
    (
        "parameters",
        "Score against parameters of the encoder, every seed a dot",
        "parameters",
        lambda series: series.parameters,
    ),
    (
        "pretraining",
        "Score against pretraining, in matrix-product operations where they are known, every seed a dot",
        "FLOPs of pretraining",
        lambda series: series.flops,
    ),
)


def millions(parameters: int) -> str:
    """12280576 -> ``12.3M``."""
    return f"{parameters / 1e6:.1f}M"


def _weights(group: Group) -> str:
    return str(group.first.model["weights_sha256"])[:8]


def _ceiling(group: Group) -> str:
    """``dev 95.15, test 99.91``."""
    found = group.first.ceiling.items()
    return ", ".join(f"{split} {values['exact_match']:.2f}" for split, values in found)


def measured_sheets(task: Task, groups: Sequence[Group]) -> list[Sheet]:
    """One table per protocol that has records."""
    words = settings(groups)
    sheets = []
    for protocol in PROTOCOLS:
        rows = [group for group in groups if group.first.protocol == protocol]
        if not rows:
            continue
        shown = columns(task, rows)
        best = [metric for split, metric in shown if split == "test" and metric in task.metrics]
        header = ["Model", "Parameters", "n", *(f"{split} {LABELS.get(m, m)}" for split, m in shown)]
        header += [f"test {LABELS.get(m, m)} at best dev" for m in best]
        limited = any(group.first.ceiling for group in rows)
        header += [*(["Ceiling EM"] if limited else []), "Degenerate", "Setting", "Bench id"]
        body = []
        for group in rows:
            at_best = [group.at_best_dev(metric) for metric in best]
            body.append(
                [
                    group.name,
                    millions(group.first.model["parameters"]),
                    str(len(group.records)),
                    *(summary.text if (summary := group.summary(*column)) else "" for column in shown),
                    *(f"{found[1]:.2f}" if found else "" for found in at_best),
                    *([_ceiling(group)] if limited else []),
                    f"{group.degenerate} of {len(group.records)}" if group.degenerate else "",
                    words[group.key],
                    group.first.bench_id,
                ]
            )
        sheets.append(Sheet(f"{task.title}: measured, {protocol} protocol", header, body))
    return sheets


def overall_sheets(tasks: Sequence[Task], groups: Sequence[Group], known: Sequence[Published]) -> list[Sheet]:
    """Main metric of every task side by side: one table per protocol, then the published ones."""
    titles = [f"{t.title} {plots.headline(t)[0]} {LABELS.get(t.main_metric, t.main_metric)}" for t in tasks]
    sheets = []
    for protocol in PROTOCOLS:
        rows = [group for group in groups if group.first.protocol == protocol]
        # Other weights are another model; and several settings of one task have no row that stands for all.
        weights = {name: {_weights(g) for g in rows if g.name == name} for name in {g.name for g in rows}}
        several = Counter((group.name, _weights(group), group.first.task) for group in rows)
        lines: dict[tuple[str, str], dict[str, Group]] = {}
        for group in rows:
            labels = [f"weights {_weights(group)}"] if len(weights[group.name]) > 1 else []
            if several[group.name, _weights(group), group.first.task] > 1:
                labels.append(f"bench id {group.first.bench_id}")
            lines.setdefault((group.name, ", ".join(labels)), {})[group.first.task] = group
        body = []
        for (name, label), by_task in sorted(lines.items()):
            cells = []
            for task in tasks:
                group_or_none = by_task.get(task.name)
                summary = group_or_none.summary(*plots.headline(task)) if group_or_none else None
                flag = "†" if group_or_none and group_or_none.degenerate else ""
                cells.append(f"{summary.text}, n {summary.n}{flag}" if summary else "")
            parameters = sorted({millions(group.first.model["parameters"]) for group in by_task.values()})
            body.append([f"{name} [{label}]" if label else name, ", ".join(parameters), *cells])
        if body:
            title = f"Measured, {protocol} protocol († with degenerate runs)"
            sheets.append(Sheet(title, ["Model", "Parameters", *titles], body))
    wanted = [(t.title, plots.headline(t)[0], LABELS.get(t.main_metric, t.main_metric)) for t in tasks]
    return sheets + published.sheets(known, wanted, titles, notes=False)


def _drawings(tasks: Sequence[Task], series: Sequence[plots.Series]) -> dict[str, tuple[str, bytes, str]]:
    """Name -> (caption, PNG, SVG) of each of PLOTS."""
    found = {}
    for name, caption, axis, place in PLOTS:
        figure = plots.scatter(tasks, series, place, caption, axis)
        found[name] = (caption, plots.png(figure), plots.svg(figure))
    return found


def write_tables(
    results: Path, reference: Path, out: Path, *, pictures: bool = True
) -> tuple[list[Group], list[Published]]:
    """Write the tables of each task and of all together, and return what was read.

    ``<task>`` and ``overall`` as .md, .tex, .png and .csv (measured); ``<task>-published.csv``;
    ``scores.csv``, a row for every seed; the plots
    ``parameters`` and ``pretraining`` as .png and .svg; ``index.html``. ``pictures=False`` leaves out the
    .png and .svg files, which take seconds.

    Raises:
        UserError: records or reference that cannot be read or contradict each other; then nothing is written.
    """
    groups, known = load_groups(results), load_published(reference)
    tasks = get_tasks("all")
    files: dict[str, str | bytes] = {}
    pages: list[tuple[str, str, Sequence[Task], list[Sheet], str]] = []
    for task in tasks:
        mine = [group for group in groups if group.first.task == task.name]
        wanted = [
            (task.title, split, LABELS.get(m, m))
            for split in ("dev", "test", "challenge")
            for m in task.metrics
        ]
        rows = [row for row in known if row.task == task.title]
        there = [cell for cell in wanted if any((r.task, r.split, r.metric) == cell for r in rows)]
        titles = [f"{split} {metric}" for _, split, metric in there]
        sheets = measured_sheets(task, mine) + published.sheets(rows, there, titles, prefix=f"{task.title}: ")
        pages.append((task.name, task.title, [task], sheets, task.note))
        facts = pd.DataFrame(rows, columns=published.FIELDS)
        files[f"{task.name}-published.csv"] = frames.csv_text(facts)
    pages.append(("overall", "All tasks", tasks, overall_sheets(tasks, groups, known), ""))
    for name, title, of, sheets, note in pages:
        files[f"{name}.md"] = render.markdown(title, " ".join(filter(None, [LEGEND, note])), sheets)
        files[f"{name}.tex"] = render.latex(name, sheets)
        files[f"{name}.csv"] = frames.csv_text(frames.by_group(of, groups))
        if pictures:  # the rows of others are many and stay in the text
            drawn = [
                sheet for sheet in sheets if not sheet.title.lower().endswith(published.HEADINGS["others"])
            ]
            files[f"{name}.png"] = plots.png(plots.picture(title, drawn))
    files["scores.csv"] = frames.csv_text(frames.by_seed(tasks, groups))
    series = plots.measured(tasks, groups) + plots.published(tasks, known)
    drawings = _drawings(tasks, series) if pictures else {}
    files |= {f"{name}.png": png for name, (_, png, _) in drawings.items()}
    files |= {f"{name}.svg": svg for name, (_, _, svg) in drawings.items()}
    figures = [(caption, svg) for caption, _, svg in drawings.values()]
    sections = [
        Section(name, title, note, sheets, figures if name == "overall" else ())
        for name, title, _, sheets, note in (pages[-1], *pages[:-1])
    ]
    files["index.html"] = page("zh-electra: results", LEGEND, sections)
    for name, content in files.items():
        with atomic_file(out / name) as partial:
            partial.write_bytes(content.encode() if isinstance(content, str) else content)
    return groups, known


def run(
    results: Folder = Path("results/runs"),
    reference: Folder = Path("results/reference"),
    out: Folder = Path("results/tables"),
) -> None:
    """Write the results tables (Markdown, CSV, LaTeX with booktabs, PNG, HTML) and print a short one.

    Args:
        results: folder of records, as `benchmarks.run --results` writes it.
        reference: folder with published_results.csv and sources.csv.
        out: folder to write to.
    """
    groups, known = write_tables(results, reference, out)
    console = table_console()
    for table in console_tables(groups, known):
        console.print(table, "")
    console.print(f"{sum(len(g.records) for g in groups)} records; tables are in {out}", highlight=False)


def main() -> None:
    """Command line."""
    tyro.cli(run, prog="python -m benchmarks.tables")


if __name__ == "__main__":
    run_cli(main)
