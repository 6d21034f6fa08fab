"""Large inputs in parts: the documents of the parts are those of the whole, whatever the size of a part."""

import bz2
import random

import pyarrow
import pyarrow.parquet
import pytest

from corpus.config import CorpusConfig
from corpus.inputs import sources
from corpus.inputs.compression import stream_starts
from corpus.inputs.documents import Part
from corpus.inputs.sources import parts_of, plan, read_documents
from provenance import UserError


def pages(count, longest=400):
    """``<page>`` elements of different sizes."""
    draw = random.Random(0)

    def text():
        return "".join(draw.choices("甲乙丙丁戊&", k=draw.randrange(longest))).replace("&", "&lt;page&gt;")

    return [
        f"  <page>\n<title>题{n}</title><ns>0</ns><id>{n}</id><revision><text>第{n}页{text()}"
        "</text></revision></page>\n"
        for n in range(count)
    ]


HEAD, TAIL = "<mediawiki>\n<siteinfo/>\n", "</mediawiki>\n"


def multistream(bodies, per_stream):
    """A dump as Wikimedia makes them, and the offsets that its index would have."""
    groups = [bodies[i : i + per_stream] for i in range(0, len(bodies), per_stream)]
    streams = [bz2.compress("".join(group).encode()) for group in [[HEAD], *groups, [TAIL]]]
    offsets, offset = [], 0
    for stream in streams:
        offsets.append(offset)
        offset += len(stream)
    return b"".join(streams), offsets[1:-1]


def check(path, monkeypatch, sizes, config=None):
    config = config or CorpusConfig()
    whole = list(read_documents(Part(path), config))
    counts = []
    for size in sizes:
        monkeypatch.setattr(sources, "PART", size)
        parts = parts_of(path, config)
        assert [document for part in parts for document in read_documents(part, config)] == whole
        counts.append(len(parts))
    return whole, counts


def test_multistream(tmp_path, monkeypatch):
    data, offsets = multistream(pages(200), 10)
    path = tmp_path / "zhwiki-pages-articles-multistream.xml.bz2"
    path.write_bytes(data)
    documents, counts = check(path, monkeypatch, [1, 3000, len(data) // 2, len(data)])
    assert len(documents) == 200
    assert counts[0] == 22  # every stream, the first and the last one among them
    assert counts[2:] == [2, 1]
    # what is found are the places that the index has, and the stream that closes the dump
    assert stream_starts(path, 1)[:-1] == offsets


def test_streams_cut_anywhere(tmp_path, monkeypatch):
    """Parallel bzip2 programs cut pages, tags and characters."""
    data = (HEAD + "".join(pages(60)) + TAIL).encode()
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(b"".join(bz2.compress(data[i : i + 997]) for i in range(0, len(data), 997)))
    documents, counts = check(path, monkeypatch, [1, 2000, 5000])
    assert [document.id for document in documents] == [f"wiki/{n}" for n in range(60)]
    assert counts[0] == len(range(0, len(data), 997))


def test_magic_that_begins_no_stream(tmp_path):
    """The ten bytes inside a block, as an attacker can put them there, are no place to cut."""
    random_bytes = random.Random(1).randbytes(2000)
    stream = bz2.compress(random_bytes)
    fake = stream[:100] + b"BZh91AY&SY" + stream[110:]
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(fake + stream)
    assert stream_starts(path, 1) == [len(fake)]


def test_one_stream_is_one_part(tmp_path, monkeypatch):
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(bz2.compress((HEAD + "".join(pages(100)) + TAIL).encode()))
    assert check(path, monkeypatch, [100])[1] == [1]


def test_plain_export_at_every_byte(tmp_path, monkeypatch):
    data = (HEAD + "".join(pages(3, 30)) + TAIL).encode()
    path = tmp_path / "a.xml"
    path.write_bytes(data)
    whole = list(read_documents(path))
    for cut in range(1, len(data)):
        halves = [Part(path, 0, cut), Part(path, cut)]
        assert [document for part in halves for document in read_documents(part)] == whole
    check(path, monkeypatch, [1, 7, 50, 300])


@pytest.mark.parametrize("packed", [False, True])
def test_cut_export_in_parts(tmp_path, monkeypatch, packed):
    """An export that ends too early is found out by the part that has its end."""
    bodies = pages(40)
    for keep in (30, 31):
        text = HEAD + "".join(bodies[:keep]) + ("" if keep == 30 else bodies[31][:40])
        data = text.encode()
        path = tmp_path / ("a.xml.bz2" if packed else "a.xml")
        cut = [data[:2000], data[2000:]]
        path.write_bytes(b"".join(map(bz2.compress, cut)) if packed else data)
        monkeypatch.setattr(sources, "PART", 100)
        parts = parts_of(path, CorpusConfig())
        assert len(parts) > 1
        with pytest.raises(UserError, match=r"a\.xml.* ends in the middle"):
            for part in parts:
                list(read_documents(part))


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("a.jsonl", CorpusConfig()),
        ("a.txt", CorpusConfig()),
        ("a.txt", CorpusConfig(text_documents="line")),
        ("a.txt", CorpusConfig(text_documents="file")),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030"])
def test_lines(tmp_path, monkeypatch, name, config, encoding):
    """Ids are those of the whole file: numbers of lines, and of documents between blank lines."""
    draw = random.Random(2)
    lines = []
    for n in range(300):
        text = "的一是不了在人有我他" + "甲" * draw.randrange(30) + str(n)
        lines.append(f'{{"text": "{text}"}}' if name == "a.jsonl" else text)
        if draw.random() < 0.3:
            lines += draw.choice([[""], ["", " "], ["\u3000"], ["\r"]])
    path = tmp_path / name
    path.write_bytes("\n".join(lines).encode(encoding))
    documents, counts = check(path, monkeypatch, [100, 300, 1000, 5000], config)
    if config.text_documents == "file":
        assert counts == [1] * 4
    else:
        assert len({document.id for document in documents}) == len(documents) > 50
        assert counts[0] > counts[1] > counts[2] > counts[3] > 1


def test_errors_name_the_line_of_the_whole_file(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "甲"}\n' * 50 + "甲\n", encoding="utf-8")
    monkeypatch.setattr(sources, "PART", 100)
    with pytest.raises(UserError, match="line 51 is not JSON"):
        list(read_documents(parts_of(path, CorpusConfig())[-1]))


def test_row_groups(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"text": [f"甲{n}" for n in range(1000)]})
    pyarrow.parquet.write_table(table, path, row_group_size=90)
    documents, counts = check(path, monkeypatch, [1, 2000])
    assert counts[0] == 12
    assert 1 < counts[1] < 12
    assert documents[999].id == "a/1000"


def test_small_files_share_ranks(tmp_path):
    """Ten thousand pages are no ten thousand ranks; three files are three."""
    paths = [tmp_path / f"{n:05d}.txt" for n in range(1500)]
    for path in paths:
        path.write_text("甲" * 10, encoding="utf-8")
    ranks = plan(paths, CorpusConfig())
    assert len(ranks) <= 2 * 256
    assert [part.path for rank in ranks for part in rank] == paths
    assert [len(rank) for rank in plan(paths[:3], CorpusConfig())] == [1, 1, 1]
