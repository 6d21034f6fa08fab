"""One step of a build on datatrove's executors: quiet, resumable, checked, with a progress bar."""

from __future__ import annotations

import contextlib
import gc
import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

from datatrove.executor.local import LocalPipelineExecutor
from loguru import logger
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from corpus.cluster import Shard, run_on_ray, run_on_slurm
from corpus.config import Runtime
from corpus.job import Job, Step, counts_path
from provenance import UserError, end_with


class WorkerError(UserError):
    """A worker process died: what is done stays, and the build can be taken up again."""


POLL = 0.3  # seconds between two looks at the shards that are done
PRELOAD = "corpus.preload"
GARBAGE = 100_000  # new objects between two collections: steps make many, hardly any in cycles


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block. Only the main thread is ever interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if seen:
            signal.raise_signal(signal.SIGINT)


def start_forkserver() -> None:
    """Start the process that workers are forked from; it loads their modules while this one goes on.

    Workers never see Ctrl-C: this process does, and ends them.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload([PRELOAD])
    resource_tracker.ensure_running()  # else the forkserver's start begins with it, and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # which a new process inherits
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class QuietExecutor(LocalPipelineExecutor):
    """Datatrove's local executor without its log on the console, and with a pool that notices a dead worker.

    Datatrove's pool waits for ever for the result of a worker that was killed. Where the parent is killed,
    workers end within a second.

    Attributes:
        sizes: of the ranks' work, in any unit: the largest are begun first, so that workers end together.
    """

    sizes: Sequence[int] = ()

    def _run_for_rank(self, *arguments: Any, **named: Any) -> Any:
        logger.remove()
        gc.set_threshold(GARBAGE)
        with contextlib.redirect_stderr(io.StringIO()):
            return super()._run_for_rank(*arguments, **named)

    def run(self) -> None:
        """Run the ranks that are not complete.

        Raises:
            BrokenProcessPool: a worker died.
            Exception: the first error of a rank; the others are stopped.
        """
        logger.remove()  # what the parent process would print
        ranks = self.get_incomplete_ranks(range(self.tasks))
        if self.sizes:
            ranks = sorted(ranks, key=self.sizes.__getitem__, reverse=True)
        if not ranks:
            return
        self.save_executor_as_json()
        if self.workers == 1:
            for rank in ranks:
                self._run_for_rank(rank)
            return
        start_forkserver()
        pool = ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("forkserver"),
            initializer=end_with,
            initargs=(os.getpid(),),
        )
        try:
            with _no_interrupt():  # a worker that is half started could not be ended
                futures = [pool.submit(self._run_for_rank, rank) for rank in ranks]
            for future in as_completed(futures):
                future.result()
        except BaseException:
            for process in list((pool._processes or {}).values()):  # they may work for minutes yet
                process.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


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


def run_here(name: str, step: Shard, tasks: int, workers: int, logs: Path, sizes: Sequence[int] = ()) -> None:
    """Run the shards of a step in processes of this machine.

    Raises:
        WorkerError: a process died.
    """
    executor = QuietExecutor(
        pipeline=[step], tasks=tasks, workers=max(1, min(workers, tasks)), logging_dir=str(logs)
    )
    executor.sizes = sizes
    try:
        executor.run()
    except BrokenProcessPool:
        done = sum(executor.is_rank_completed(rank) for rank in range(tasks))
        raise WorkerError(
            f"step {name}: a worker process died ({done} of {tasks} shards were done); it was killed, or "
            "memory ran out: run the same command again with fewer --workers to go on from there"
        ) from None


def run_step(
    name: str, step: Step, tasks: int, job: Job, runtime: Runtime, sizes: Sequence[int] = ()
) -> None:
    """Run ``step`` for ranks 0 to ``tasks`` - 1; ranks that an earlier run completed are not run again.

    Args:
        sizes: of the ranks' work, if it differs.

    Raises:
        UserError: an input is damaged, or the cluster refuses the work.
        WorkerError: a process died, or a rank left no counts (named).
    """
    if not tasks:
        return
    logs = job.work / "logs" / name
    terminal, began = sys.stderr.isatty(), time.monotonic()
    executors: dict[str, Callable[..., None]]
    executors = {
        "local": partial(run_here, sizes=sizes),
        "ray": run_on_ray,
        "slurm": partial(run_on_slurm, given=runtime.slurm),
    }
    with _progress(name, tasks, logs / "completions", runtime.progress and terminal):
        executors[runtime.executor](name, partial(step, job=job), tasks, runtime.workers, logs)
    missing = [rank for rank in range(tasks) if not counts_path(job, name, rank).is_file()]
    if missing:
        ranks = ", ".join(map(str, missing[:10]))
        raise WorkerError(
            f"step {name} left no result for shard {ranks} of {tasks} ({logs} has its log); "
            "run the same command again to go on from there"
        )
    if runtime.progress and not terminal:
        print(f"{name}: {tasks} of {tasks} shards, {time.monotonic() - began:.1f} s", file=sys.stderr)
