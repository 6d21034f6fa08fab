"""The engine that runs steps: a worker that dies, errors, what is done stays done."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from corpus.config import PRESETS, Runtime
from corpus.engine import WorkerError, run_step
from corpus.job import Job, counts_path
from provenance import UserError, write_json

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(config=PRESETS["web"], parts=(), work=tmp_path, vocab=tmp_path)


def count(rank: int, job: Job) -> None:
    with open(job.work / f"ran-{rank}", "a") as file:
        file.write("x")
    write_json(counts_path(job, "step", rank), {})


def killed(data: Any, rank: int, world_size: int, job: Job) -> None:
    """Rank 1 is killed as by a lack of memory, the first time it runs."""
    if rank == 1 and not (job.work / "again").exists():
        while not counts_path(job, "step", 0).is_file():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    count(rank, job)


def mistaken(data: Any, rank: int, world_size: int, job: Job) -> None:
    if rank == 1:
        raise UserError("the file is cut off")
    time.sleep(0.01 if rank == 0 else 600)


def lost(data: Any, rank: int, world_size: int, job: Job) -> None:
    if rank != 1:
        count(rank, job)


TWO = Runtime(workers=2, progress=False)


def test_a_worker_that_dies_fails_the_step_by_name(job: Job) -> None:
    with pytest.raises(WorkerError, match=r"step step: a worker process died .* of 4 shards"):
        run_step("step", killed, 4, job, TWO)
    assert (job.work / "ran-0").read_text() == "x"
    (job.work / "again").touch()
    run_step("step", killed, 4, job, TWO)
    assert (job.work / "ran-0").read_text() == "x"  # not run again
    assert (job.work / "ran-1").read_text() == "x"


def test_an_error_stops_the_others(job: Job) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match="the file is cut off"):
        run_step("step", mistaken, 3, job, TWO)
    assert time.monotonic() - began < 300


@pytest.mark.parametrize("workers", [1, 2])
def test_a_rank_without_result_is_named(job: Job, workers: int) -> None:
    with pytest.raises(UserError, match="step step left no result for shard 1 of 3"):
        run_step("step", lost, 3, job, Runtime(workers=workers, progress=False))


def in_turn(data: Any, rank: int, world_size: int, job: Job) -> None:
    with open(job.work / "turns", "a") as file:
        file.write(str(rank))
    count(rank, job)


def test_the_largest_ranks_begin_first(job: Job) -> None:
    run_step("step", in_turn, 4, job, Runtime(workers=1, progress=False), sizes=[2, 9, 1, 9])
    assert (job.work / "turns").read_text() == "1302"


def test_interrupt_while_workers_start(tmp_path: Path, vocab_path: Path) -> None:
    """Ctrl-C at the moment when the first workers are asked for and their modules still load."""
    out = tmp_path / "corpus"
    command = [sys.executable, "-m", "corpus.build", "--preset", "sample", "--workers", "2"]
    command += ["--vocab", str(vocab_path), "--out", str(out)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    ) as build:
        while not list(out.glob(".work/*/*/logs/read/executor.json")):
            assert build.poll() is None
            time.sleep(0.01)
        os.killpg(build.pid, signal.SIGINT)
        assert build.communicate(timeout=300) == ("", "interrupted\n")
    assert build.returncode == 130


def test_no_ranks_is_no_work(job: Job) -> None:
    run_step("step", lost, 0, job, TWO)


def test_a_full_disk_names_the_array(tmp_path: Path) -> None:
    """numpy's own message has neither path nor reason. The limit stands in for the disk."""
    code = (
        "import resource, sys, numpy\n"
        "from pathlib import Path\n"
        "from corpus.job import write_array\n"
        "from provenance import run_cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "run_cli(lambda: write_array(Path(sys.argv[1]), numpy.zeros(9999)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.npy")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'a.npy'}: File too large")
    assert list(tmp_path.iterdir()) == []
