"""Documents out of files: every format, what is skipped, and every kind of damage as one sentence."""

import bz2
import gzip
import io
import json
import tracemalloc

import pyarrow
import pyarrow.parquet
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from corpus.config import CorpusConfig
from corpus.inputs.documents import Document, Tally
from corpus.inputs.sources import expand_inputs, read_documents, validate_input
from provenance import UserError


def page(title, text, number=1, namespace=0, extra=""):
    return (
        f"<page><title>{title}</title><ns>{namespace}</ns><id>{number}</id>{extra}"
        f"<revision><id>{number}0</id><contributor><id>99</id></contributor><model>wikitext</model>"
        f"<text>{text}</text></revision></page>"
    )


def export(*pages):
    body = "\n".join(pages)
    return f'<mediawiki xmlns="x" xml:lang="zh"><siteinfo/>\n{body}\n</mediawiki>\n'.encode()


PAGES = (
    page("甲", "'''甲'''是-{zh-hans:软件;zh-hant:軟體}-。&amp;nbsp;A&amp;amp;B&lt;ref&gt;丙&lt;/ref&gt;", 7),
    page("乙", "這個程式是-{zh-hans:软件;zh-hant:軟體}-，與電腦有關。", 8),
    page("丙", "#重定向 [[甲]]", 9),
    page("丁", "旧名", 10, extra='<redirect title="甲" />'),
    page("模板:戊", "模板", 11, namespace=10),
    page("己", "{{空}}", 12),
)


def test_mediawiki(tmp_path):
    """Namespace 0 without redirects; the variant follows the page's own script; ids are the page ids."""
    path = tmp_path / "zhwiki.xml"
    path.write_bytes(export(*PAGES))
    tally = Tally()
    assert list(read_documents(path, tally=tally)) == [
        Document("wiki/7", "wiki", "甲", "甲是软件。\u00a0A&B"),
        Document("wiki/8", "wiki", "乙", "這個程式是軟體，與電腦有關。"),
    ]
    assert tally.counts == {
        "pages": 6,
        "documents": 2,
        "skipped: redirect": 2,
        "skipped: namespace": 1,
        "skipped: empty": 1,
    }


def test_mediawiki_compressed_and_multistream(tmp_path):
    data = export(*PAGES)
    (tmp_path / "a.xml.bz2").write_bytes(bz2.compress(data[:300]) + bz2.compress(data[300:]))
    (tmp_path / "b.xml.gz").write_bytes(gzip.compress(data[:300]) + gzip.compress(data[300:]))
    for name in ("a.xml.bz2", "b.xml.gz"):
        validate_input(tmp_path / name)
        assert [d.id for d in read_documents(tmp_path / name)] == ["wiki/7", "wiki/8"]


def test_mediawiki_constant_memory(tmp_path):
    path = tmp_path / "big.xml.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"<mediawiki>")
        for number in range(4000):
            file.write(page("甲", "文" * 1000, number).encode())
        file.write(b"</mediawiki>")
    next(read_documents(path))
    tracemalloc.start()
    assert sum(1 for _ in read_documents(path)) == 4000  # 12 MB of text
    assert tracemalloc.get_traced_memory()[1] < 3e6
    tracemalloc.stop()


def warc(*responses, gzipped=True):
    buffer = io.BytesIO()
    writer = WARCWriter(buffer, gzip=gzipped)
    writer.write_record(writer.create_warcinfo_record("a.warc", {"software": "test"}))
    for address, content_type, payload, status in responses:
        headers = [("Content-Type", content_type)] if content_type else []
        http = StatusAndHeaders(status, headers, protocol="HTTP/1.1")
        writer.write_record(
            writer.create_warc_record(address, "response", payload=io.BytesIO(payload), http_headers=http)
        )
    return buffer.getvalue()


ARTICLE = (
    "<html><head><title>题目</title></head><body><ul><li><a href=/>首页</a></li></ul>"
    + "".join(
        f"<p>第{n}段说的是城市里的河流，它从山中流出，经过许多桥，最后流进大海。</p>" for n in "一二三四五"
    )
    + "</body></html>"
)
RESPONSES = (
    ("http://a.example/1", "text/html; charset=gbk", ARTICLE.encode("gbk"), "200 OK"),
    ("http://a.example/2", "image/png", b"\x89PNG", "200 OK"),
    ("http://a.example/3", "text/html", ARTICLE.encode(), "404 Not Found"),
    ("http://a.example/4", "", ARTICLE.encode(), "200 OK"),
    ("http://a.example/5", "text/html", b"\xff\xfe\x00" * 5, "200 OK"),
)


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_warc(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(warc(*RESPONSES, gzipped=name.endswith(".gz")))
    validate_input(path)
    tally = Tally()
    documents = list(read_documents(path, tally=tally))
    counts = tally.counts
    assert [(d.id, d.source, d.title) for d in documents] == [
        ("http://a.example/1", "web", "题目"),
        ("http://a.example/4", "web", "题目"),
    ]
    assert documents[0].text.startswith("第一段说的是")
    assert documents[0].text.count("\n") == 4
    failed = counts.pop("skipped: failed page", 0) + counts.pop("skipped: empty", 0)
    assert failed == 1
    assert counts == {
        "records": 6,
        "pages": 3,
        "documents": 2,
        "skipped: not a response": 1,
        "skipped: not HTML": 1,
        "skipped: status": 1,
    }


@pytest.mark.parametrize("gzipped", [True, False])
def test_warc_cut_anywhere(tmp_path, gzipped):
    """A cut archive is an error that names file and record, not a shorter archive."""
    data = warc(RESPONSES[0], gzipped=gzipped)
    path = tmp_path / ("a.warc.gz" if gzipped else "a.warc")
    start = data.index(b"\x1f\x8b\x08" if gzipped else b"WARC/1.0", 10)  # of the second record
    whole = len(data) if gzipped else len(data) - 4  # after the payload only two empty lines follow
    for end in range(start + 1, whole, 7):
        path.write_bytes(data[:end])
        # 3: all of record 2 was there, only the end of its gzip member is missing
        with pytest.raises(UserError, match="record [23]" if gzipped else "record 2"):
            list(read_documents(path))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json.gz", "a.jsonl.bz2"])
def test_json_lines(tmp_path, name):
    lines = [
        '\ufeff{"text": "甲\u2028乙"}',
        "",
        '{"id": 5, "source": "s", "title": "t", "text": "丙"}',
        '{"text": ""}',
    ]
    data = "\n".join(lines).encode()
    compress = {"gz": gzip.compress, "z2": bz2.compress}.get(name[-2:], bytes)
    (tmp_path / name).write_bytes(compress(data))
    validate_input(tmp_path / name)
    assert list(read_documents(tmp_path / name)) == [
        Document("a/1", "a", "", "甲\u2028乙"),
        Document("5", "s", "t", "丙"),
    ]


def test_text_and_other_key(tmp_path):
    (tmp_path / "b.txt").write_bytes("\ufeff甲\r\n乙\r\n\r\n \n丙".encode())
    assert list(read_documents(tmp_path / "b.txt")) == [
        Document("b/1", "b", "", "甲\n乙"),
        Document("b/2", "b", "", "丙"),
    ]
    (tmp_path / "c.jsonl").write_text('{"content": "甲"}', encoding="utf-8")
    config = CorpusConfig(text_key="content")
    assert [d.text for d in read_documents(tmp_path / "c.jsonl", config)] == ["甲"]


def test_parquet(tmp_path):
    path = tmp_path / "d.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": ["x", None], "text": ["甲", "乙"], "n": [1, 2]}), path)
    validate_input(path)
    assert list(read_documents(path)) == [Document("x", "d", "", "甲"), Document("d/2", "d", "", "乙")]
    with pytest.raises(UserError, match='no column "body"'):
        list(read_documents(path, CorpusConfig(text_key="body")))


BAD = {
    "no-text.jsonl": (json.dumps({"text": "甲"}) + '\n{"id": 1}\n', "line 2 has no text"),
    "not-json.jsonl": ('{"text": "甲"}\n甲\n', "line 2 is not JSON"),
    "array.json": ("[\n1]", "line 1 is not JSON"),
    "gbk.txt": ("甲乙\n".encode() + "丙丁".encode("gbk"), "line 2 is not UTF-8"),
    "cut.jsonl.gz": (gzip.compress(b'{"text": "a"}\n' * 9)[:-9], "cut off"),
    "cut.xml.bz2": (bz2.compress(export(*PAGES))[:-20], "cut off"),
    "altered.xml.bz2": (b"BZh9" + bytes(50), "damaged"),
    "not.xml.gz": (export(*PAGES), "damaged"),
    "cut.xml": (export(*PAGES)[:-30], "ends in the middle"),
    "cut_in_a_tag.xml": (export(*PAGES)[:-3], "ends in the middle"),
    "cut_in_a_character.xml": (export(*PAGES).rpartition("空".encode())[0] + b"\xe7", "ends in the middle"),
    "control.xml": (export(page("甲", "字\b字")), r"is not XML \(not well-formed"),
    "gb2312.xml": (b'<?xml version="1.0" encoding="gb2312"?>' + export(*PAGES), "give an export in UTF-8"),
    "no_encoding.xml": (b'<?xml version="1.0" encoding="x-1"?>' + export(*PAGES), "export in UTF-8"),
    "rss.xml": ("<rss><channel/></rss>", "root is <rss>"),
    "entity.xml": ('<!DOCTYPE m [<!ENTITY a "b">]><mediawiki>&a;</mediawiki>', "declares an XML entity"),
    "notes.xml": ("甲乙丙", "is not XML"),
    "notes.warc": ("甲乙丙\n\n" * 5, "WARC"),
    "notes.parquet": ("甲乙丙", "notes.parquet"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    """One sentence that names the file (and the line where there are lines)."""
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message) as caught:
        list(read_documents(tmp_path / name))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["rss.xml", "notes.xml", "notes.warc", "notes.parquet", "altered.xml.bz2"])
def test_validate_input_sees_wrong_kinds(tmp_path, name):
    content = BAD[name][0]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=name):
        validate_input(tmp_path / name)


def test_validate_input_missing_and_empty(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        validate_input(tmp_path / "none.txt")
    (tmp_path / "empty.txt").touch()
    with pytest.raises(UserError, match="is empty"):
        validate_input(tmp_path / "empty.txt")


def test_expand_inputs(tmp_path):
    for name in ("b.jsonl.gz", "a.txt", "c.md", ".d.txt", "deep/e.xml.bz2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = expand_inputs([str(tmp_path), str(tmp_path / "*.txt"), str(tmp_path / "a.txt")])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "a.txt",
        "b.jsonl.gz",
        "deep/e.xml.bz2",
    ]
    with pytest.raises(UserError, match=r"c\.md is of no known format"):
        expand_inputs([str(tmp_path / "c.md")])
    with pytest.raises(UserError, match="names no file"):
        expand_inputs([str(tmp_path / "*.warc")])
