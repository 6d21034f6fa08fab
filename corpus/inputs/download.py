"""Download a file: resumed after a cut, verified, and under its name only when whole.

Bytes go to ``<path>.part``; ``<path>.part.tag`` beside it names the URL and the server's ETag, so that
a part of an older version is never continued with bytes of a newer one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from provenance import UserError

BACKOFF = (0.5, 1.0, 2.0, 4.0)  # seconds before the next try; a try that got further starts over
CHUNK = 1 << 18
RETRIED = {408, 425, 429, 500, 502, 503, 504}
HEADERS = {
    "User-Agent": "zh-electra/0.1 (corpus and benchmark downloads)",
    "Accept-Encoding": "identity",  # a range of a compressed stream would not be a range of the file
}


class _RetryError(Exception):
    """A failure that another try may mend; the message says what happened."""


def download(
    url: str,
    path: Path | str,
    *,
    sha256: str | None = None,
    sha1: str | None = None,
    size: int | None = None,
    timeout: float = 30,
    progress: bool = True,
) -> Path:
    """Fetch ``url`` to ``path`` and return ``path``; a file already there that verifies is kept.

    Args:
        url: http or https address; redirects are followed.
        path: the file to write; its folder is made.
        sha256: expected hex sha256, if known.
        sha1: expected hex sha1 (Wikimedia publishes these), if known.
        size: expected bytes, if known.
        timeout: seconds to wait for a connection and between two chunks.
        progress: show a bar on stderr, where that is a terminal.

    Raises:
        UserError: the address is wrong, cannot be reached, or yields another file than expected. What
            arrived of an interrupted file stays in ``<path>.part`` and the next call continues it.
    """
    path = Path(path)
    if not url.startswith(("http://", "https://")):
        raise UserError(
            f"{url!r} is not an http or https address; give one, or put the file at {path} yourself"
        )
    checks = {"sha256": sha256, "sha1": sha1}
    if path.is_file() and _mismatch(path, checks, size) is None:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked_part(path) as (part, file):
            if not (path.is_file() and _mismatch(path, checks, size) is None):  # another process was first
                _fetch_verified(url, path, part, file, checks, size, timeout, progress)
                os.replace(part, path)
            _tag_path(part).unlink(missing_ok=True)
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror or error}); free space or choose another folder"
        ) from None
    return path


def _mismatch(path: Path, checks: dict[str, str | None], size: int | None) -> str | None:
    """What about ``path`` is not as expected, in words; None if all is."""
    if size is not None and path.stat().st_size != size:
        return f"has {path.stat().st_size} bytes in place of {size}"
    for algorithm, expected in checks.items():
        if expected is not None:
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, algorithm).hexdigest()
            if found != expected.lower():
                return f"has {algorithm} {found} in place of {expected}"
    return None


def _tag_path(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


@contextlib.contextmanager
def _locked_part(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """``<path>.part`` opened for appending, held by this process alone (a second process waits)."""
    part = path.with_name(path.name + ".part")
    while True:
        file = open(part, "ab")  # noqa: SIM115  (kept open past this function's first half)
        fcntl.flock(file, fcntl.LOCK_EX)
        # Whoever held the lock may have renamed the file under us: then we hold the finished one.
        if part.exists() and os.path.samestat(os.fstat(file.fileno()), part.stat()):
            break
        file.close()
    try:
        yield part, file
    finally:
        file.close()
        if part.exists() and part.stat().st_size == 0:
            part.unlink()
            _tag_path(part).unlink(missing_ok=True)


def _fetch_verified(
    url: str,
    path: Path,
    part: Path,
    file: IO[bytes],
    checks: dict[str, str | None],
    size: int | None,
    timeout: float,
    progress: bool,
) -> None:
    """Fill ``part`` until it verifies; a continued part that does not is fetched once more from the start."""
    while True:
        if size is not None and part.stat().st_size > size:
            _restart(part, file)
        continued = part.stat().st_size > 0
        if not (continued and size is not None and part.stat().st_size == size):
            _fetch(url, path, part, file, size, timeout, progress)
        problem = _mismatch(part, checks, size)
        if problem is None:
            return
        _restart(part, file)
        if not continued:
            raise UserError(
                f"{url} {problem}: the file at the source changed or was altered on its way; "
                f"try again, or put the expected file at {path}"
            )


def _restart(part: Path, file: IO[bytes]) -> None:
    file.truncate(0)
    _tag_path(part).unlink(missing_ok=True)


def _fetch(
    url: str, path: Path, part: Path, file: IO[bytes], size: int | None, timeout: float, progress: bool
) -> None:
    """Append the missing bytes of ``url`` to ``part``, trying again while that helps."""
    start = furthest = part.stat().st_size
    failures = 0
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not (progress and console.is_terminal)) as bar:
        task = bar.add_task(path.name, total=size)
        while True:
            try:
                for done, total in _stream(url, path, part, file, size, timeout):
                    bar.update(task, completed=done, total=total)
                return
            except (_RetryError, requests.RequestException) as error:
                reached = part.stat().st_size
                failures = 1 if reached > furthest else failures + 1
                furthest = max(furthest, reached)
                # A machine without a network should say so soon; a connection that broke deserves patience.
                unreachable = isinstance(error, requests.RequestException) and furthest == start
                if failures > (1 if unreachable else len(BACKOFF)):
                    raise UserError(
                        f"{url} could not be downloaded ({_reason(error)}); check the network and run it "
                        f"again (what arrived is kept), or put the file at {path}"
                    ) from None
                time.sleep(BACKOFF[failures - 1])


def _stream(
    url: str, path: Path, part: Path, file: IO[bytes], size: int | None, timeout: float
) -> Iterator[tuple[int, int | None]]:
    """One request; yields (bytes in ``part``, bytes in all or None) after each chunk."""
    have = part.stat().st_size
    tag = _tag_path(part)
    headers = HEADERS | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        version = f"{url}\n{response.headers.get('ETag') or response.headers.get('Last-Modified') or ''}\n"
        if response.status_code == 416:  # nothing lies beyond our part: it is whole, or too long
            whole = response.headers.get("Content-Range", "").removeprefix("bytes */")
            if whole == str(have) and tag.is_file():
                return
            _restart(part, file)
            raise _RetryError("the part kept from an earlier run does not fit the file")
        if response.status_code in RETRIED:
            raise _RetryError(f"HTTP {response.status_code} {response.reason}")
        if response.status_code not in (200, 206):
            raise UserError(
                f"{url} answers HTTP {response.status_code} {response.reason}; "
                f"check the address, or put the file at {path}"
            )
        if response.status_code == 206:
            start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            known = tag.read_text(encoding="utf-8") if tag.is_file() else ""
            if start is None or int(start[1]) != have or known != version:
                _restart(part, file)
                raise _RetryError("the part kept from an earlier run is of another version of the file")
        else:  # the server ignores Range, or nothing was asked of it
            file.truncate(0)
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length and "Content-Encoding" not in response.headers else None
        if size is not None and total is not None and total != size:
            _restart(part, file)
            raise UserError(
                f"{url} has {total} bytes in place of {size}: the file at the source changed; "
                f"put the expected file at {path}"
            )
        tag.write_text(version, encoding="utf-8")
        for chunk in response.iter_content(CHUNK):
            file.write(chunk)
            file.flush()  # so that the size of the part is always the truth
            have += len(chunk)
            yield have, total
        if total is not None and have != total:
            raise _RetryError(f"the connection ended after {have} of {total} bytes")


def _reason(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    return str(error) or type(error).__name__
