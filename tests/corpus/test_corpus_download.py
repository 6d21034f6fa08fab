"""Downloads against a loopback server: resume, cuts, stale parts, wrong hashes, no network."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from corpus.inputs import download as module
from corpus.inputs.download import download
from provenance import UserError

BODY = bytes(range(256)) * 4096  # 1 MiB
SHA256 = hashlib.sha256(BODY).hexdigest()


@dataclass
class Server:
    """What the loopback server does, and what it was asked."""

    url: str = ""
    body: bytes = BODY
    etag: str = '"one"'
    ranges: bool = True
    cuts: list[int] = field(
        default_factory=list
    )  # body bytes sent before the connection is closed, per request
    statuses: list[int] = field(default_factory=list)  # statuses to answer first
    asked: list[str | None] = field(default_factory=list)  # Range header of each request


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            if state.statuses:
                self.send_error(state.statuses.pop(0))
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and state.ranges else 0
            if start >= len(state.body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(state.body)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(state.body) - 1}/{len(state.body)}")
            self.send_header("ETag", state.etag)
            self.send_header("Content-Length", str(len(state.body) - start))
            self.end_headers()
            rest = state.body[start:]
            self.wfile.write(rest[: state.cuts.pop(0)] if state.cuts else rest)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{http.server_port}/file.bin"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(module, "BACKOFF", (0.0, 0.0, 0.0))
    monkeypatch.setattr(module, "CHUNK", 1 << 14)
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_whole_file_verified_and_nothing_left_beside_it(server, tmp_path):
    path = download(
        server.url, tmp_path / "new" / "f", sha256=SHA256, sha1=hashlib.sha1(BODY).hexdigest(), size=len(BODY)
    )
    assert path.read_bytes() == BODY
    assert names(tmp_path / "new") == ["f"]


def test_file_that_is_there_and_verifies_is_not_asked_for(server, tmp_path):
    (tmp_path / "f").write_bytes(BODY)
    download(server.url, tmp_path / "f", sha256=SHA256)
    assert server.asked == []


def test_file_that_is_there_and_differs_is_replaced(server, tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    download(server.url, tmp_path / "f", sha256=SHA256)
    assert (tmp_path / "f").read_bytes() == BODY


def test_cut_connection_is_continued_where_it_stopped(server, tmp_path):
    server.cuts = [300_000, 300_000]
    download(server.url, tmp_path / "f", sha256=SHA256)
    assert (tmp_path / "f").read_bytes() == BODY
    starts = [int(r.removeprefix("bytes=").rstrip("-")) if r else 0 for r in server.asked]
    assert starts[0] == 0
    assert 0 < starts[1] <= 300_000 < starts[2] <= 600_000


def test_cut_connection_without_range_starts_over(server, tmp_path):
    server.ranges, server.cuts = False, [300_000]
    download(server.url, tmp_path / "f", sha256=SHA256)
    assert (tmp_path / "f").read_bytes() == BODY


def test_endless_cuts_at_one_place_end_with_a_sentence_and_keep_the_part(server, tmp_path):
    server.ranges, server.cuts = False, [300_000] * 50
    with pytest.raises(UserError, match=r"file\.bin could not be downloaded .*what arrived is kept"):
        download(server.url, tmp_path / "f", sha256=SHA256)
    assert names(tmp_path) == ["f.part", "f.part.tag"]
    assert len(server.asked) == 4
    server.ranges, server.cuts = True, []
    download(server.url, tmp_path / "f", sha256=SHA256)  # the next run continues it
    assert server.asked[-1] is not None
    assert (tmp_path / "f").read_bytes() == BODY
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("known", [{"sha256": SHA256}, {}])
def test_part_of_another_version_is_dropped(server, tmp_path, known):
    server.cuts, server.etag = [300_000] * 50, '"zero"'
    server.ranges, server.body = False, b"x" * len(BODY)
    with pytest.raises(UserError):
        download(server.url, tmp_path / "f")
    server.cuts, server.etag, server.ranges, server.body = [], '"one"', True, BODY
    download(server.url, tmp_path / "f", **known)
    assert (tmp_path / "f").read_bytes() == BODY


def test_stale_part_that_the_server_cannot_tell_apart_is_found_by_the_hash(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"x" * 1000)
    (tmp_path / "f.part.tag").write_text(f'{server.url}\n"one"\n')
    download(server.url, tmp_path / "f", sha256=SHA256)
    assert (tmp_path / "f").read_bytes() == BODY
    assert server.asked == ["bytes=1000-", None]


@pytest.mark.parametrize("known", [{"size": len(BODY)}, {"sha256": SHA256}, {}])
def test_oversized_part_is_dropped(server, tmp_path, known):
    (tmp_path / "f.part").write_bytes(BODY + b"more")
    download(server.url, tmp_path / "f", **known)
    assert (tmp_path / "f").read_bytes() == BODY


def test_whole_part_is_verified_without_the_network(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY)
    download(server.url, tmp_path / "f", sha256=SHA256, size=len(BODY))
    assert server.asked == []
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize(
    "expected", [{"sha256": "0" * 64}, {"sha1": "0" * 40}, {"size": 5}], ids=["sha256", "sha1", "size"]
)
def test_another_file_than_expected_is_refused_and_removed(server, tmp_path, expected):
    with pytest.raises(UserError, match=r"file\.bin has .* in place of .*the file at the source changed"):
        download(server.url, tmp_path / "f", **expected)
    assert names(tmp_path) == []


def test_busy_server_is_asked_again(server, tmp_path):
    server.statuses = [503, 429]
    download(server.url, tmp_path / "f", sha256=SHA256)
    assert len(server.asked) == 3


def test_missing_page_is_one_sentence_at_once(server, tmp_path):
    server.statuses = [404]
    with pytest.raises(UserError, match="answers HTTP 404"):
        download(server.url, tmp_path / "f")
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_no_network_says_where_to_put_the_file(server, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UserError, match=r"no connection.*put the file at .*/f"):
        download(f"http://127.0.0.1:{port}/x", tmp_path / "f")
    assert names(tmp_path) == []


def test_address_that_is_none(tmp_path):
    with pytest.raises(UserError, match="not an http or https address"):
        download("ftp://example.org/x", tmp_path / "f")


def test_two_at_once_fetch_one_whole_file(server, tmp_path):
    threads = [
        threading.Thread(target=download, args=(server.url, tmp_path / "f"), kwargs={"sha256": SHA256})
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_bytes() == BODY
    assert names(tmp_path) == ["f"]
