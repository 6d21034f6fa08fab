"""The Chinese Wikipedia's dump: its newest date, its published sha1, its file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from corpus.inputs.download import download
from provenance import UserError

MIRROR = "https://dumps.wikimedia.org"
_FILE = re.compile(
    r"^([0-9a-f]{40})\s+\*?(zhwiki-(\d{8})-pages-articles-multistream\.xml\.bz2)$", re.MULTILINE
)
NAMES = "zhwiki-*-pages-articles-multistream.xml.bz2"


def fetch_dump(folder: Path, date: str = "latest", mirror: str = MIRROR, progress: bool = True) -> Path:
    """The dump of ``date`` in ``folder``, downloaded if it is not there.

    A file gets its name only once its sha1 is the one that Wikimedia publishes, so one that lies there is
    whole; for ``latest`` the newest that lies there is taken, without a look at the network.

    Args:
        folder: for downloads; what arrived before a cut is continued.
        date: YYYYMMDD, or latest.
        mirror: server with Wikimedia's layout of folders.

    Raises:
        UserError: the date is none, the server cannot be reached, or publishes no such dump.
    """
    if date != "latest" and not re.fullmatch(r"\d{8}", date):
        raise UserError(f"--dump {date} is no date such as 20260901, nor latest")
    there = sorted(folder.glob(NAMES if date == "latest" else NAMES.replace("*", date)))
    if there:
        print(f"dump {there[-1].name} lies there already: used", file=sys.stderr)
        return there[-1]
    address = f"{mirror.rstrip('/')}/zhwiki/{date}/zhwiki-{date}-sha1sums.txt"
    listed = download(address, folder / address.rsplit("/", 1)[1], progress=False)
    sums = listed.read_text(encoding="utf-8")
    listed.unlink()  # the next latest is another
    found = _FILE.search(sums)
    if found is None:
        raise UserError(f"{address} lists no {NAMES}; name another date with --dump")
    sha1, name, day = found.groups()
    return download(f"{mirror.rstrip('/')}/zhwiki/{day}/{name}", folder / name, sha1=sha1, progress=progress)
