"""Put the published files of the tasks in place: ``python -m benchmarks.fetch TASK|all [--data DIR]``.

Where each file comes from stands in the task's own file in ``benchmarks/tasks/``. An address is a URL, or
``hf://datasets/<owner>/<name>[@<revision>]/<path>`` on the Hugging Face Hub or the mirror that
``HF_ENDPOINT`` names.
Files are never changed on their way: what lands is the published file, byte for byte.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit

import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import Folder, named, optional
from benchmarks.task import File, Task
from benchmarks.tasks import get_task, get_tasks
from corpus.inputs.download import download
from provenance import UserError, atomic_file, run_cli, sha256_file

HUB = "https://huggingface.co"
IN_PLACE = ("verified", "there", "fetched", "differs")


@dataclass(frozen=True)
class Status:
    """What became of one file: ``state`` is one of IN_PLACE, ``apply`` or ``missing``; ``note`` says why."""

    task: Task
    file: File
    path: Path
    state: str
    note: str = ""


def address(url: str, endpoint: str = HUB) -> str:
    """The http address of a task's URL; ``hf://`` addresses are resolved at ``endpoint``."""
    if not url.startswith("hf://"):
        return url
    kind, owner, name, *path = url.removeprefix("hf://").split("/")
    name, _, revision = name.partition("@")
    return (
        f"{endpoint.rstrip('/')}/{kind}/{owner}/{name}/resolve/{revision or 'main'}/{quote('/'.join(path))}"
    )


def extract(archive: Path, member: str, path: Path) -> Path:
    """Copy the one file of a zip archive whose path ends in ``member`` to ``path``.

    Only this file's bytes are read and the archive's own paths are never written to, so that no
    archive can place a file elsewhere. The zip checksum is verified.

    Raises:
        UserError: not a zip archive, damaged, or none or several files match.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            found = [
                info
                for info in source.infolist()
                if f"/{info.filename}".endswith(f"/{member}") and not info.filename.startswith("__MACOSX/")
            ]
            if len(found) != 1:
                raise UserError(
                    f"{archive.name} holds {len(found)} files named {member}; "
                    f"look for the right one and put it at {path}"
                )
            with source.open(found[0]) as data, atomic_file(path) as partial, open(partial, "wb") as out:
                shutil.copyfileobj(data, out)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise UserError(
            f"{archive} is not a whole zip archive ({error}); delete it and run this again"
        ) from None
    return path


def check(task: Task, file: File, folder: Path) -> Status | None:
    """The status of a file that is there already, or None."""
    path = folder / file.name
    if not path.is_file():
        return None
    if file.sha256 is None:
        return Status(task, file, path, "there", "published sha256 not known")
    if sha256_file(path) == file.sha256:
        return Status(task, file, path, "verified")
    return Status(task, file, path, "differs", "kept: not the published file, runs on it are reduced")


def fetch_task(task: Task, data: Path, endpoint: str, *, progress: bool = True) -> list[Status]:
    """Check, download and unpack the files of one task into ``data/<task>``; failures are in the statuses.

    A file that is there is never replaced. Archives lie in ``data/<task>/.archives`` until all is in place.
    """
    folder = data / task.name
    archives = folder / ".archives"
    failed: dict[str, str] = {}  # one archive holds several files: ask for it once
    statuses = []
    for file in task.files.values():
        status = check(task, file, folder)
        if status is None and not file.urls:
            status = Status(task, file, folder / file.name, "apply", task.apply)
        if status is None:
            status = _fetch_file(task, file, folder, archives, endpoint, failed, progress)
        statuses.append(status)
    if all(status.state in IN_PLACE for status in statuses):
        shutil.rmtree(archives, ignore_errors=True)
    return statuses


def _given_archive(folder: Path, file: File) -> Path | None:
    """The zip archive beside the task's files that holds ``file.member``; None where none does."""
    for path in sorted(folder.glob("*.zip")):
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            if any(f"/{name}".endswith(f"/{file.member}") for name in archive.namelist()):
                return path
    return None


def _fetch_file(
    task: Task,
    file: File,
    folder: Path,
    archives: Path,
    endpoint: str,
    failed: dict[str, str],
    progress: bool,
) -> Status:
    path = folder / file.name
    if file.member and (given := _given_archive(folder, file)):
        extract(given, file.member, path)
        if file.sha256 in (None, sha256_file(path)):
            return Status(task, file, path, "fetched", f"from {given.name}")
        return Status(task, file, path, "differs", f"from {given.name}: not the published file")
    for url in file.urls:
        url = address(url, endpoint)
        if url in failed:
            continue
        try:
            if file.member is None:
                download(url, path, sha256=file.sha256, progress=progress)
            else:
                archive = archives / Path(urlsplit(url).path).name
                if not archive.is_file():
                    download(url, archive, progress=progress)
                try:
                    extract(archive, file.member, path)
                except UserError:
                    archive.unlink()
                    raise
                if file.sha256 not in (None, found := sha256_file(path)):
                    path.unlink()
                    raise UserError(f"{file.member} in {url} has sha256 {found} in place of {file.sha256}")
            return Status(task, file, path, "fetched", "" if file.sha256 else "published sha256 not known")
        except UserError as error:
            failed[url] = str(error).partition(";")[0]  # the remedy follows, once for all files
    reasons = [failed[address(url, endpoint)] for url in file.urls]
    if archives.is_dir() and not any(archives.iterdir()):
        archives.rmdir()
    return Status(task, file, path, "missing", "; ".join(reasons))


def from_dataset(task: Task, source: str, data: Path) -> list[Path]:
    """Write the splits of a data set of the Hub (``owner/name[:configuration]``, or a local one) as Parquet.

    They lie beside the task's files, as ``DATA/<task>/<split>.parquet``; ``validation`` becomes ``dev``.

    Raises:
        UserError: the data set cannot be loaded, has no such split, or a file is there already.
    """
    import datasets  # takes seconds

    name, _, configuration = source.partition(":")
    try:
        found = datasets.load_dataset(name, configuration or None)
    except Exception as error:  # the network, the Hub and each format fail in their own ways
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"{source} cannot be loaded as a data set ({reason}); check its name") from None
    written = []
    for split in task.files:
        rows = found.get(split) or (found.get("validation") if split == "dev" else None)
        path = data / task.name / f"{split}.parquet"
        if rows is None:
            continue
        if path.exists():
            raise UserError(f"{path} is there already; move it away first")
        with atomic_file(path) as partial:
            rows.to_parquet(partial)
        written.append(path)
    if not written:
        raise UserError(f"{source} has none of the splits {', '.join(task.files)}; it has {', '.join(found)}")
    return written


def report(statuses: Sequence[Status], console: Console) -> None:
    """Print the table of files and, for what is missing, where to get it and where to put it."""
    table = Table("task", "file", "status", "rows", "bytes", "licence", box=None, pad_edge=False)
    for s in statuses:
        size = f"{s.path.stat().st_size:,}" if s.state in IN_PLACE else ""
        table.add_row(
            s.task.name,
            s.file.name,
            s.state,
            f"{s.file.rows:,}" if s.file.rows else "",
            size,
            s.task.licence,
        )
    console.print(table)
    for s in statuses:
        if s.state in IN_PLACE and s.note:
            console.print(f"{s.path}: {s.note}", soft_wrap=True, highlight=False)
    for task in dict.fromkeys(s.task.name for s in statuses):
        absent = [s for s in statuses if s.task.name == task and s.state not in IN_PLACE]
        if absent:
            console.print(f"\n[bold]{absent[0].task.title}[/bold]: {absent[0].task.homepage}", soft_wrap=True)
        for s in absent:
            columns = f", no header, columns {'<TAB>'.join(s.task.columns)}" if s.state == "apply" else ""
            console.print(
                f"  put {s.file.name} at {s.path} ({s.file.rows or 'unknown'} rows{columns}"
                + (f", sha256 {s.file.sha256}" if s.file.sha256 else "")
                + ")",
                soft_wrap=True,
                highlight=False,
                markup=False,
            )
        for line in dict.fromkeys(_origin(s) for s in absent):
            console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)


def _origin(status: Status) -> str:
    if status.state == "apply":
        return status.note
    member = f", in it {status.file.member}" if status.file.member else ""
    return f"{status.file.name}: {status.note}{member}"


def fetch(
    task: Annotated[str, tyro.conf.Positional, named(metavar="TASK[,TASK]|all")],
    data: Folder = Path("data/tasks"),
    mirror: Annotated[str | None, optional(metavar="URL")] = None,
    dataset: Annotated[str | None, optional(metavar="OWNER/NAME[:CONFIGURATION]")] = None,
) -> None:
    """Download, verify and unpack the published files of a task; say how to get what cannot be downloaded.

    Args:
        task: a task, several joined by commas, or all.
        data: folder the files go to, as DATA/<task>/<file>; what is there is kept.
        mirror: base address of a Hugging Face mirror; by default the environment variable HF_ENDPOINT, else
            https://huggingface.co.
        dataset: take the splits of this data set of the Hub in place of the published files; runs on it are
            reduced where it is not what was published.
    """
    if dataset is not None:
        for path in from_dataset(get_task(task), dataset, data):
            print(path)
        return
    endpoint = mirror or os.environ.get("HF_ENDPOINT") or HUB
    statuses = [status for each in get_tasks(task) for status in fetch_task(each, data, endpoint)]
    report(statuses, Console())
    absent = [s for s in statuses if s.state not in IN_PLACE]
    if absent:
        sys.stdout.flush()
        names = ", ".join(str(s.path) for s in absent)
        raise UserError(
            f"{len(absent)} of {len(statuses)} files are not in place: {names}; put them there as said above"
        )


def main() -> None:
    """Command line."""
    tyro.cli(fetch, prog="python -m benchmarks.fetch")


if __name__ == "__main__":
    run_cli(main)
