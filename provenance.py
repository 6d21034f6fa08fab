"""What was run: config ids, environment, manifests, atomic writes and folder locks.

Every stage folder ends with a ``manifest.json`` that names the configuration, the hashes of all
files, the manifest of the parent stage and the code that ran. A later stage verifies it before
reading, so a score in a results table leads back to the dump it came from.

This is the only module that all packages share, and the only one outside them: how a program ends and how it
says that its input is wrong (``run_cli``, ``UserError``) are here, too, hence its length.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import glob
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import re
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

SCHEMA = 1
MANIFEST = "manifest.json"
LOCK = ".lock"


class UserError(Exception):
    """A mistake the user can mend: its message is one sentence (what, which file and line, what to do)."""


# What a disk, its rights or a path can refuse: the user's to mend, whatever library met it.
_REFUSALS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG),
)


def _refusal(error: BaseException | None) -> OSError | None:
    """The refusal behind an error, which may be a cause of it; None where that is not the reason."""
    while error is not None:
        number, path = getattr(error, "errno", None), getattr(error, "filename", None)
        if match := re.search(r"\(os error (\d+)\)", str(error)):  # as libraries written in Rust say it
            number = int(match[1])
        if isinstance(number, int) and number in _REFUSALS:
            return OSError(number, os.strerror(number), path)
        error = error.__cause__ or error.__context__
    return None


def _reader_is_gone() -> bool:
    """Whether who read our output has seen enough (``... --help | head -1``); if so, write no more of it."""
    output = select.poll()
    output.register(1, 0)
    if gone := any(event & select.POLLERR for _, event in output.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return gone


def _accept_any_console() -> None:
    """Print "?" for what the console cannot show, and read arguments and file names as UTF-8.

    Under an ASCII locale Python has already decoded the arguments, so the program starts again in UTF-8 mode.
    """
    if sys.getfilesystemencoding() == "ascii":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def run_cli(main: Callable[[], object]) -> NoReturn:
    """Run a program's ``main``; what the user can mend becomes one line on stderr and exit status 1.

    That is a :class:`UserError`, and a full disk, missing rights or an impossible path.
    """
    _accept_any_console()
    try:
        try:
            main()
        finally:
            sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _reader_is_gone():
            sys.exit(141)
        if (reason := _refusal(error)) is None:
            raise
        where = f"{reason.filename}: " if reason.filename else ""
        advice = "make room there, mend its rights or choose another place, then run again"
        print(f"error: {where}{reason.strerror}; {advice}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(0)


def quiet_interrupt() -> None:
    """Where a program of ours is being started, let Ctrl-C while its modules load print no traceback."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, trace)

    if sys.argv[:1] == ["-m"]:  # so Python has it until the module of `python -m` is found
        sys.excepthook = hook


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    with contextlib.suppress(OSError):  # Linux: one that has ended stays until its parent has asked for it
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def end_with(process: int) -> None:
    """End this process within a second of ``process``: one that is killed cannot end its children itself."""

    def watch() -> None:
        while _is_running(process):
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- identity -------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """``value`` as JSON types: dataclasses and mappings become dicts, tuples and sets lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(v) for v in value)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} cannot be part of a configuration")


def config_id(config: Any) -> str:
    """First 12 hex digits of the sha256 over the sorted JSON of ``config``."""
    canonical = json.dumps(plain(config), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def sha256_file(path: Path | str) -> str:
    """Hex sha256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_state() -> dict[str, Any]:
    """Commit and dirty flag of the checkout the code runs from; ``commit`` is None outside git.

    ``results/`` does not count: a run's first record must not make its second one dirty.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ".", ":(exclude)results")
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(changed)}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def environment() -> dict[str, Any]:
    """Versions and machine facts that can change a number (no host names, no paths)."""
    packages = ("torch", "transformers", "tokenizers", "datasets", "datatrove", "opencc")
    versions: dict[str, str | None] = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "python": platform.python_version(),
        **versions,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


# --- atomic output --------------------------------------------------------------------------------


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name ``path`` in refusals that name no file, as that of a full disk while writing."""
    try:
        yield
    except Exception as error:
        reason = _refusal(error)
        if reason is None or reason.filename is not None:
            raise
        raise OSError(reason.errno, reason.strerror, str(path)) from error


@contextlib.contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; it takes the name when the block succeeds, or goes away."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with _named(path):
            yield partial
            with open(partial, "rb") as file:
                os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """As :func:`atomic_file` for a folder; an existing folder at ``path`` is replaced at the end."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for killed in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):  # these can be large
        process = killed.name.split(".")[-2]
        if process.isdecimal() and not _is_running(int(process)):
            shutil.rmtree(killed)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        with _named(path):
            yield partial
        if path.exists():
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            os.replace(path, old)
            os.replace(partial, path)
            shutil.rmtree(old)
        else:
            os.replace(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_text(path: Path | str, text: str) -> None:
    """Write UTF-8 text with ``\\n`` line ends, atomically."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path | str, value: Any) -> None:
    """Write ``value`` (dataclasses allowed) as indented UTF-8 JSON, atomically."""
    write_text(path, json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


@contextlib.contextmanager
def hold(folder: Path | str) -> Iterator[None]:
    """Hold ``folder`` for this process; the lock dies with the process, so a crash leaves nothing to clean.

    Raises:
        UserError: another process holds it, or it cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error.strerror}); choose another output folder"
        ) from None
    with open(folder / LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder} is held by another run; wait for it to end or choose another output folder"
            ) from None
        yield


# --- manifests ------------------------------------------------------------------------------------


def _manifest_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        if path.is_file() and name != MANIFEST and not hidden:
            yield name


def write_manifest(
    folder: Path | str,
    *,
    stage: str,
    config: Any,
    identity: Any = None,
    parent: Path | str | None = None,
    rows: Mapping[str, int] | None = None,
    counts: Mapping[str, Any] | None = None,
    **facts: Any,
) -> dict[str, Any]:
    """Write ``folder/manifest.json`` last and atomically, hashing every file that is not hidden.

    Args:
        folder: the finished stage folder.
        stage: the program that wrote it, such as ``corpus.build``.
        config: the settings that change the numbers; stored whole, so that ``--from`` can replay it.
        identity: what is hashed to the config id when that is more than ``config`` (inputs, for instance).
        parent: the folder this stage read; its manifest's sha256 is stored.
        rows: number of rows per file, by name relative to ``folder``.
        counts: counters per rule or split.
        facts: further entries (``runtime``, ``name``, ``parameters`` and the like).
    """
    folder = Path(folder)
    files = {
        name: {
            "bytes": (folder / name).stat().st_size,
            "sha256": sha256_file(folder / name),
            **({"rows": rows[name]} if rows and name in rows else {}),
        }
        for name in _manifest_files(folder)
    }
    manifest = {
        "schema": SCHEMA,
        "stage": stage,
        "config_id": config_id(config if identity is None else identity),
        "config": plain(config),
        "parent": None if parent is None else sha256_file(Path(parent) / MANIFEST),
        "files": files,
        "counts": plain(counts or {}),
        **plain(facts),
        "git": git_state(),
        "environment": environment(),
    }
    write_json(folder / MANIFEST, manifest)
    return manifest


def read_manifest(folder: Path | str) -> dict[str, Any]:
    """The manifest of ``folder`` (or the manifest file given itself), unverified.

    Raises:
        UserError: there is none, or it is not a manifest of this schema.
    """
    path = Path(folder) if Path(folder).is_file() else Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"{path} does not exist: {folder} is missing or was not finished; run its stage again"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); run its stage again") from None
    if not _is_manifest(manifest):
        raise UserError(f"{path} is not a manifest of schema {SCHEMA}; run its stage again")
    return manifest


def _is_manifest(value: Any) -> bool:
    """Whether a JSON value has what every manifest of this schema has."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return False
    kinds = {"stage": str, "config_id": str, "config": dict, "files": dict, "counts": dict}
    return all(isinstance(value.get(key), kind) for key, kind in kinds.items()) and all(
        isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys() for entry in value["files"].values()
    )


def verify_manifest(folder: Path | str, stage: str | None = None) -> dict[str, Any]:
    """The manifest of ``folder`` after checking that every file it names has its size and sha256.

    Raises:
        UserError: a file is missing or differs (named), or ``stage`` is not the one that wrote it.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    if stage is not None and manifest["stage"] != stage:
        raise UserError(
            f"{folder} was written by {manifest['stage']}, not by {stage}; give a folder of {stage}"
        )
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise UserError(f"{path} is named in its manifest but missing; run {manifest['stage']} again")
        if path.stat().st_size != entry["bytes"] or sha256_file(path) != entry["sha256"]:
            raise UserError(f"{path} differs from its manifest; run {manifest['stage']} again")
    return manifest
