"""One file per task, found by itself: adding a task is adding one file that defines ``TASK``.

Nothing outside this folder names a task.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from benchmarks.task import Task
from provenance import UserError

_FOUND: list[Task] = [
    importlib.import_module(f"{__name__}.{module.name}").TASK for module in pkgutil.iter_modules(__path__)
]
TASKS: Mapping[str, Task] = MappingProxyType(
    {task.name: task for task in sorted(_FOUND, key=lambda task: (task.order, task.name))}
)


def get_task(name: str) -> Task:
    """The task called ``name``.

    Raises:
        UserError: there is none; the message lists all.
    """
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}; the tasks are {', '.join(TASKS)} (or all)")
    return TASKS[name]


def get_tasks(names: str) -> list[Task]:
    """The tasks of ``all``, one name, or names joined by commas, in the order given, each once."""
    if names == "all":
        return list(TASKS.values())
    return [get_task(name) for name in dict.fromkeys(part.strip() for part in names.split(","))]
