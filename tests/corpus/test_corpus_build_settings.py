"""What the settings of a build do to the documents and rows (cases 1, 8, 19)."""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpus import build
from corpus.command import parse
from corpus.config import PRESETS
from corpus.job import share_of
from corpus.tokens.rows import read_rows
from provenance import UserError, read_manifest

ROOT = Path(__file__).resolve().parents[2]


def test_rows_of_any_lengths(inputs: list[str], tmp_path: Path, options: Callable) -> None:
    """Each length has rows of its own, and a manifest replays them."""
    out = build.build(options(inputs[:1], tmp_path / "out", length=(64, 32)))
    assert sorted(folder.name for folder in out.glob("rows-*")) == ["rows-32", "rows-64"]
    for length in (32, 64):
        rows = [read_rows(file) for file in (out / f"rows-{length}").rglob("*.arrow")]
        sizes = [len(row) for table in rows for row in table["input_ids"].to_pylist()]
        assert max(sizes) == length
    assert parse(["--from", str(out)]).config.length == (64, 32)


def test_preset_and_overrides() -> None:
    parsed = parse(["a.txt", "--preset", "sample", "--min-han", "9", "--weights", "x=0.5", "y=3"])
    assert (parsed.config.lengths, parsed.config.min_han) == ((128,), 9)
    assert parsed.config.weights == ("x=0.5", "y=3")


@pytest.mark.parametrize(
    ("words", "lengths"),
    [([], (128, 512)), (["both"], (128, 512)), (["64"], (64,)), (["128", "64", "64"], (64, 128))],
)
def test_lengths(words: list[str], lengths: tuple[int, ...]) -> None:
    assert parse(["a.txt", *(["--length", *words] if words else [])]).config.lengths == lengths


@pytest.mark.parametrize(
    ("arguments", "preset"),
    [
        ([], "wiki"),
        (["a.txt"], "web"),
        (["a.txt", "--preset", "wiki"], "wiki"),
        (["--preset=sample"], "sample"),
    ],
)
def test_default_preset(arguments: list[str], preset: str) -> None:
    """Own files are of any kind; without files the dump is what is built from."""
    parsed = parse(arguments)
    assert (parsed.preset, parsed.config) == (preset, PRESETS[preset])


def test_weights(inputs: list[str], tmp_path: Path, options: Callable) -> None:
    """Below 1 a share of a source's documents, by id; above 1 their rows come several times."""
    plain = build.build(options(inputs, tmp_path / "plain", held_out=0.0))
    chosen = ("part1=0.25", "part2=2")
    out = build.build(options(inputs, tmp_path / "out", held_out=0.0, weights=chosen))
    ids = pq.read_table(out / "documents")["id"].to_pylist()
    assert [key for key in ids if key.startswith("1/")] == [
        f"1/{i}" for i in range(40) if share_of(f"sample/1/{i}") < 0.25
    ]
    assert 0 < sum(key.startswith("1/") for key in ids) < 20
    assert [key for key in ids if key.startswith("2/")] == [f"2/{i}" for i in range(40)]
    once, twice = (
        read_manifest(folder)["counts"]["packed"]["rows"]["128"]["rows_train"] for folder in (plain, out)
    )
    assert 1.05 * once < twice < 1.35 * once  # parts of 1, 1 and 1 against 1, 0.25 and 2


def test_held_out_documents_are_not_repeated(inputs: list[str], tmp_path: Path, options: Callable) -> None:
    weights = ("part0=3", "part1=3", "part2=3")
    counts = [
        read_manifest(build.build(options(inputs, tmp_path / name, held_out=0.2, weights=chosen)))["counts"]
        for name, chosen in (("once", ()), ("thrice", weights))
    ]
    once, thrice = (c["packed"]["rows"]["128"] for c in counts)
    assert once["rows_heldout"] == thrice["rows_heldout"] > 0
    assert thrice["rows_train"] > 2.5 * once["rows_train"]


def test_a_weight_for_no_source_is_a_mistake(inputs: list[str], tmp_path: Path, options: Callable) -> None:
    with pytest.raises(UserError, match="part9, which no document has; there are: part0, part1, part2"):
        build.build(options(inputs, tmp_path / "out", weights=("part9=2",)))
    assert not (tmp_path / "out").exists()


def test_small_corpus_still_holds_out_a_document(
    tmp_path: Path, text_of: Callable, write_lines: Callable, options: Callable
) -> None:
    documents = [{"id": str(i), "text": text_of(i)} for i in range(4)]
    source = write_lines(tmp_path / "few.jsonl.gz", documents)
    out = build.build(options([str(source)], tmp_path / "out", held_out=0.0001))
    groups: Counter[str] = Counter()
    for group in read_manifest(out)["counts"]["packed"]["groups"].values():
        groups.update(group)
    assert (groups["documents"], groups["held_out"]) == (4, 1)


def test_conversion_is_recorded(
    tmp_path: Path, text_of: Callable, write_lines: Callable, options: Callable
) -> None:
    """Case 1: the default leaves traditional text alone; t2s is an option that the manifest names."""
    text = "臺灣的颱風每年都會帶來豐沛的雨量。" + text_of(1)
    source = str(
        write_lines(tmp_path / "hant.jsonl.gz", [{"id": "a", "text": text}, {"id": "b", "text": text_of(2)}])
    )
    plain = build.build(options([source], tmp_path / "plain"))
    converted = build.build(options([source], tmp_path / "t2s", convert="t2s"))
    assert pq.read_table(plain / "documents")["text"][0].as_py().startswith("臺灣的颱風")
    assert pq.read_table(converted / "documents")["text"][0].as_py().startswith("台湾的台风")
    assert read_manifest(converted)["conversion"]["convert"] == "t2s"
    assert read_manifest(plain)["config_id"] != read_manifest(converted)["config_id"]


def test_conversion_leaves_alone_what_wikitext_fixes(tmp_path: Path, options: Callable) -> None:
    """Case 8: ``-{於}-`` is protected from OpenCC, through rules and all."""
    page = "-{於}-這個問題，學者於會議上討論了很久，-{zh-hans:软件;zh-hant:軟體}-也是其中之一。"
    source = tmp_path / "wiki.xml"
    source.write_text(
        "<mediawiki><page><title>甲</title><ns>0</ns><id>1</id>"
        f"<revision><text>{page}</text></revision></page></mediawiki>",
        encoding="utf-8",
    )
    out = build.build(options([str(source)], tmp_path / "out", convert="t2s"))
    text = pq.read_table(out / "documents")["text"][0].as_py()
    assert text == "於这个问题，学者于会议上讨论了很久，软件也是其中之一。"


def sample_lines() -> list[list[str]]:
    """Documents of six different sentences each, of the bundled sample."""
    text = (ROOT / "corpus" / "sample" / "zhwiki-sample.xml").read_text(encoding="utf-8")
    sentences = list(dict.fromkeys(re.findall("[\u4e00-\u9fff，]{20,60}。", text)))
    return [sentences[i : i + 6] for i in range(0, 24, 6)]


def test_benchmark_overlap_is_reported_and_can_be_dropped(
    tmp_path: Path, write_lines: Callable, options: Callable
) -> None:
    """Case 19: a dev file holds document 0, a test file a line of document 1, a train file document 2."""
    lines = sample_lines()
    documents = [{"id": str(i), "text": "\n".join(lines[i])} for i in range(4)]
    source = str(write_lines(tmp_path / "a.jsonl.gz", documents))
    (tmp_path / "data" / "qa").mkdir(parents=True)
    for split, context in (("dev", "".join(lines[0])), ("test", lines[1][2]), ("train", "".join(lines[2]))):
        (tmp_path / "data" / "qa" / f"{split}.json").write_text(json.dumps([context]), encoding="utf-8")
    chosen = replace(options([source], tmp_path / "report"), benchmarks=tmp_path / "data")
    found = {"strings": 1, "whole": 1, "any": 1, "left": 1}
    overlap = read_manifest(build.build(chosen))["counts"]["overlap"]
    assert overlap == {f"qa/{split}.json": found for split in ("dev", "test", "train")}
    dropped = replace(chosen, out=tmp_path / "drop", config=replace(chosen.config, decontaminate=True))
    out = build.build(dropped)
    assert [text.split("\n") for text in pq.read_table(out / "documents")["text"].to_pylist()] == [
        [line for i, line in enumerate(lines[1]) if i != 2],
        lines[2],
        lines[3],
    ]
    counts = read_manifest(out)["counts"]
    assert {name: n["left"] for name, n in counts["overlap"].items()} == {
        "qa/dev.json": 0,
        "qa/test.json": 0,
        "qa/train.json": 1,
    }
    assert counts["rules"]["benchmark_text.dropped"] == 7
    assert counts["totals"]["emptied"] == 1
    emptied = [row["text"] for row in pq.read_table(out / "rejected").to_pylist() if row["rule"] == "emptied"]
    assert emptied == ["\n".join(lines[0])]  # the example shows what was there
    # the files of the folder are part of what the corpus is
    replayed = parse(["--from", str(out)])
    assert (replayed.benchmarks, replayed.config) == (tmp_path / "data", dropped.config)
    (tmp_path / "data" / "qa" / "train.json").write_text("[]")
    with pytest.raises(UserError, match="--overwrite"):
        build.build(dropped)
    with pytest.raises(UserError, match="--benchmarks DIR"):
        build.build(replace(dropped, benchmarks=None))


def test_near_duplicates_and_recurring_lines(
    tmp_path: Path, text_of: Callable, write_lines: Callable, options: Callable
) -> None:
    """Near and exact copies follow the first; a menu goes everywhere, a long paragraph stays once."""
    menu = "首页 | 天气 | 新闻 | 联系我们的编辑"
    shared = (
        "南江河发源于北山南麓，全长约三百二十公里，流经两省七县，沿岸多稻田与果园，最后从青石桥下注入东湖。"
    )
    texts = {str(i): f"{menu}\n{text_of(i)}" for i in range(30)}
    texts["near"] = f"{menu}\n" + text_of(3, 30).replace("第5个", "第五个")
    texts["3"] = f"{menu}\n{text_of(3, 30)}"
    texts["exact"] = text_of(4).replace("，", " ")
    texts["7"] += f"\n{shared}"
    texts["9"] += f"\n{shared}"
    source = write_lines(tmp_path / "a.jsonl.gz", [{"id": key, "text": text} for key, text in texts.items()])
    out = build.build(options([str(source)], tmp_path / "out"))
    table = pq.read_table(out / "documents")
    kept = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
    assert set(texts) - set(kept) == {"near", "exact"}
    assert not any("编辑" in text for text in kept.values())
    assert (shared in kept["7"], shared in kept["9"]) == (True, False)
    clusters = pq.read_table(out / "clusters.parquet").to_pylist()
    assert [(c["id"], c["cluster"], c["kept"]) for c in clusters] == [
        ("3", 0, True),
        ("4", 1, True),
        ("near", 0, False),
        ("exact", 1, False),
    ]
    assert [c["similarity"] for c in clusters if c["id"] != "near"] == [1.0, 1.0, 1.0]
    assert 0.7 < clusters[2]["similarity"] < 1.0
    counts = read_manifest(out)["counts"]
    assert counts["rules"]["recurring_line.dropped"] == 31
    assert counts["rules"]["repeated_paragraph.dropped"] == 1
    assert (counts["totals"]["near_duplicate"], counts["totals"]["duplicate"]) == (1, 1)
    rejected = pq.read_table(out / "rejected").to_pylist()
    assert {"recurring_line", "repeated_paragraph", "near_duplicate", "duplicate"} <= {
        r["rule"] for r in rejected
    }
    off = options(
        [str(source)],
        tmp_path / "off",
        near_duplicates=False,
        dedup=False,
        recurring_lines=0,
        repeated_paragraphs=0,
    )
    assert pq.read_metadata(build.build(off) / "documents" / "00000.parquet").num_rows == len(texts)
