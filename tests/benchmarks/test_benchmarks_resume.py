"""From start to table in one command, killed twice on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.record import find_records
from benchmarks.tables import write_tables
from benchmarks.tasks import TASKS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_run_killed_twice_is_finished_by_the_same_command(tiny_model: Path, tmp_path: Path) -> None:
    """Every task, two seeds: no finished seed is run again, and none is missing at the end."""
    runs = tmp_path / "runs"
    command = [sys.executable, "-m", "benchmarks.run", str(tiny_model), "--task", "all", "--seeds", "2"]
    command += ["--data", str(ROOT / "benchmarks/sample"), "--results", str(runs), "--name", "toy"]
    command += ["--predictions", str(tmp_path / "predictions"), "--jobs", "2", "--epochs", "1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}

    def written() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path, _ in find_records(runs)}

    before: dict[Path, int] = {}
    for _ in range(2):
        process = subprocess.Popen(command, start_new_session=True, **quiet)
        while process.poll() is None and len(written()) < len(before) + 2:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = written()
        assert now.items() >= before.items()
        assert 2 * len(TASKS) > len(now) >= len(before) + 2
        before = now
    subprocess.run(command, check=True, **quiet)
    assert written().items() >= before.items()
    assert len(written()) == 2 * len(TASKS)
    assert not list(tmp_path.rglob("*.partial"))
    groups, _ = write_tables(runs, ROOT / "results/reference", tmp_path / "tables", pictures=False)
    assert [len(group.records) for group in groups] == [2] * len(TASKS)
