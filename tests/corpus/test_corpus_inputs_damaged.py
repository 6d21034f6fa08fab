"""Inputs that are damaged inside, hold odd values or have odd names."""

import bz2
import functools
import gzip
import os
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from corpus.inputs import compression
from corpus.inputs.documents import Tally
from corpus.inputs.sources import expand_inputs, read_documents
from provenance import UserError

TEXT = "他把旧书一本一本地擦干净，放回书架上。\n\n"


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_damage_is_not_taken_for_another_encoding(tmp_path, suffix):
    """An altered byte may show as text that is not UTF-8 long before the check sum behind it."""
    path = tmp_path / f"a.txt{suffix}"
    for number in range(20, 60):
        lines = "".join(f"{i}{TEXT}" for i in range(400)).encode()
        data = bytearray(
            {".gz": functools.partial(gzip.compress, mtime=0), ".bz2": bz2.compress}[suffix](lines)
        )
        data[-number] ^= 0xFF
        path.write_bytes(data)
        with pytest.raises(UserError, match=r"is damaged|is cut off"):
            list(read_documents(path))


def as_strings(data):
    """A Parquet column of strings of four of these bytes each."""
    count = len(data) // 4
    offsets = pyarrow.array(range(0, len(data) + 1, 4), pyarrow.int32()).buffers()[1]
    return pyarrow.Array.from_buffers(pyarrow.string(), count, [None, offsets, pyarrow.py_buffer(data)])


ODD = {
    "text that is not UTF-8": {"text": as_strings(b"\xff\xfe\xfd\xfc" * 3)},
    "an id that is not UTF-8": {"text": ["字"] * 3, "id": as_strings(b"\xff\xfe\xfd\xfc" * 3)},
    "a time zone": {"text": ["字"], "id": pyarrow.array([0], pyarrow.timestamp("s", tz="No/Where"))},
    "a year": {"text": ["字"], "id": pyarrow.array([10**15], pyarrow.timestamp("s"))},
}


@pytest.mark.parametrize("name", ODD)
def test_parquet_values_that_python_has_not(tmp_path, name):
    pyarrow.parquet.write_table(pyarrow.table(ODD[name]), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet in rows 1 to . is damaged") as caught:
        list(read_documents(tmp_path / "a.parquet"))
    assert "\n" not in str(caught.value)


def test_parquet_page_with_another_check_sum(tmp_path):
    path, column = tmp_path / "a.parquet", {"text": [TEXT.strip() * 9]}
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pyarrow.parquet.write_table(pyarrow.table(column), path, **options)
    path.write_bytes(path.read_bytes().replace("旧书".encode(), "新书".encode()))
    with pytest.raises(UserError, match=r"a\.parquet is damaged"):
        list(read_documents(path))


def test_errors_of_many_lines_become_one(tmp_path):
    error = compression.damaged(tmp_path / "a.parquet", OSError("one\ntwo \n" + "x" * 10_000))
    assert "one two" in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 600


def test_json_null_is_an_empty_text(tmp_path):
    """As a null in Parquet is; a key that is missing is a mistake."""
    (tmp_path / "a.jsonl").write_text('{"text": null}\n{"text": "字"}\n', encoding="utf-8")
    tally = Tally()
    assert [document.text for document in read_documents(tmp_path / "a.jsonl", tally=tally)] == ["字"]
    assert tally.counts["skipped: empty"] == 1


def test_json_that_is_one_list(tmp_path):
    (tmp_path / "a.json").write_text('[{"text": "字"}]', encoding="utf-8")
    with pytest.raises(UserError, match="line 1 is JSON, but no object; give one object a line"):
        list(read_documents(tmp_path / "a.json"))


def test_a_file_is_read_once_however_often_links_lead_to_it(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT, encoding="utf-8")
    (folder / "loop").symlink_to(folder)
    (tmp_path / "b.txt").symlink_to(folder / "a.txt")
    found = expand_inputs([f"{tmp_path}/**/*.txt", str(folder), f"{folder}/../folder/a.txt"])
    assert found == [tmp_path / "b.txt"]


def test_names_that_are_not_utf8(tmp_path):
    """They could not stand in a manifest."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    Path(path).write_text(TEXT, encoding="utf-8")
    with pytest.raises(UserError, match="is not UTF-8; rename it"):
        expand_inputs([str(tmp_path)])


def test_no_name_at_all():
    """It is not the working folder."""
    with pytest.raises(UserError, match="no input: '' names no file"):
        expand_inputs([""])
