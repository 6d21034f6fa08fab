"""The steps of a build on a cluster: datatrove's Ray and Slurm executors, waited for until they are done.

The build itself stays one process, on a machine that sees the same folders: a step starts when the step
before it has ended, because how many shards it has may depend on what that one left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from datatrove.executor.ray import RayPipelineExecutor
from datatrove.executor.slurm import SlurmPipelineExecutor
from loguru import logger

from provenance import UserError, write_text

POLL = 5.0  # seconds between two looks at the queue
GRACE = 30.0  # seconds that a shared file system may take to show what a job wrote
MEMORY = 2  # GB for a shard
Shard = Callable[[Any, int, int], None]  # of (data, rank, world size)


def note_mistake(step: Shard, notes: Path, data: Any, rank: int, world_size: int) -> None:
    """Run one shard; a mistake of the user's is written to ``notes``, for the machine that waits."""
    try:
        step(data, rank, world_size)
    except UserError as error:
        write_text(notes / f"{rank:05d}.txt", str(error))
        raise


def _raise_mistake(notes: Path) -> None:
    for path in sorted(notes.glob("*.txt")):
        raise UserError(path.read_text(encoding="utf-8"))


def run_on_ray(name: str, step: Shard, tasks: int, workers: int, logs: Path) -> None:
    """Run all shards of a step on a Ray cluster: the one RAY_ADDRESS names, else one on this machine.

    Raises:
        UserError: Ray is not installed, or a shard met a mistake of the user's.
    """
    try:
        import ray
    except ImportError:
        raise UserError("Ray is not installed; run `.venv/bin/pip install ray`") from None
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level="ERROR")
    notes = logs / "mistakes"
    shutil.rmtree(notes, ignore_errors=True)
    logger.remove()
    RayPipelineExecutor(
        pipeline=[partial(note_mistake, step, notes)],
        tasks=tasks,
        workers=min(workers, tasks),
        mem_per_cpu_gb=MEMORY,
        logging_dir=str(logs),
    ).run()
    _raise_mistake(notes)


class _Slurm(SlurmPipelineExecutor):
    """Datatrove's executor without the job that adds up statistics, which nobody here reads."""

    def launch_merge_stats(self) -> None:
        """Nothing to add up."""


def slurm_options(given: Sequence[str]) -> dict[str, str]:
    """``("partition=cpu", "time=4:00:00")`` as a dict.

    Raises:
        UserError: an entry is not NAME=VALUE, or one of the two that Slurm needs is missing.
    """
    options = dict(entry.split("=", 1) for entry in given if "=" in entry)
    if len(options) != len(given) or not {"partition", "time"} <= set(options):
        raise UserError(
            "--executor slurm needs --slurm partition=NAME time=HH:MM:SS, and other sbatch options too"
        )
    return options


def _in_queue(job_id: str) -> bool:
    listed = subprocess.run(["squeue", "-h", "-j", job_id], capture_output=True, text=True)
    return listed.returncode == 0 and bool(listed.stdout.strip())


def run_on_slurm(
    name: str, step: Shard, tasks: int, workers: int, logs: Path, given: Sequence[str] = ()
) -> None:
    """Submit a step as a job array of at most ``workers`` shards at once, and wait until it left the queue.

    Raises:
        UserError: there is no Slurm here, it refuses the job, or a shard met a mistake of the user's.
    """
    options = slurm_options(given)
    if shutil.which("sbatch") is None:
        raise UserError("there is no sbatch on this machine; start the build on a login node of the cluster")
    notes = logs / "mistakes"
    shutil.rmtree(notes, ignore_errors=True)
    logger.remove()
    executor = _Slurm(
        pipeline=[partial(note_mistake, step, notes)],
        tasks=tasks,
        workers=min(workers, tasks),
        partition=options.pop("partition"),
        time=options.pop("time"),
        qos=options.pop("qos", ""),
        mem_per_cpu_gb=int(options.pop("mem-per-cpu", f"{MEMORY}G").rstrip("Gg")),
        job_name=f"corpus-{name}",
        sbatch_args=options,
        env_command=f'export PATH="{Path(sys.executable).parent}:$PATH"',
        logging_dir=str(logs),
    )
    try:
        executor.run()
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"sbatch refused the job of step {name} (exit {error.returncode}); see its message"
        ) from None
    completions, ended = logs / "completions", None
    while executor.job_id != -1:
        done = len(os.listdir(completions)) if completions.is_dir() else 0
        if done >= tasks:
            break
        if _in_queue(str(executor.job_id)):
            ended = None
        elif ended is None:
            ended = time.monotonic()
        elif time.monotonic() - ended > GRACE or any(notes.glob("*.txt")):
            break
        time.sleep(POLL)
    _raise_mistake(notes)
