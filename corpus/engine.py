"""One step of a build on datatrove's local executor: quiet, resumable, checked, with a progress bar."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import multiprocess
from datatrove.executor.local import LocalPipelineExecutor
from loguru import logger
from multiprocess.managers import SyncManager
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from corpus.config import Runtime
from corpus.job import Job, Step, counts_path
from provenance import UserError, end_with

POLL = 0.3  # seconds between two looks at the shards that are done


class _Alone:
    """What a single worker needs of a manager, without the seconds that a process of its own takes."""

    Queue: Any = staticmethod(queue.Queue)

    def shutdown(self) -> None:
        """Nothing was started."""


def _manager() -> SyncManager:
    """What datatrove takes from ``multiprocess.Manager``, without its two faults when a run is killed.

    Forked, the manager's process would inherit the lock on the output folder, and it would never end.
    """
    manager = SyncManager(ctx=multiprocess.get_context("forkserver"))
    manager.start(end_with, (os.getpid(),))
    return manager


class QuietExecutor(LocalPipelineExecutor):
    """Datatrove's local executor without its log on the console; the log files stay."""

    def _run_for_rank(self, *arguments: Any, **named: Any) -> Any:
        with contextlib.redirect_stderr(io.StringIO()):
            return super()._run_for_rank(*arguments, **named)

    def run(self) -> Any:
        logger.remove()  # what the parent process would print
        given, multiprocess.Manager = multiprocess.Manager, _manager if self.workers > 1 else _Alone
        try:
            return super().run()
        finally:
            multiprocess.Manager = given


@contextlib.contextmanager
def _progress(name: str, tasks: int, completions: Path, shown: bool) -> Iterator[None]:
    """A bar that follows the completion markers of a step."""
    if not shown:
        yield
        return
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("shards"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    ended = threading.Event()
    with Progress(*columns, console=Console(file=sys.stderr)) as bars:
        bar = bars.add_task(name, total=tasks)

        def follow() -> None:
            while True:
                done = sum(1 for _ in completions.iterdir()) if completions.is_dir() else 0
                bars.update(bar, completed=done)
                if ended.wait(POLL):
                    bars.update(bar, completed=sum(1 for _ in completions.iterdir()))
                    return

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            completions.mkdir(parents=True, exist_ok=True)
            ended.set()
            thread.join()


def run_step(name: str, step: Step, tasks: int, job: Job, runtime: Runtime) -> None:
    """Run ``step`` for ranks 0 to ``tasks`` - 1; ranks that an earlier run completed are not run again.

    Raises:
        UserError: an input is damaged, or a rank left no counts (named).
    """
    logs = job.work / "logs" / name
    terminal, began = sys.stderr.isatty(), time.monotonic()
    with _progress(name, tasks, logs / "completions", runtime.progress and terminal):
        QuietExecutor(
            pipeline=[partial(step, job=job)],
            tasks=tasks,
            workers=max(1, min(runtime.workers, tasks)),
            logging_dir=str(logs),
        ).run()
    missing = [rank for rank in range(tasks) if not counts_path(job, name, rank).is_file()]
    if missing:
        ranks = ", ".join(map(str, missing[:10]))
        raise UserError(
            f"step {name} left no result for shard {ranks} of {tasks}; run again with --overwrite"
        )
    if runtime.progress and not terminal:
        print(f"{name}: {tasks} of {tasks} shards, {time.monotonic() - began:.1f} s", file=sys.stderr)
