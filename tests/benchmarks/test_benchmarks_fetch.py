"""Fetching task files from a loopback server: archives, the Hub mirror, no network, what is there is kept."""

import dataclasses
import functools
import hashlib
import io
import re
import socket
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import fetch as module
from benchmarks import tasks
from benchmarks.fetch import address, extract, fetch, fetch_task
from benchmarks.readers import read_file
from benchmarks.task import File
from corpus.inputs import download
from provenance import UserError

PLAIN = b'{"data": []}\n'
DEV, TEST = b"a\tb\t1\n", b"c\td\t0\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """(folder that is served, its address, paths asked for)."""
    root, asked = tmp_path / "site", []
    root.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

    http = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=root))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(download, "BACKOFF", (0.0, 0.0))
    yield root, f"http://127.0.0.1:{http.server_port}", asked
    http.shutdown()
    thread.join()
    http.server_close()


def a_task(**files: File):
    """A made-up task in the form of a real one."""
    known = next(iter(tasks.TASKS.values()))
    return dataclasses.replace(known, name="made_up", title="Made Up", files=files, stand_in=None, apply="")


@pytest.fixture
def register(monkeypatch):
    """Make a task known to ``get_tasks``."""
    return lambda task: monkeypatch.setattr(tasks, "TASKS", {task.name: task}, raising=False)


def states(statuses):
    return {status.file.name: status.state for status in statuses}


def test_plain_files_and_archive_members_land_verified(site, tmp_path):
    root, url, asked = site
    (root / "train.json").write_bytes(PLAIN)
    (root / "all.zip").write_bytes(
        archive({"x/dev.tsv": DEV, "x/test.tsv": TEST, "__MACOSX/x/dev.tsv": b"junk"})
    )
    task = a_task(
        train=File("train.json", sha256=sha256(PLAIN), urls=(f"{url}/train.json",)),
        dev=File("dev.tsv", sha256=sha256(DEV), urls=(f"{url}/all.zip",), member="dev.tsv"),
        test=File("test.tsv", urls=(f"{url}/all.zip",), member="x/test.tsv"),
    )
    data = tmp_path / "data"
    statuses = fetch_task(task, data, module.HUB)
    assert states(statuses) == {"train.json": "fetched", "dev.tsv": "fetched", "test.tsv": "fetched"}
    assert [p.name for p in sorted((data / "made_up").iterdir())] == ["dev.tsv", "test.tsv", "train.json"]
    assert (data / "made_up" / "dev.tsv").read_bytes() == DEV
    assert asked == ["/train.json", "/all.zip"]  # one archive is asked for once
    again = states(fetch_task(task, data, module.HUB))
    assert again == {"train.json": "verified", "dev.tsv": "verified", "test.tsv": "there"}
    assert len(asked) == 2


def test_hub_files_come_from_the_endpoint(site, tmp_path, monkeypatch, register, capsys):
    root, url, asked = site
    folder = root / "datasets" / "someone" / "thing" / "resolve" / "v1" / "a b"
    folder.mkdir(parents=True)
    (folder / "train.json").write_bytes(PLAIN)
    register(
        a_task(
            train=File(
                "train.json", sha256=sha256(PLAIN), urls=("hf://datasets/someone/thing@v1/a b/train.json",)
            )
        )
    )
    monkeypatch.setenv("HF_ENDPOINT", url)
    fetch("made_up", tmp_path / "data")
    assert asked == ["/datasets/someone/thing/resolve/v1/a%20b/train.json"]
    assert (tmp_path / "data" / "made_up" / "train.json").read_bytes() == PLAIN
    assert "fetched" in capsys.readouterr().out


def test_addresses():
    assert address("https://x.org/a.zip", "http://mirror") == "https://x.org/a.zip"
    assert address("hf://datasets/o/n/f/g.tsv") == "https://huggingface.co/datasets/o/n/resolve/main/f/g.tsv"
    assert (
        address("hf://datasets/o/n/g.tsv", "http://mirror/")
        == "http://mirror/datasets/o/n/resolve/main/g.tsv"
    )


def test_second_address_is_tried_when_the_first_has_another_file(site, tmp_path):
    root, url, _ = site
    (root / "old.json").write_bytes(b"old")
    (root / "new.json").write_bytes(PLAIN)
    task = a_task(train=File("train.json", sha256=sha256(PLAIN), urls=(f"{url}/old.json", f"{url}/new.json")))
    assert states(fetch_task(task, tmp_path, module.HUB)) == {"train.json": "fetched"}
    assert (tmp_path / "made_up" / "train.json").read_bytes() == PLAIN


def test_a_file_of_the_users_own_is_kept(site, tmp_path, register, capsys):
    _, url, asked = site
    (tmp_path / "made_up").mkdir()
    (tmp_path / "made_up" / "train.json").write_bytes(b"mine")
    register(a_task(train=File("train.json", sha256=sha256(PLAIN), urls=(f"{url}/train.json",))))
    fetch("made_up", tmp_path)
    assert (tmp_path / "made_up" / "train.json").read_bytes() == b"mine"
    assert asked == []
    assert "not the published file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip at all", "is not a whole zip archive"),
        (archive({"other.tsv": DEV}), r"holds 0 files named dev\.tsv"),
        (archive({"a/dev.tsv": DEV, "b/dev.tsv": DEV}), r"holds 2 files named dev\.tsv"),
        (archive({"dev.tsv": b"another"}), "has sha256"),
    ],
)
def test_bad_archives_leave_nothing(site, tmp_path, content, message):
    root, url, _ = site
    (root / "all.zip").write_bytes(content)
    task = a_task(dev=File("dev.tsv", sha256=sha256(DEV), urls=(f"{url}/all.zip",), member="dev.tsv"))
    (status,) = fetch_task(task, tmp_path / "data", module.HUB)
    assert status.state == "missing"
    assert re.search(message, status.note)
    assert not (tmp_path / "data" / "made_up" / "dev.tsv").exists()


def test_an_archive_cannot_write_elsewhere(tmp_path):
    (tmp_path / "a.zip").write_bytes(archive({"../../evil/dev.tsv": DEV}))
    extract(tmp_path / "a.zip", "dev.tsv", tmp_path / "in" / "dev.tsv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip", "in"]


def test_damaged_member_is_refused(tmp_path):
    content = bytearray(archive({"dev.tsv": bytes(range(256)) * 40}))
    content[60] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(UserError, match="not a whole zip archive"):
        extract(tmp_path / "a.zip", "dev.tsv", tmp_path / "dev.tsv")
    assert not (tmp_path / "dev.tsv").exists()


def test_no_network_names_every_file_and_its_place(tmp_path, monkeypatch, register, capsys):
    monkeypatch.setattr(download, "BACKOFF", (0.0,))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    register(
        a_task(
            train=File("train.json", rows=5, sha256=sha256(PLAIN), urls=(f"{url}/train.json",)),
            dev=File("dev.tsv", urls=(f"{url}/all.zip",), member="x/dev.tsv"),
        )
    )
    with pytest.raises(UserError, match="2 of 2 files are not in place"):
        fetch("all", tmp_path)
    printed = capsys.readouterr().out
    for wanted in (
        f"put train.json at {tmp_path}/made_up/train.json (5 rows, sha256 {sha256(PLAIN)})",
        f"put dev.tsv at {tmp_path}/made_up/dev.tsv",
        f"{url}/all.zip could not be downloaded (no connection), in it x/dev.tsv",
    ):
        assert wanted in printed


def test_files_on_application_say_how_to_apply(tmp_path, capsys):
    """Every real task without an address says whom to ask, where the file goes and what columns it has."""
    on_application = [t for t in tasks.TASKS.values() if not any(f.urls for f in t.files.values())]
    assert on_application
    for task in on_application:
        with pytest.raises(UserError, match="not in place"):
            fetch(task.name, tmp_path)
        printed = capsys.readouterr().out
        assert task.apply
        assert task.apply in printed
        for file in task.files.values():
            assert (
                f"put {file.name} at {tmp_path}/{task.name}/{file.name} ({file.rows} rows, no header"
                in printed
            )


def test_every_real_file_has_an_address_or_a_way_to_apply():
    for task in tasks.TASKS.values():
        for file in task.files.values():
            assert file.urls or task.apply, (task.name, file.name)
            assert all(address(url).startswith("http") for url in file.urls)


@pytest.mark.real
def test_real_files_verify(real_data, tmp_path):
    """The real files carry the published hashes the task files state."""
    for task in tasks.TASKS.values():
        for file in task.files.values():
            status = module.check(task, file, real_data / "tasks" / task.name)
            if status is not None and file.sha256 is not None:
                assert status.state == "verified", (task.name, file.name)


def test_an_archive_that_lies_there_is_used(site, tmp_path):
    """Where the network is closed: HFL's zip, put beside the files; nothing is asked for."""
    _, url, asked = site
    folder = tmp_path / "made_up"
    folder.mkdir()
    (folder / "hfl.zip").write_bytes(archive({"../../evil/dev.tsv": DEV, "x/test.tsv": TEST}))
    (folder / "broken.zip").write_bytes(b"no zip")
    files = {
        name: File(f"{name}.tsv", sha256=sha256(known), urls=(f"{url}/all.zip",), member=f"{name}.tsv")
        for name, known in (("dev", DEV), ("test", b"other"))
    }
    statuses = fetch_task(a_task(**files), tmp_path, module.HUB)
    assert states(statuses) == {"dev.tsv": "fetched", "test.tsv": "differs"}
    assert (folder / "dev.tsv").read_bytes() == DEV
    assert asked == []
    assert sorted(p.name for p in tmp_path.rglob("*.tsv")) == ["dev.tsv", "test.tsv"]


def test_a_data_set_of_the_hub_becomes_files(tmp_path, capsys):
    """As `datasets` loads it, here from a folder; validation is dev, and the reader finds the files."""
    task = next(task for task in tasks.TASKS.values() if task.kind == "pair")
    folder = tmp_path / "owner"
    folder.mkdir()
    for split in ("train", "validation", "extra"):
        rows = [f'{{"text_a": "{split}{i}", "text_b": "乙", "label": "{task.labels[0]}"}}' for i in range(2)]
        rows.append(f'{{"text_a": "{split}2", "text_b": "丙", "label": "{task.labels[1]}"}}')
        (folder / f"{split}.jsonl").write_text("\n".join(rows), "utf-8")
    fetch(task.name, tmp_path / "data", dataset=str(folder))
    names = sorted(path.name for path in (tmp_path / "data" / task.name).iterdir())
    assert names == ["dev.parquet", "train.parquet"]
    assert "dev.parquet" in capsys.readouterr().out
    examples = read_file(task, tmp_path / "data" / task.name / "dev.parquet")
    assert [example.text_a for example in examples] == ["validation0", "validation1", "validation2"]
    with pytest.raises(UserError, match=r"train\.parquet is there already"):
        fetch(task.name, tmp_path / "data", dataset=str(folder))
    with pytest.raises(UserError, match="cannot be loaded as a data set"):
        fetch(task.name, tmp_path / "other", dataset=str(tmp_path / "nothing"))
