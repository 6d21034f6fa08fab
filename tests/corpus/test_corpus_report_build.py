"""The report of a whole build, and the examples that it takes from the files of one."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus import build
from corpus.command import Options
from corpus.config import PRESETS, Runtime
from corpus.job import CLUSTERS, SIGNED
from corpus.report.examples import cluster_examples, kept_examples, rule_examples, spread
from corpus.report.funnel import stages
from provenance import read_manifest

HOSTILE = "<script>alert('x')</script> & \"|`*\u202e 名字"


# --- examples -------------------------------------------------------------------------------------


def test_spread() -> None:
    assert spread(range(10), 3) == [0, 3, 6]
    assert spread([1, 2], 3) == [1, 2]


def test_clusters(tmp_path: Path) -> None:
    """Of a cluster the first document and the one least like it; the largest cluster first."""
    members = [("a", 0, 1.0), ("b", 1, 1.0), ("c", 0, 0.9), ("d", 1, 0.8), ("e", 1, 0.75)]
    columns = {
        "id": [m[0] for m in members],
        "cluster": [m[1] for m in members],
        "kept": [m[2] == 1.0 for m in members],
        "similarity": [m[2] for m in members],
    }
    pq.write_table(pa.table(columns, schema=CLUSTERS), tmp_path / "clusters.parquet")
    files = []
    for block in ("ab", "cde"):
        ids = list(block)
        texts = [f"文{key}" for key in ids]
        columns = dict.fromkeys(("id", "source", "title"), ids) | {"text": texts, "script": ids}
        columns |= {"han": [1] * len(ids), "emptied": [False] * len(ids)}
        files.append(tmp_path / f"{block}.parquet")
        pq.write_table(pa.table(columns, schema=SIGNED), files[-1])
    found, sizes = cluster_examples(tmp_path / "clusters.parquet", files)
    assert [(c.size, round(c.least, 2), c.first, c.other) for c in found] == [
        (3, 0.75, ("b", "文b"), ("e", "文e")),
        (2, 0.9, ("a", "文a"), ("c", "文c")),
    ]
    assert sizes == {2: 1, 3: 1}
    kept = kept_examples(files)
    assert kept["a"] == [("a", "文a")]
    assert list(kept) == list("abcde")


def test_rule_examples_come_from_several_blocks(tmp_path: Path) -> None:
    for block in range(4):
        rows = {"id": ["x"] * 4, "rule": ["no_han"] * 4, "text": [f"{block}-{i // 2}" for i in range(4)]}
        pq.write_table(pa.table(rows), tmp_path / f"{block}.parquet")
    found = rule_examples(sorted(tmp_path.glob("*.parquet")))
    assert found == {"no_han": ["0-0", "0-1", "1-0", "1-1", "2-0"]}


# --- a whole build --------------------------------------------------------------------------------


def sentence(number: int) -> str:
    """A line that shares no phrase with that of another number, with function characters in it."""
    letters = [chr(0x4E00 + (number * 7919 + i * i * 31 + i * number) % 8000) for i in range(60)]
    return "的".join("".join(letters[i : i + 10]) for i in range(0, 60, 10)) + "。"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    texts = [f"共同的导航栏文字一行\n{sentence(i)}\n{sentence(1000 + i)}" for i in range(60)]
    texts += [
        texts[3],
        texts[4] + "又一句。",
        "abc",
        sentence(5),
        f"<b>{sentence(77)}</b>\n# 标题\n{HOSTILE}",
    ]
    lines = [
        json.dumps({"id": str(i), "source": f"s{i % 2}{HOSTILE}", "text": t}) for i, t in enumerate(texts)
    ]
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "tasks" / "qa").mkdir(parents=True)
    (folder / "tasks" / "qa" / "dev.json").write_text(json.dumps([sentence(7)]), encoding="utf-8")
    config = replace(PRESETS["sample"], decontaminate=True, weights=(f"s0{HOSTILE}=0.8",))
    for name in ("one", "two"):
        build.build(
            Options(
                inputs=(str(folder / "a.jsonl"),),
                out=folder / name,
                preset="sample",
                config=config,
                runtime=Runtime(workers=1, progress=False),
                benchmarks=folder / "tasks",
            )
        )
    return folder


def test_the_same_corpus_gives_the_same_bytes(corpus: Path) -> None:
    for name in ("report.html", "report.md"):
        assert (corpus / "one" / name).read_bytes() == (corpus / "two" / name).read_bytes()


def test_counts_of_a_build_add_up(corpus: Path, check_funnel: Callable) -> None:
    counts = read_manifest(corpus / "one")["counts"]
    found = stages(counts)
    check_funnel(found)
    names = [s.name for s in found]
    assert names[1:4] == ["sampled", "rules", "recurring lines"]
    assert "benchmark text" in names
    assert counts["rules"]["recurring_line.dropped"] > 20
    assert counts["totals"]["signed_han"] == found[names.index("benchmark text")].han
    assert sum(n["documents"] for n in counts["read"].values()) == 65
    assert sum(n["han"] for n in counts["read"].values()) == counts["totals"]["han_in"]
    assert (
        counts["lines"]["recurring_line\t共同的导航栏文字一行"] == counts["rules"]["recurring_line.dropped"]
    )


def test_pages_of_a_build(corpus: Path, page_of: Callable) -> None:
    html = (corpus / "one" / "report.html").read_text(encoding="utf-8")
    page = page_of(html)
    assert "<script" not in html
    assert "共同的导航栏文字一行" in "".join(page.text)
    assert str(corpus) not in html  # a report says nothing about the machine
