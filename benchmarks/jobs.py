"""Trials as processes: several at once, progress drawn, a crash costs one of them.

Importing torch and transformers takes longer than a small trial, so one server process imports them once and
every trial is forked from it.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from benchmarks.record import read_record, record_path
from benchmarks.tasks import get_task
from benchmarks.trial import Trial, log_path, run_forked
from provenance import write_text

# One thread a process, so that the number of jobs changes no sum; the parent has fetched the model already.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONWARNINGS": "ignore",
}
# What a trial imports, with what transformers would import only when a model is loaded.
PRELOAD = [
    "scipy.stats",
    "benchmarks.run",  # multiprocessing imports the main module in every child
    "benchmarks.trial",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "transformers.models.electra.modeling_electra",
]
CONTEXT = multiprocessing.get_context("forkserver")

# multiprocessing looks after all children whenever one starts, and two looks at the end of one child race.
_CHILDREN = threading.Lock()


def start_server() -> None:
    """Start the process that trials are forked from, unless it is running; it ends with this process."""
    CONTEXT.set_forkserver_preload(PRELOAD)
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    # Ctrl-C goes to all processes of a terminal; this one answers it, and those it started never see it.
    answer = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, answer)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


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
    children: set[BaseProcess] = set()
    start_server()
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
        lock, ending = threading.Lock(), threading.Event()

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
                reason = run_child(trial, slot, advance, children, ending)
            finally:
                free.put(slot)
                bars.remove_task(bar)
                bars.update(overall, advance=(1 - share) * cost)
            if ending.is_set():
                return
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
            ending.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for child in list(children):
                child.terminate()
    return failures


def run_child(
    trial: Trial,
    slot: int,
    advance: Callable[[dict[str, Any]], None],
    children: set[BaseProcess],
    ending: threading.Event,
) -> str | None:
    """Run one trial as a process and pass its progress on; the reason of its failure, or None."""
    gpu = None
    if gpus := torch.cuda.device_count():
        names = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus)))).split(",")
        gpu = names[slot % gpus]
    receiver, sender = CONTEXT.Pipe(duplex=False)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as log:
        child = CONTEXT.Process(target=run_forked, args=(trial, sender, log.name, gpu, os.getpid()))
        with _CHILDREN:
            child.start()
        sender.close()
        children.add(child)
        if ending.is_set():  # it was starting when the others were ended
            child.terminate()
        try:
            while True:
                advance(receiver.recv())
        except EOFError:  # it has closed its end: it is over
            with _CHILDREN:
                child.join()
        finally:
            children.discard(child)
        text = log.read()
    if not child.exitcode:
        return None
    if child.exitcode < 0:
        name = signal.Signals(-child.exitcode).name
        return f"ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    last = ([line for line in text.split("\n") if line.strip()] or [f"exit status {child.exitcode}"])[-1]
    if last.startswith("error: "):
        return last.removeprefix("error: ")
    write_text(log_path(trial), text)
    return f"{last} (see {log_path(trial)})"


def _scores(trial: Trial) -> str:
    path = record_path(trial.results, trial.facts["name"], trial.task, trial.bench_id, trial.seed)
    record = read_record(path)
    metric = get_task(trial.task).main_metric
    scores = ", ".join(f"{split} {metric} {values[metric]:.2f}" for split, values in record.scores.items())
    return f"{scores} ({record.seconds:.0f} s)"
