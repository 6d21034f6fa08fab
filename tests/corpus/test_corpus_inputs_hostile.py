"""Hostile input: refused or skipped, counted, and never more than a few hundred MB of memory."""

import bz2
import functools
import gzip
import io
import json
import lzma
import resource
import subprocess
import sys
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest
import zstandard

from corpus.config import CorpusConfig
from corpus.inputs import compression
from corpus.inputs.documents import MAX_DOCUMENT, Tally
from corpus.inputs.formats import lines
from corpus.inputs.sources import read_documents
from provenance import UserError

ROOT = Path(__file__).resolve().parents[2]
MB = 2**20


@functools.cache
def bomb(suffix, size, line=b""):
    """``size`` bytes that compress to next to nothing."""
    block = (line or b"a") * (MB // len(line or b"a"))
    count = size // len(block)
    if suffix == ".gz":
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9) as file:
            for _ in range(count):
                file.write(block)
        return buffer.getvalue()
    if suffix == ".zst":
        encoder = zstandard.ZstdCompressor().compressobj()
    else:
        encoder = bz2.BZ2Compressor() if suffix == ".bz2" else lzma.LZMACompressor(preset=0)
    return b"".join([encoder.compress(block) for _ in range(count)] + [encoder.flush()])


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.xml", "a.warc", "a.html", "a.parquet"])
def test_bombs(tmp_path, monkeypatch, name, suffix):
    """A file that expands as no text does is refused; here already behind 2 MB, so that the test is short."""
    monkeypatch.setattr(compression, "FREE", 2 * MB)
    head = {".xml": b"<mediawiki><page><title>", ".warc": b"WARC/1.0\r\nWARC-Type: "}.get(name[1:], b"")
    path = tmp_path / (name + suffix)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    path.write_bytes(pack[suffix](head) * bool(head) + bomb(suffix, 10 * MB))
    with pytest.raises(UserError, match=f"{name}.* expands to more than 250 times its size") as caught:
        list(read_documents(path))
    assert "\n" not in str(caught.value)


def test_xz_that_asks_for_memory(tmp_path):
    """A header of a few bytes may ask the decoder for a gigabyte."""
    data = bytearray(
        lzma.compress("甲".encode(), check=lzma.CHECK_CRC32, filters=[{"id": lzma.FILTER_LZMA2}])
    )
    # block header: size, flags, filter id, size of its properties, dictionary size (36: 1 GiB); check sum
    data[16] = 36
    data[20:24] = zlib.crc32(bytes(data[12:20])).to_bytes(4, "little")
    path = tmp_path / "a.txt.xz"
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"a\.txt\.xz.*[Mm]emory"):
        list(read_documents(path))


def test_lines_of_a_hundred_megabytes(tmp_path):
    """JSON lines: skipped and counted, since one bad row of a crawl must not end a build."""
    path = tmp_path / "a.jsonl"
    with open(path, "wb") as file:
        file.write('{"text": "甲"}\n{"text": "'.encode())
        for _ in range(100):
            file.write(b"a" * MB)
        file.write('"}\n{"text": "乙"}\n'.encode())
    tally = Tally()
    tracemalloc.start()
    assert [(d.id, d.text) for d in read_documents(path, tally=tally)] == [("a/1", "甲"), ("a/3", "乙")]
    assert tracemalloc.get_traced_memory()[1] < 3 * MAX_DOCUMENT
    tracemalloc.stop()
    assert tally.counts == {"documents": 2, "skipped: too large": 1}


@pytest.mark.parametrize("line", [b"a" * MB, b"a" * 99 + b"\n"])
@pytest.mark.parametrize("division", ["blank", "file"])
def test_text_that_is_not_divided(tmp_path, monkeypatch, line, division):
    """Text: an error, since what would be lost is the whole file, and an option reads it."""
    monkeypatch.setattr(lines, "MAX_DOCUMENT", MB)
    path = tmp_path / "a.txt"
    with open(path, "wb") as file:
        for _ in range(2 * MB // len(line)):
            file.write(line)
    with pytest.raises(UserError, match=r"a\.txt line \d+: a document of more than 1 MiB; .* blank lines"):
        list(read_documents(path, CorpusConfig(text_documents=division)))
    if line.endswith(b"\n"):
        config = CorpusConfig(text_documents="line")
        assert sum(1 for _ in read_documents(path, config)) == 2 * MB // len(line)


def test_json_nested_deeply(tmp_path):
    path = tmp_path / "a.jsonl"
    for deep in ("[" * 10**6, '{"text":' * 10**6):
        path.write_text(f'{{"text": "甲"}}\n{deep}\n', encoding="utf-8")
        with pytest.raises(UserError, match="line 2 is not JSON"):
            list(read_documents(path))


def test_json_number_of_a_million_digits(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "甲", "id": {"9" * 10**6}}}\n', encoding="utf-8")
    with pytest.raises(UserError, match="line 1 is not JSON"):
        list(read_documents(path))


XML = {
    "entities": (
        '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><mediawiki>&b;',
        "declares an XML entity",
    ),
    "depth": ("<mediawiki>" + "<a>" * 10**6, "nests elements over 100 deep"),
    "tag": ('<mediawiki><page><redirect title="' + "a" * 3 * MB, "has a tag that does not end"),
}


@pytest.mark.parametrize("name", XML)
def test_xml(tmp_path, name):
    content, message = XML[name]
    path = tmp_path / "a.xml"
    path.write_text(content, encoding="utf-8")
    started = time.process_time()
    with pytest.raises(UserError, match=message):
        list(read_documents(path))
    assert time.process_time() - started < 5


def test_page_without_an_end(tmp_path):
    """A page larger than any of the software's is skipped, and is not kept in memory."""

    def page(number, text):
        return (
            f"<page><title>甲</title><ns>0</ns><id>{number}</id><revision><text>".encode(),
            *text,
            b"</text></revision></page>",
        )

    path = tmp_path / "a.xml"
    with open(path, "wb") as file:
        file.write(b"<mediawiki>")
        for piece in (*page(1, ["乙".encode()]), *page(2, [b"a" * MB] * 60), *page(3, ["丙".encode()])):
            file.write(piece)
        file.write(b"</mediawiki>")
    tally = Tally()
    tracemalloc.start()
    assert [d.id for d in read_documents(path, tally=tally)] == ["wiki/1", "wiki/3"]
    assert tracemalloc.get_traced_memory()[1] < 3 * MAX_DOCUMENT
    tracemalloc.stop()
    assert tally.counts["skipped: too large"] == 1


def record(length, body=b"", kind="response", headers=""):
    return (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.example/\r\n{headers}"
        f"Content-Length: {length}\r\n\r\n".encode()
        + body
        + b"\r\n\r\n"
    )


@pytest.mark.parametrize("length", [10**15, 10**30, "9" * 10**5, -1, "x"])
def test_warc_lengths(tmp_path, length):
    """What a record claims to hold is not reserved; a length that is not there is a cut archive."""
    path = tmp_path / "a.warc"
    path.write_bytes(record(length, b"HTTP/1.1 200 OK\r\n\r\n<html>"))
    tracemalloc.start()
    with pytest.raises(UserError, match=r"a\.warc record 1 is"):
        list(read_documents(path))
    assert tracemalloc.get_traced_memory()[1] < 20 * MB
    tracemalloc.stop()


def test_warc_record_that_is_too_large(tmp_path):
    size = MAX_DOCUMENT + 5
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    inner = page + bomb(".gz", 2 * MAX_DOCUMENT)
    path = tmp_path / "a.warc"
    path.write_bytes(record(size, b"a" * size) + record(len(inner), inner))
    tally = Tally()
    assert list(read_documents(path, tally=tally)) == []
    assert tally.counts == {"records": 2, "skipped: too large": 2}


@pytest.mark.parametrize("tag", ["div", "b", "table><tr><td", "ul><li", "a", "font"])
def test_html_nested_deeply(tmp_path, tag):
    """A failed page at worst: no crash of the parser, no minutes."""
    path = tmp_path / "a.html"
    path.write_text(f"<html><body>{f'<{tag}>' * 20_000}甲", encoding="utf-8")
    program = (
        "import sys; from pathlib import Path; from corpus.inputs.sources import read_documents; "
        f"print(len(list(read_documents(Path({str(path)!r})))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() in ("0", "1")


def test_bytes_of_every_value(tmp_path):
    """Noise under every suffix is one sentence, or a page that failed."""
    noise = bytes(range(256)) * 200
    for name in ("a.xml", "a.warc", "a.wet", "a.jsonl", "a.txt", "a.parquet", "a.html"):
        for suffix in ("", ".gz", ".bz2", ".xz", ".zst"):
            path = tmp_path / (name + suffix)
            path.write_bytes(noise)
            if path.name == "a.html":
                assert len(list(read_documents(path))) <= 1
                continue
            with pytest.raises(UserError) as caught:
                list(read_documents(path))
            assert "\n" not in str(caught.value)


def test_text_with_lone_surrogates(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "甲\ud800", "id": "\udfff"}) + "\n", encoding="utf-8")
    [document] = read_documents(path)
    assert document.text == "甲\ud800"
