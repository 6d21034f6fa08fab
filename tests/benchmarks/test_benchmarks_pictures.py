"""Pictures and the page: every seed a dot, the same bytes on every machine, nothing from elsewhere."""

import re
from pathlib import Path

from benchmarks import plots, tables
from benchmarks.groups import load_groups
from benchmarks.published import load_published
from benchmarks.record import write_record
from benchmarks.render import Sheet
from benchmarks.tasks import TASKS

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
TEN = [62.1, 62.4, 62.6, 62.7, 62.8, 62.9, 63.0, 63.1, 63.2, 63.4]
PAIR = next(task for task in TASKS.values() if task.kind == "pair" and "test" in task.files)


def test_pictures_hold_no_metadata_and_every_seed_is_a_dot(results):
    """PNG: header, pixels, end, and their size alone; SVG: ten dots of ours beside HFL's."""
    figure = plots.picture("A title", [Sheet("模型", ["Model", "n"], [["ours", "10"], ["", ""]])])
    data = plots.png(figure)
    chunks, place = [], 8
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "big")
        chunks.append(data[place + 4 : place + 8])
        place += size + 12
    assert set(chunks) == {b"IHDR", b"pHYs", b"IDAT", b"IEND"}
    groups = load_groups(results)
    (ours,) = plots.measured([PAIR], groups)
    assert (ours.scores, ours.parameters, ours.flops) == (tuple(TEN), 12_280_576, None)
    figure = plots.scatter([PAIR], [ours], lambda s: s.parameters, "title", "parameters")
    drawing = plots.svg(figure)
    assert drawing.startswith("<svg")
    assert "<dc:date>" not in drawing
    assert f"{PAIR.title} test accuracy" in drawing  # text is text
    (dots,) = figure.axes[0].collections
    assert [float(y) for _, y in dots.get_offsets()] == TEN


def test_reduced_scores_have_panels_of_their_own():
    """Published models are drawn beside the full protocol only."""
    kinds = {"full": 60.0, "reduced": 50.0, "published": 70.0}
    series = [plots.Series("m", PAIR.name, kind, 1e7, None, (y,)) for kind, y in kinds.items()]
    figure = plots.scatter([PAIR], series, lambda s: s.parameters, "t", "x")
    drawn = [[float(c.get_offsets()[0][1]) for c in panel.collections] for panel in figure.axes]
    assert drawn == [[60.0, 70.0], [50.0]]
    assert not plots.scatter([PAIR], series, lambda s: s.flops, "t", "x").axes[0].collections


def test_pretraining_of_published_models_is_that_of_the_presets():
    """HFL's small: a million steps of 1,024 rows of 512 tokens; means, else the only number."""
    found = {s.model: s for s in plots.published([PAIR], load_published(REFERENCE)) if s.flops}
    assert found["ELECTRA-small"].flops == found["ELECTRA-180g-small"].flops
    per_token = found["ELECTRA-small"].flops / (1e6 * 1024 * 512)
    assert 6 * (12.3e6 - 21128 * 128) < per_token < 12 * 12.3e6  # six per weight, and a generator
    assert {"ELECTRA-base", "ELECTRA-180g-large", "ELECTRA-small-ex"} <= found.keys()
    assert found["ELECTRA-small"].parameters == 12e6


def test_characters_without_a_shape_are_written_as_code_points():
    """The font that comes with matplotlib has no Chinese; formulas are not set."""
    assert plots.drawable("模型-a ± †") == "U+6A21 U+578B -a ± †"
    assert plots.drawable("$x$") == r"\$x\$"


def test_the_page_needs_nothing_from_elsewhere_and_escapes(results, few, tmp_path, record):
    model = {"name": "<b>&名", "weights_sha256": "cd" * 32, "parameters": 1_000_000}
    write_record(results, record(0, 50.0, 51.0, bench_id="f" * 12, model=model))
    tables.write_tables(results, few, tmp_path / "out")
    text = (tmp_path / "out/index.html").read_text("utf-8")
    assert "&lt;b&gt;&amp;名" in text
    assert "<b>" not in text
    for outside in ("src=", "@import", "url(http", "<link", "<iframe"):
        assert outside not in text
    links = re.findall(r'href="([^"]*)"', text)
    assert links
    assert all(link.startswith("#") for link in links)
    assert text.count("<svg") == 2
    assert len(re.findall(r'<section id="', text)) == len(TASKS) + 1
    assert '<th scope="col">Model</th>' in text
