"""Kinds of command-line arguments, so that every program shows them alike in its --help.

An option that may be left out says in its text what holds then; ``(default: None)`` would say nothing.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import tyro

named = tyro.conf.arg
optional = partial(tyro.conf.arg, help_behavior_hint="")

Model = Annotated[str, tyro.conf.Positional, named(metavar="MODEL")]
TaskName = Annotated[str, tyro.conf.Positional, named(metavar="TASK")]
Folder = Annotated[Path, named(metavar="DIR")]

AnyInt = Annotated[int | None, optional(metavar="INT")]
AnyFloat = Annotated[float | None, optional(metavar="FLOAT")]
AnyFolder = Annotated[Path | None, optional(metavar="DIR")]
AnyName = Annotated[str | None, optional(metavar="NAME")]
Device = Annotated[Literal["cpu", "cuda"] | None, optional(metavar="{cpu,cuda}")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, optional()]
