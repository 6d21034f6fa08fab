"""Inputs by format, compression and encoding: the same documents whatever a file is wrapped in."""

import bz2
import gzip
import io
import lzma
import shutil

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from corpus.config import CorpusConfig
from corpus.inputs.documents import Document, Tally, stem
from corpus.inputs.sources import expand_inputs, input_identity, parts_of, read_documents, validate_input
from provenance import UserError

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),  # as its program does
}
HANS = "我们在城市里的河流边上走了很久，看见许多人在说话。天色渐渐暗了，他们才回家去。"
HANT = "我們在城市裡的河流邊上走了很久，看見許多人在說話。天色漸漸暗了，他們才回家去。"


def parquet(rows):
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


def wet(*texts):
    records = []
    for number, text in enumerate(texts):
        body = text.encode()
        records.append(
            f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.example/{number}\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
            + b"\r\n\r\n"
        )
    return b"".join(records)


def page(text, title="甲"):
    return (
        f"<mediawiki><page><title>{title}</title><ns>0</ns><id>7</id><revision><model>wikitext</model>"
        f"<text>{text}</text></revision></page></mediawiki>"
    ).encode()


HTML = f"<html><head><title>题目</title></head><body>{f'<p>{HANS}</p>' * 3}</body></html>"
FORMATS = {
    "a.xml": (page("甲是字。"), "甲是字。"),
    "a.warc.wet": (wet("甲是字。"), "甲是字。"),
    "a.html": (HTML.encode(), HANS),
    "a.jsonl": ('{"text": "甲是字。"}\n'.encode(), "甲是字。"),
    "a.txt": ("甲是字。\n".encode(), "甲是字。"),
    "a.parquet": (parquet([{"text": "甲是字。"}]), "甲是字。"),
}


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_in_every_compression(tmp_path, name, suffix):
    content, text = FORMATS[name]
    path = tmp_path / (name + suffix)
    path.write_bytes(COMPRESS[suffix](content))
    assert expand_inputs([str(tmp_path)]) == [path]
    assert stem(path) == "a"
    validate_input(path)
    assert [document.text.split("\n")[0] for document in read_documents(path)] == [text]


@pytest.mark.parametrize("suffix", list(COMPRESS)[1:])
def test_streams_that_follow_one_another(tmp_path, suffix):
    lines = [f'{{"text": "甲{n}"}}\n'.encode() for n in range(100)]
    compress = COMPRESS[suffix]
    data = b"".join(compress(b"".join(lines[i : i + 10])) for i in range(0, 100, 10))
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(data + (b"\0" * 8 if suffix == ".xz" else b""))  # xz files may end in zeros
    assert [document.text for document in read_documents(path)] == [f"甲{n}" for n in range(100)]


@pytest.mark.parametrize("suffix", list(COMPRESS)[1:])
def test_damage_is_named_in_every_compression(tmp_path, suffix):
    """Cut, altered, and with a second stream that is none: never a shorter corpus without a word."""
    data = COMPRESS[suffix](b"".join(f'{{"text": "{n * 7919}"}}\n'.encode() for n in range(2000)))
    path = tmp_path / f"a.jsonl{suffix}"
    altered = bytearray(data)
    altered[len(data) // 2] ^= 0xFF
    for bad in (data[:-3], data[: len(data) // 2], bytes(altered), data + b"no stream"):
        path.write_bytes(bad)
        with pytest.raises(UserError, match=r"a\.jsonl.* (is cut off|is damaged)") as caught:
            list(read_documents(path))
        assert "\n" not in str(caught.value)


def test_wet(tmp_path):
    path = tmp_path / "a.warc.wet.gz"
    path.write_bytes(gzip.compress(wet("甲\n乙", "丙")))
    tally = Tally()
    assert list(read_documents(path, tally=tally)) == [
        Document("http://a.example/0", "web", "", "甲\n乙"),
        Document("http://a.example/1", "web", "", "丙"),
    ]
    assert tally.counts == {"records": 2, "documents": 2}


@pytest.mark.parametrize(("encoding", "option"), [("utf-8", "auto"), ("gbk", "auto"), ("gbk", "gb18030")])
def test_html_file(tmp_path, encoding, option):
    """The id has the folder's name: many pages are called index.html."""
    (tmp_path / "site").mkdir()
    path = tmp_path / "site" / "index.html"
    path.write_bytes(HTML.encode(encoding))
    [document] = read_documents(path, CorpusConfig(encoding=option))
    assert (document.id, document.source, document.title) == ("site/index", "web", "题目")
    assert document.text == "\n".join([HANS] * 3)


# --- encodings and text ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-8", HANS), ("utf-8-sig", HANT), ("gb18030", HANS + "𠮷"), ("gbk", HANS), ("big5", HANT)],
)
def test_encoding_is_recognised(tmp_path, encoding, text):
    lines = f"{text}\n\n{text}。\n"
    (tmp_path / "a.txt").write_bytes(lines.encode(encoding))
    assert [d.text for d in read_documents(tmp_path / "a.txt")] == [text, f"{text}。"]
    (tmp_path / "a.jsonl").write_bytes(f'{{"text": "{text}"}}\n'.encode(encoding))
    assert [d.text for d in read_documents(tmp_path / "a.jsonl")] == [text]


def test_encoding_can_be_given(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("丙丁".encode("big5"))  # too little to be recognised
    with pytest.raises(UserError, match=r"line 1 is not UTF-8 .*; give --encoding"):
        validate_input(path)
    config = CorpusConfig(encoding="big5")
    validate_input(path, config)
    assert [d.text for d in read_documents(path, config)] == ["丙丁"]
    path.write_bytes(HANS.encode("utf-16"))
    with pytest.raises(UserError, match="UTF-16"):
        validate_input(path)


@pytest.mark.parametrize(
    ("division", "expected"),
    [
        ("blank", [("a/1", "甲\n乙"), ("a/2", "丙")]),
        ("line", [("a/1", "甲"), ("a/2", "乙"), ("a/3", "丙")]),
        ("file", [("books/a", "\n甲\n乙\n\n丙")]),
    ],
)
def test_text_documents(tmp_path, division, expected):
    (tmp_path / "books").mkdir()
    path = tmp_path / "books" / "a.txt"
    path.write_text("\n甲\n乙\n\n丙\n", encoding="utf-8")
    documents = list(read_documents(path, CorpusConfig(text_documents=division)))
    assert [(d.id, d.text) for d in documents] == expected
    assert {d.source for d in documents} == {"books" if division == "file" else "a"}


def test_text_column_is_looked_for_before_the_build(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "甲"}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r'line 1 has no text under "text"; give --text-key'):
        validate_input(path)
    validate_input(path, CorpusConfig(text_key="content"))


# --- disambiguation -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title", "skipped"),
    [
        ("甲可以指：\n* 乙\n{{disambig}}", "甲", True),
        ("{{Disambiguation|人名}}", "甲", True),
        ("{{ 消歧义 }}", "甲", True),
        ("{{消歧義頁}}", "甲", True),
        ("{{Template:Hndis}}", "甲", True),
        ("{{geodis|中国}}", "甲", True),
        ("{{人名消歧义}}", "甲", True),
        ("甲可以指乙。", "甲 (消歧义)", True),
        ("甲可以指乙。", "甲（消歧義）", True),
        ("甲是[[乙]]{{需要消歧义}}的一种。", "甲", False),
        ("{{about|字|其他|甲 (消歧义)}}甲是字。", "甲", False),
        ("消歧义是写作的一步。", "消歧义", False),
    ],
)
def test_disambiguation_pages(tmp_path, text, title, skipped):
    path = tmp_path / "a.xml"
    path.write_bytes(page(text, title))
    tally = Tally()
    list(read_documents(path, tally=tally))
    assert tally.counts["skipped: disambiguation"] == skipped
    tally = Tally()
    list(read_documents(path, CorpusConfig(keep_disambiguation=True), tally))
    assert tally.counts["skipped: disambiguation"] == 0


def test_page_that_fails_is_counted_and_named(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RecursionError

    monkeypatch.setattr("corpus.inputs.formats.wiki.wikitext_to_text", fail)
    path = tmp_path / "a.xml"
    path.write_bytes(page("甲是字。"))
    tally = Tally()
    assert list(read_documents(path, tally=tally)) == []
    assert tally.counts == {"pages": 1, "skipped: failed page": 1}
    assert tally.failed == [Document("wiki/7", "wiki", "甲", "甲是字。")]


# --- what inputs are ------------------------------------------------------------------------------


def test_index_of_a_dump_is_no_text(tmp_path):
    for name in ("z-multistream.xml.bz2", "z-multistream-index.txt.bz2", "notes.txt"):
        (tmp_path / name).touch()
    assert [p.name for p in expand_inputs([str(tmp_path)])] == ["notes.txt", "z-multistream.xml.bz2"]
    assert [p.name for p in expand_inputs([str(tmp_path / "z*")])] == ["z-multistream.xml.bz2"]


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "poems"
    (folder / "data").mkdir(parents=True)
    for shard in range(2):
        rows = [{"text": f"诗{shard}{n}"} for n in range(3)]
        (folder / "data" / f"train-{shard}.parquet").write_bytes(parquet(rows))
    return folder


def test_dataset(dataset):
    """A folder stands for an id of the Hub: the same code reads both."""
    [source] = expand_inputs([f"datasets:{dataset}"])
    validate_input(source)
    parts = parts_of(source, CorpusConfig())
    assert len(parts) == 2
    documents = [document for part in parts for document in read_documents(part)]
    assert documents == list(read_documents(source))
    assert [(d.id, d.source) for d in documents[2:4]] == [("poems/0/3", "poems"), ("poems/1/1", "poems")]
    assert [d.text for d in documents] == [f"诗{shard}{n}" for shard in range(2) for n in range(3)]
    with pytest.raises(UserError, match='no column "body"'):
        validate_input(source, CorpusConfig(text_key="body"))


def test_dataset_is_pinned(dataset):
    before = input_identity(expand_inputs([f"datasets:{dataset}"])[0])
    assert before == input_identity(expand_inputs([f"datasets:{dataset}::train"])[0])
    shutil.copy(dataset / "data" / "train-0.parquet", dataset / "data" / "train-2.parquet")
    assert input_identity(expand_inputs([f"datasets:{dataset}"])[0]) != before


def test_dataset_without_a_network(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="datasets:a/b::train cannot be read") as caught:
        expand_inputs(["datasets:a/b"])
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="ORG/NAME"):
        expand_inputs(["datasets:a/b:c:d:e"])
