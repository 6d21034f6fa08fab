"""The Wikipedia dump comes from the newest date that a server publishes, verified; the server is local."""

import functools
import hashlib
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from corpus.inputs.dump import fetch_dump
from provenance import UserError

DUMP = "zhwiki-20260901-pages-articles-multistream.xml.bz2"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path):
    """A folder and the address under which it is served."""
    root = tmp_path / "server"
    for date in ("latest", "20260901"):
        (root / "zhwiki" / date).mkdir(parents=True)
    http = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield root / "zhwiki", f"http://127.0.0.1:{http.server_port}/"
    http.shutdown()
    thread.join()
    http.server_close()


def publish(root, body: bytes, sha1: str) -> None:
    lines = [f"{'0' * 40}  zhwiki-20260901-pages-articles.xml.bz2", f"{sha1}  {DUMP}"]
    for date in ("latest", "20260901"):
        (root / date / f"zhwiki-{date}-sha1sums.txt").write_text("\n".join(lines) + "\n")
    (root / "20260901" / DUMP).write_bytes(body)


@pytest.mark.parametrize("date", ["latest", "20260901"])
def test_the_dump_of_a_date_is_fetched_and_verified(mirror, tmp_path, date):
    root, address = mirror
    publish(root, b"dump", hashlib.sha1(b"dump").hexdigest())
    path = fetch_dump(tmp_path / "downloads", date, address, progress=False)
    assert path == tmp_path / "downloads" / DUMP
    assert path.read_bytes() == b"dump"


def test_a_dump_that_lies_there_needs_no_network(tmp_path, capsys):
    (tmp_path / DUMP).write_bytes(b"dump")
    (tmp_path / DUMP.replace("20260901", "20260801")).write_bytes(b"older")
    assert fetch_dump(tmp_path, mirror="http://127.0.0.1:9") == tmp_path / DUMP
    assert DUMP in capsys.readouterr().err


def test_another_file_than_published_is_refused(mirror, tmp_path):
    root, address = mirror
    publish(root, b"changed", hashlib.sha1(b"dump").hexdigest())
    with pytest.raises(UserError, match="sha1"):
        fetch_dump(tmp_path / "downloads", "latest", address, progress=False)
    assert not list((tmp_path / "downloads").glob("*.bz2"))


def test_a_date_that_is_none_or_holds_no_dump(mirror, tmp_path):
    root, address = mirror
    with pytest.raises(UserError, match="no date such as"):
        fetch_dump(tmp_path, "september", address)
    (root / "latest" / "zhwiki-latest-sha1sums.txt").write_text("nothing\n")
    with pytest.raises(UserError, match="lists no zhwiki"):
        fetch_dump(tmp_path, "latest", address)
    with pytest.raises(UserError, match="404"):
        fetch_dump(tmp_path, "20250101", address)
