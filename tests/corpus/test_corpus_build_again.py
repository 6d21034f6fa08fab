"""The same bytes from any number of workers, after a kill and from a manifest (case 32)."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpus import build
from corpus.command import parse
from corpus.config import Runtime
from corpus.engine import WorkerError
from provenance import UserError, verify_manifest, write_manifest

ROOT = Path(__file__).resolve().parents[2]
KEEPING = Runtime(workers=1, progress=False, keep_work=True)


def hashes(folder: Path) -> dict[str, str]:
    return {name: entry["sha256"] for name, entry in verify_manifest(folder)["files"].items()}


def test_workers_change_nothing(inputs: list[str], corpus: Path, tmp_path: Path, run: Callable) -> None:
    done = run(inputs, tmp_path / "two", "--workers", "2", "--length", "both")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'two'}\n"
    # no terminal: a line for each step, then what came out
    lines = done.stderr.split("\n")
    assert [line.split(",")[0] for line in lines[:7]] == [
        "read: 3 of 3 shards",
        "clean: 3 of 3 shards",
        "recurring: 1 of 1 shards",
        "sign: 3 of 3 shards",
        "match: 17 of 17 shards",
        "keep: 1 of 1 shards",
        "pack: 3 of 3 shards",
    ]
    assert "120 of 126 documents" in lines[7]
    assert lines[8:] == [f"report: {tmp_path / 'two' / 'report.html'}", ""]
    assert hashes(tmp_path / "two") == hashes(corpus)


@pytest.mark.parametrize(
    ("step", "workers"), [("clean", "2"), ("recurring", "1"), ("sign", "1"), ("match", "2"), ("keep", "1")]
)
def test_killed_run_is_taken_up_again(
    inputs: list[str],
    corpus: Path,
    tmp_path: Path,
    step: str,
    workers: str,
    options: Callable,
    command: Callable,
) -> None:
    out = tmp_path / "killed"
    process = subprocess.Popen(
        command(inputs, out, "--length", "both", "--workers", workers),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 600
    while not list(out.glob(f".work/*/*/logs/{step}/completions/*")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "manifest.json").exists()
    before = {p: p.stat().st_mtime_ns for p in out.glob(".work/*/*/raw/*/*.parquet")}
    assert before
    build.build(replace(options(inputs, out, length="both"), runtime=KEEPING))
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert hashes(out) == hashes(corpus)


def test_work_is_kept_where_a_worker_died(
    inputs: list[str], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Callable
) -> None:
    """Unlike after a mistake in the input, the same command goes on from there."""
    run_step = build.run_step

    def die(name: str, *arguments: Any) -> None:
        if name == "match":
            raise WorkerError("step match: a worker process died")
        run_step(name, *arguments)

    monkeypatch.setattr(build, "run_step", die)
    chosen = options(inputs, tmp_path / "out", length="both")
    with pytest.raises(WorkerError):
        build.build(chosen)
    monkeypatch.undo()
    signed = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").glob(".work/*/*/signed/*.parquet")}
    assert len(signed) == 3
    build.build(replace(chosen, runtime=KEEPING))
    assert {p: p.stat().st_mtime_ns for p in signed} == signed
    assert hashes(tmp_path / "out") == hashes(corpus)


def test_finished_corpus_is_reused(
    inputs: list[str], corpus: Path, capsys: pytest.CaptureFixture[str], options: Callable
) -> None:
    before = (corpus / "manifest.json").stat().st_mtime_ns
    assert build.build(options(inputs, corpus, length="both")) == corpus
    assert "reused" in capsys.readouterr().err
    assert (corpus / "manifest.json").stat().st_mtime_ns == before


def test_manifest_can_be_replayed(inputs: list[str], corpus: Path, tmp_path: Path, options: Callable) -> None:
    parsed = parse(["--from", str(corpus / "manifest.json"), "--out", "elsewhere"])
    assert parsed.config == options(inputs, corpus, length="both").config
    assert list(parsed.inputs) == inputs
    assert parse(["b.txt", "--from", str(corpus), "--seed", "3"]).inputs == ("b.txt",)
    write_manifest(tmp_path, stage="pretrain.train", config={"shape": 1})
    with pytest.raises(UserError, match="not the manifest of a corpus"):
        parse(["--from", str(tmp_path)])


@pytest.mark.parametrize(
    ("part", "entry"),
    [
        ("config", {"min_han": "9"}),
        ("config", {"min_han": True}),
        ("config", {"length": "7"}),
        ("config", {"length": [128, "7"]}),
        ("config", {"weights": [1]}),
        ("config", {"weights": "a=1"}),
        ("config", {"convert": None}),
        ("config", {"shape": 1}),
        ("runtime", {"inputs": "a.txt"}),
        ("runtime", {"inputs": [None]}),
        ("runtime", {"benchmarks": 5}),
    ],
)
def test_edited_manifest_is_not_replayed(
    corpus: Path, tmp_path: Path, part: str, entry: dict[str, Any]
) -> None:
    manifest = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))
    manifest[part].update(entry)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json is not the manifest of a corpus of this version"):
        parse(["--from", str(tmp_path / "manifest.json")])


def test_argument_that_is_not_utf8() -> None:
    """It could not stand in a manifest."""
    with pytest.raises(UserError, match="is not UTF-8; rename"):
        parse(["a.txt", "--out", "\udcff"])
