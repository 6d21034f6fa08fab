"""Seeds on the command line: a count, a range or a list."""

from __future__ import annotations

from typing import Annotated

from tyro.constructors import PrimitiveConstructorSpec


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
                chosen += range(int(first), int(last if dash else first) + 1)
    except ValueError:
        chosen = []
    if not chosen:
        raise ValueError(f"{text!r} is no choice of seeds; write a count (10), a range (0-9) or a list (3,5)")
    return tuple(dict.fromkeys(chosen))


Seeds = Annotated[
    tuple[int, ...],
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="N|A-B|A,B",
        instance_from_str=lambda arguments: parse_seeds(arguments[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda seeds: [",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")],
    ),
]
