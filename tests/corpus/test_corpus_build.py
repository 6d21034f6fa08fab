"""What a build writes, from inputs made by hand and from real ones (case 35)."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpus import build
from provenance import read_manifest, verify_manifest

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
    real_data: Path, tmp_path: Path, name: str, read: int, kept: int, options: Callable
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
