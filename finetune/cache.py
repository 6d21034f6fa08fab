"""Arrays kept on disk under a hash of all that they were made from: nothing that is kept can be stale."""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from provenance import atomic_file


def content_key(parts: Iterable[str]) -> str:
    """Hex sha256 over texts, each told from the next by its length in bytes."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", errors="surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def cached(
    folder: Path | None, key: str, make: Callable[[], Mapping[str, np.ndarray]]
) -> Mapping[str, np.ndarray]:
    """The arrays of ``make()``, from ``folder/<key>.npz`` where it is whole; without a folder made anew.

    Several processes may ask at once. A file that cannot be written costs time the next time, not the run.
    """
    if folder is None:
        return make()
    path = folder / f"{key}.npz"
    # a zip archive holds a checksum of each array, so that a damaged file is made anew
    with contextlib.suppress(OSError, ValueError, EOFError, zipfile.BadZipFile), np.load(path) as file:
        return {name: file[name] for name in file.files}
    arrays = make()
    with contextlib.suppress(OSError), atomic_file(path) as partial, partial.open("wb") as out:
        np.savez(out, allow_pickle=False, **arrays)
    return arrays
