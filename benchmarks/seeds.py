"""Seeds: on the command line a count, a range or a list; and who runs which."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from tyro.constructors import PrimitiveConstructorSpec

from provenance import LOCK, UserError


def parse_seeds(text: str) -> tuple[int, ...]:
    """``10``: the first ten seeds, from 0. ``0-9``, ``3,5``, ``0-2,7``: these. ``3,``: seed 3 alone.

    Raises:
        ValueError: none of these forms.
    """
    try:
        if text.isdecimal():
            chosen = list(range(int(text)))
        else:
            chosen = []
            for part in filter(None, text.split(",")):
                first, dash, last = part.partition("-")
                if not (seeds := range(int(first), int(last if dash else first) + 1)):
                    raise ValueError(f"the range {part} is empty")
                chosen += seeds
    except ValueError:
        chosen = []
    if not chosen:
        raise ValueError(f"{text!r} is no choice of seeds; write a count (10), a range (0-9) or a list (3,5)")
    return tuple(dict.fromkeys(chosen))


def seeds_text(seeds: Sequence[int]) -> str:
    """What :func:`parse_seeds` reads as these seeds, in short."""
    if tuple(seeds) == tuple(range(len(seeds))):
        return str(len(seeds))
    return ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")


Seeds = Annotated[
    tuple[int, ...],
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="N|A-B|A,B",
        instance_from_str=lambda arguments: parse_seeds(arguments[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda seeds: [seeds_text(seeds)],
    ),
]


@contextlib.contextmanager
def hold_seeds(folder: Path, seeds: Sequence[int]) -> Iterator[None]:
    """Hold seeds of a folder of records for this process; others may hold other seeds of it.

    So the tasks of a cluster's job array can run one seed each. One byte of the lock file stands for a seed;
    the locks die with the process.

    Raises:
        UserError: another process holds one of them, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / LOCK, "a")  # noqa: SIM115
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror}); choose another --results") from None
    with file:
        for seed in seeds:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, seed)
            except OSError:
                raise UserError(
                    f"seed {seed} in {folder} is held by another run; wait for it or choose other --seeds"
                ) from None
        yield
