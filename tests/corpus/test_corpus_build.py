"""The build as a program: contents, determinism, resuming, mistakes (cases 1, 32, 34, 35)."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpus import build
from corpus.command import Options, check_config, parse
from corpus.config import PRESETS, Runtime
from corpus.engine import WorkerError
from corpus.job import share_of
from corpus.tokens.rows import read_rows
from provenance import UserError, hold, read_manifest, verify_manifest, write_manifest

ROOT = Path(__file__).resolve().parents[2]
QUIET = Runtime(workers=1, progress=False)
SUBJECTS = ("老师", "医生", "渔民", "工程师", "邻居", "画家", "农民", "司机")
PLACES = ("河边", "图书馆", "车站", "山脚下", "市场", "学校门口", "果园", "码头")
ACTS = ("修理一台旧机器", "整理去年的记录", "向孩子们讲故事", "等一位多年的朋友", "记录天气的变化")


def text_of(number: int, lines: int = 6) -> str:
    """A document that no other number gives."""
    parts = []
    for i in range(lines):
        n = number * 7 + i * 5
        subject, place, act = SUBJECTS[n % 8], PLACES[n // 8 % 8], ACTS[n // 3 % 5]
        parts.append(f"第{number}天的第{i}个时辰，{subject}在{place}{act}，然后慢慢走回家去。")
    return "\n".join(parts)


def write_lines(path: Path, documents: list[dict[str, str]]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    return path


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("inputs")
    for part in range(3):
        documents = [
            {"id": f"{part}/{i}", "source": f"part{part}", "text": text_of(100 * part + i)} for i in range(40)
        ]
        documents.append(
            {"id": f"{part}/copy", "source": f"part{part}", "text": text_of(3).replace("，", " ")}
        )
        documents.append({"id": f"{part}/short", "source": f"part{part}", "text": "abc"})
        write_lines(folder / f"part{part}.jsonl.gz", documents)
    return [str(path) for path in sorted(folder.glob("*.gz"))]


def options(inputs: list[str], out: Path, **config: object) -> Options:
    preset = replace(PRESETS["sample"], **config)  # type: ignore[arg-type]
    return Options(inputs=tuple(inputs), out=out, preset="sample", config=preset, runtime=QUIET)


@pytest.fixture(scope="module")
def corpus(inputs: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("corpus") / "out"
    return build.build(options(inputs, out, length="both"))


def command(inputs: list[str], out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "corpus.build", *inputs, "--preset", "sample", "--out", str(out), *more]


def run(inputs: list[str], out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(inputs, out, *more), cwd=ROOT, capture_output=True, text=True)


# --- what is written ------------------------------------------------------------------------------


def test_documents(corpus: Path) -> None:
    table = pq.read_table(corpus / "documents")
    assert table.column_names == ["id", "source", "title", "text", "script"]
    ids = table["id"].to_pylist()
    # 3 * 40 documents; each copy repeats document 0/3, which comes first and stays
    assert len(ids) == 120
    assert "0/3" in ids
    assert not any(key.endswith(("copy", "short")) for key in ids)
    assert set(table["script"].to_pylist()) == {"hans"}


def test_rejected(corpus: Path) -> None:
    table = pq.read_table(corpus / "rejected")
    assert table.column_names == ["id", "rule", "text"]
    assert {"no_han", "too_short", "duplicate"} <= set(table["rule"].to_pylist())


@pytest.mark.parametrize("length", [128, 512])
def test_rows_load_with_datasets(corpus: Path, length: int) -> None:
    from datasets import load_from_disk

    splits = {split: load_from_disk(str(corpus / f"rows-{length}" / split)) for split in ("train", "heldout")}
    for rows in splits.values():
        assert {k: v.feature.dtype for k, v in rows.features.items()} == {
            "input_ids": "uint16",
            "token_type_ids": "uint8",
            "word_starts": "bool",
        }
        assert len(rows) > 0
        for row in rows:
            size = len(row["input_ids"])
            assert 3 <= size <= length
            assert len(row["token_type_ids"]) == len(row["word_starts"]) == size
            assert (row["input_ids"][0], row["input_ids"][-1]) == (101, 102)
            assert row["word_starts"][0]
            assert row["word_starts"][-1]
    assert len(splits["heldout"]) < len(splits["train"])


def test_manifest_and_reports(corpus: Path) -> None:
    manifest = verify_manifest(corpus, stage="corpus.build")
    assert manifest["counts"]["totals"]["documents_in"] == 3 * 42
    assert manifest["counts"]["totals"]["rejected"] == 3
    assert manifest["counts"]["totals"]["duplicate"] == 3
    assert "near_duplicate" not in manifest["counts"]["totals"]
    assert manifest["counts"]["rules"]["too_short.rejected"] == 3
    assert manifest["files"]["documents/00000.parquet"]["rows"] == 40
    assert [entry["name"] for entry in manifest["inputs"]] == [f"part{i}.jsonl.gz" for i in range(3)]
    assert (corpus / "vocab.txt").stat().st_size == 109540
    text = (corpus / "report.md").read_text(encoding="utf-8")
    assert "| near duplicates | 120 · 95.24 % |" in text
    page = (corpus / "report.html").read_text(encoding="utf-8")
    assert not re.search("""(?:src|href)=["'][^#]|url\\(|@import""", page)


def test_few_documents_make_few_files(corpus: Path) -> None:
    """Case 35."""
    assert len(list((corpus / "rows-128").rglob("*.arrow"))) <= 4


def test_nothing_hidden_is_left(corpus: Path) -> None:
    assert {p.name for p in corpus.iterdir() if p.name.startswith(".")} <= {".lock"}


# --- the same bytes -------------------------------------------------------------------------------


def hashes(folder: Path) -> dict[str, str]:
    return {name: entry["sha256"] for name, entry in verify_manifest(folder)["files"].items()}


def test_workers_change_nothing(inputs: list[str], corpus: Path, tmp_path: Path) -> None:
    done = run(inputs, tmp_path / "two", "--workers", "2", "--length", "both")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'two'}\n"
    # no terminal: a line for each step, then what came out
    lines = done.stderr.split("\n")
    assert [line.split(",")[0] for line in lines[:7]] == [
        "read: 3 of 3 shards",
        "clean: 3 of 3 shards",
        "recurring: 1 of 1 shards",
        "sign: 3 of 3 shards",
        "match: 17 of 17 shards",
        "keep: 1 of 1 shards",
        "pack: 3 of 3 shards",
    ]
    assert "120 of 126 documents" in lines[7]
    assert lines[8:] == [f"report: {tmp_path / 'two' / 'report.html'}", ""]
    assert hashes(tmp_path / "two") == hashes(corpus)


@pytest.mark.parametrize(
    ("step", "workers"), [("clean", "2"), ("recurring", "1"), ("sign", "1"), ("match", "2"), ("keep", "1")]
)
def test_killed_run_is_taken_up_again(
    inputs: list[str], corpus: Path, tmp_path: Path, step: str, workers: str
) -> None:
    out = tmp_path / "killed"
    process = subprocess.Popen(
        command(inputs, out, "--length", "both", "--workers", workers),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 600
    while not list(out.glob(f".work/*/*/logs/{step}/completions/*")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "manifest.json").exists()
    before = {p: p.stat().st_mtime_ns for p in out.glob(".work/*/*/raw/*/*.parquet")}
    assert before
    build.build(replace(options(inputs, out, length="both"), runtime=replace(QUIET, keep_work=True)))
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert hashes(out) == hashes(corpus)


def test_work_is_kept_where_a_worker_died(
    inputs: list[str], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unlike after a mistake in the input, the same command goes on from there."""
    run_step = build.run_step

    def die(name: str, *arguments: Any) -> None:
        if name == "match":
            raise WorkerError("step match: a worker process died")
        run_step(name, *arguments)

    monkeypatch.setattr(build, "run_step", die)
    chosen = options(inputs, tmp_path / "out", length="both")
    with pytest.raises(WorkerError):
        build.build(chosen)
    monkeypatch.undo()
    signed = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").glob(".work/*/*/signed/*.parquet")}
    assert len(signed) == 3
    build.build(replace(chosen, runtime=replace(QUIET, keep_work=True)))
    assert {p: p.stat().st_mtime_ns for p in signed} == signed
    assert hashes(tmp_path / "out") == hashes(corpus)


def test_finished_corpus_is_reused(
    inputs: list[str], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (corpus / "manifest.json").stat().st_mtime_ns
    assert build.build(options(inputs, corpus, length="both")) == corpus
    assert "reused" in capsys.readouterr().err
    assert (corpus / "manifest.json").stat().st_mtime_ns == before


def test_manifest_can_be_replayed(inputs: list[str], corpus: Path, tmp_path: Path) -> None:
    parsed = parse(["--from", str(corpus / "manifest.json"), "--out", "elsewhere"])
    assert parsed.config == options(inputs, corpus, length="both").config
    assert list(parsed.inputs) == inputs
    assert parse(["b.txt", "--from", str(corpus), "--seed", "3"]).inputs == ("b.txt",)
    write_manifest(tmp_path, stage="pretrain.train", config={"shape": 1})
    with pytest.raises(UserError, match="not the manifest of a corpus"):
        parse(["--from", str(tmp_path)])


@pytest.mark.parametrize(
    ("part", "entry"),
    [
        ("config", {"min_han": "9"}),
        ("config", {"min_han": True}),
        ("config", {"length": "7"}),
        ("config", {"length": [128, "7"]}),
        ("config", {"weights": [1]}),
        ("config", {"weights": "a=1"}),
        ("config", {"convert": None}),
        ("config", {"shape": 1}),
        ("runtime", {"inputs": "a.txt"}),
        ("runtime", {"inputs": [None]}),
        ("runtime", {"benchmarks": 5}),
    ],
)
def test_edited_manifest_is_not_replayed(
    corpus: Path, tmp_path: Path, part: str, entry: dict[str, Any]
) -> None:
    manifest = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))
    manifest[part].update(entry)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json is not the manifest of a corpus of this version"):
        parse(["--from", str(tmp_path / "manifest.json")])


def test_argument_that_is_not_utf8() -> None:
    """It could not stand in a manifest."""
    with pytest.raises(UserError, match="is not UTF-8; rename"):
        parse(["a.txt", "--out", "\udcff"])


# --- settings -------------------------------------------------------------------------------------


def test_rows_of_any_lengths(inputs: list[str], tmp_path: Path) -> None:
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


def test_weights(inputs: list[str], tmp_path: Path) -> None:
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


def test_held_out_documents_are_not_repeated(inputs: list[str], tmp_path: Path) -> None:
    weights = ("part0=3", "part1=3", "part2=3")
    counts = [
        read_manifest(build.build(options(inputs, tmp_path / name, held_out=0.2, weights=chosen)))["counts"]
        for name, chosen in (("once", ()), ("thrice", weights))
    ]
    once, thrice = (c["packed"]["rows"]["128"] for c in counts)
    assert once["rows_heldout"] == thrice["rows_heldout"] > 0
    assert thrice["rows_train"] > 2.5 * once["rows_train"]


def test_a_weight_for_no_source_is_a_mistake(inputs: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="part9, which no document has; there are: part0, part1, part2"):
        build.build(options(inputs, tmp_path / "out", weights=("part9=2",)))
    assert not (tmp_path / "out").exists()


def test_small_corpus_still_holds_out_a_document(tmp_path: Path) -> None:
    documents = [{"id": str(i), "text": text_of(i)} for i in range(4)]
    source = write_lines(tmp_path / "few.jsonl.gz", documents)
    out = build.build(options([str(source)], tmp_path / "out", held_out=0.0001))
    groups: Counter[str] = Counter()
    for group in read_manifest(out)["counts"]["packed"]["groups"].values():
        groups.update(group)
    assert (groups["documents"], groups["held_out"]) == (4, 1)


def test_conversion_is_recorded(tmp_path: Path) -> None:
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


def test_conversion_leaves_alone_what_wikitext_fixes(tmp_path: Path) -> None:
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


def test_benchmark_overlap_is_reported_and_can_be_dropped(tmp_path: Path) -> None:
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


def test_near_duplicates_and_recurring_lines(tmp_path: Path) -> None:
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


# --- real input -----------------------------------------------------------------------------------

MARKUP = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|-\{|\}-|\{\||\|\}|'''|&(?:nbsp|amp|lt|gt|quot);|</?(?:ref|div|span|p|br|a)\b"
)
EMPTY = re.compile(r"（[，；、 ]*）|《》|「」|“”")
UNSEEN = re.compile(r"[\u200b\ufeff\u00a0\u3000\ufffd]|  |\n\n")


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "read", "kept"),
    [
        ("wiki/zhwiki-sample-pages-articles.xml.bz2", 9, 8),  # one is a disambiguation page
        ("web/pages.warc.gz", 24, 22),  # two are lists of links without text of their own
    ],
)
def test_real_input_leaves_no_markup(
    real_data: Path, tmp_path: Path, name: str, read: int, kept: int
) -> None:
    out = build.build(options([str(real_data / name)], tmp_path / "out"))
    counts = read_manifest(out)["counts"]
    skipped = sum(counts["skipped"].get(f"skipped: {reason}", 0) for reason in ("empty", "disambiguation"))
    assert counts["totals"]["documents_in"] + skipped == read
    texts = pq.read_table(out / "documents")["text"].to_pylist()
    assert kept <= len(texts) <= read
    for text in texts:
        for pattern in (MARKUP, EMPTY, UNSEEN):
            assert not (found := pattern.search(text)), found
    assert counts["totals"]["cleaned_han"] > 0.9 * counts["totals"]["han_in"]


# --- mistakes -------------------------------------------------------------------------------------


def expect_mistake(inputs: list[str], out: Path, message: str, *more: str) -> None:
    """One sentence, exit status 1, nothing left behind."""
    existed = out.exists()
    done = run(inputs, out, "--no-progress", *more)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert out.exists() == existed


def test_missing_input(tmp_path: Path) -> None:
    expect_mistake(["none.jsonl"], tmp_path / "out", "none.jsonl")


def test_damage_that_shows_late(inputs: list[str], tmp_path: Path) -> None:
    whole = Path(inputs[0]).read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-20])
    expect_mistake(
        [str(tmp_path / "cut.jsonl.gz"), inputs[1]], tmp_path / "out", "cut.jsonl.gz", "--workers", "2"
    )


def test_no_document_passes(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "english.jsonl.gz", [{"id": "a", "text": "no Chinese here"}])
    expect_mistake([str(source)], tmp_path / "out", "no document passed")


def test_foreign_folder_is_refused(inputs: list[str], tmp_path: Path) -> None:
    """Case 34: nothing is deleted without --overwrite, and files of others never."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="--overwrite"):
        build.build(options(inputs[:1], tmp_path))
    out = build.build(replace(options(inputs[:1], tmp_path), overwrite=True))
    assert (out / "notes.txt").read_text() == "mine"
    with pytest.raises(UserError, match="--overwrite"):
        build.build(options(inputs[:1], tmp_path, seed=2))


def test_held_folder_is_refused(inputs: list[str], tmp_path: Path) -> None:
    with hold(tmp_path / "out"), pytest.raises(UserError, match="held by another run"):
        build.build(options(inputs[:1], tmp_path / "out"))
    assert (tmp_path / "out").is_dir()


@pytest.mark.parametrize(
    "entry", ["history", "history=0", "history=-1", "history=x", "=0.5", "history=1e7", "a=nan"]
)
def test_bad_weight(entry: str) -> None:
    with pytest.raises(UserError, match="SOURCE=WEIGHT"):
        check_config(replace(PRESETS["web"], weights=(entry,)))


def test_two_weights_for_a_source() -> None:
    with pytest.raises(UserError, match="twice"):
        check_config(replace(PRESETS["web"], weights=("a=2", "a=3")))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"min_similarity": 1.1}, "--min-similarity 1.1 is not a share"),
        ({"max_kana_share": -0.1}, "--max-kana-share -0.1 is not a share"),
        ({"held_out": float("nan")}, "--held-out nan is not a share"),
        ({"held_out": 1.0}, "no document to train on"),
        ({"recurring_lines": -1}, "--recurring-lines -1 is not a number from 0 to"),
        ({"min_han": 10**20}, "--min-han 1(0+) is not a number from 0 to 2147483647"),
        ({"text_key": ""}, "--text-key is empty"),
        ({"blocklist": "/dev/zero"}, "--blocklist /dev/zero is no file"),
        ({"blocklist": ""}, "--blocklist '' is no file"),
        ({"min_fragment": 129}, "more than a row of 128 tokens"),
        ({"min_fragment": 513, "length": (512,)}, "more than a row of 512 tokens"),
        ({"length": (128, 7)}, "--length 7 is not a number of tokens from 8 to 4096"),
        ({"length": ()}, "--length names no number"),
    ],
)
def test_settings_that_make_no_sense(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_config(replace(PRESETS["web"], **setting))


def test_presets_make_sense() -> None:
    for preset in PRESETS.values():
        check_config(preset)
        check_config(replace(preset, seed=-1, min_fragment=128))


def test_usage_error_exits_2(tmp_path: Path) -> None:
    done = run([], tmp_path / "out", "--lenght", "128")
    assert done.returncode == 2


def test_what_cannot_be_built_says_why(tmp_path, capsys):
    export = tmp_path / "only-redirects.xml"
    head = "<title>甲</title><ns>0</ns><id>1</id><redirect title='乙' />"
    page = f"<page>{head}<revision><text>x</text></revision></page>"
    export.write_text(f"<mediawiki>{page}</mediawiki>", encoding="utf-8")
    out = ["--out", str(tmp_path / "out"), "--no-progress"]
    with pytest.raises(UserError, match=r"no document \(left out: redirect 1\)"):
        build.build(build.parse([str(export), *out]))
    with pytest.raises(UserError, match="--workers 0 is no number"):
        build.build(build.parse([str(export), *out, "--workers", "0"]))
    with pytest.raises(UserError, match="missing is no folder"):
        build.build(build.parse([str(export), *out, "--benchmarks", str(tmp_path / "missing")]))
