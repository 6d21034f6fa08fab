"""Trials as processes: several at once, progress drawn, a crash costs one of them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from benchmarks.record import read_record, record_path
from benchmarks.tasks import get_task
from benchmarks.trial import Trial
from provenance import plain

# One thread a process, so that the number of jobs changes no sum; the parent has fetched the model already.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONWARNINGS": "ignore",
}


def run_jobs(trials: Sequence[tuple[Trial, float]], slots: int, console: Console) -> list[str]:
    """Run trials, ``slots`` at once, each on a GPU of its own where there are any.

    Args:
        trials: each with its rough cost, by which the overall remaining time is reckoned.
        slots: processes at once.
        console: where bars and one line per finished trial go.

    Returns:
        One phrase for each that failed: task, seed and reason.
    """
    failures: list[str] = []
    children: set[subprocess.Popen[str]] = set()
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for slot in range(slots):
        free.put(slot)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as bars:
        overall = bars.add_task(f"{len(trials)} runs", total=sum(cost for _, cost in trials), note="")
        lock = threading.Lock()

        def one(trial: Trial, cost: float) -> None:
            title = f"{get_task(trial.task).title} seed {trial.seed}"
            slot, bar, share = free.get(), bars.add_task(title, total=None, note="starting"), 0.0

            def advance(message: dict[str, Any]) -> None:
                nonlocal share
                done = message["done"] / max(1, message["total"])
                bars.update(
                    bar, completed=message["done"], total=message["total"], note=f"loss {message['loss']:.3f}"
                )
                bars.update(overall, advance=(done - share) * cost)
                share = done

            try:
                reason = run_child(trial, slot, advance, children)
            finally:
                free.put(slot)
                bars.remove_task(bar)
                bars.update(overall, advance=(1 - share) * cost)
            if reason is None:
                bars.console.print(f"{title}: {_scores(trial)}")
            else:
                bars.console.print(f"{title} failed: {reason}", style="red", markup=False)
                with lock:
                    failures.append(f"{title}: {reason}")

        pool = ThreadPoolExecutor(slots)
        try:
            futures = [pool.submit(one, trial, cost) for trial, cost in trials]
            for future in futures:
                future.result()
        finally:  # an interrupt ends the children too
            pool.shutdown(wait=False, cancel_futures=True)
            for child in list(children):
                child.terminate()
    return failures


def run_child(
    trial: Trial, slot: int, advance: Callable[[dict[str, Any]], None], children: set[subprocess.Popen[str]]
) -> str | None:
    """Run one trial as a process and pass its progress on; the reason of its failure, or None."""
    environment = {**os.environ, **ENVIRONMENT}
    if gpus := torch.cuda.device_count():
        names = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus)))).split(",")
        environment["CUDA_VISIBLE_DEVICES"] = names[slot % gpus]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.trial"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        children.add(child)
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            with contextlib.suppress(BrokenPipeError), child.stdin:
                child.stdin.write(json.dumps(plain(trial)))
            for line in child.stdout:
                advance(json.loads(line))
            status = child.wait()
        finally:
            children.discard(child)
        if status == 0:
            return None
        if status < 0:
            return f"ended by {signal.Signals(-status).name}" + (" (out of memory?)" if status == -9 else "")
        log.seek(0)
        lines = [line for line in log.read().split("\n") if line.strip()]
        return lines[-1].removeprefix("error: ") if lines else f"exit status {status}"


def _scores(trial: Trial) -> str:
    path = record_path(trial.results, trial.facts["name"], trial.task, trial.bench_id, trial.seed)
    record = read_record(path)
    metric = get_task(trial.task).main_metric
    scores = ", ".join(f"{split} {metric} {values[metric]:.2f}" for split, values in record.scores.items())
    return f"{scores} ({record.seconds:.0f} s)"
