"""ONNX, tables and pictures of runs, several processes: case 52 and the launcher."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from pretrain.curves import draw, read_run, write_tables
from pretrain.graph import write_onnx
from pretrain.quiet import quiet
from provenance import UserError

CONFIG = {"embedding_size": 24, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.mark.parametrize("kind", [ElectraForPreTraining, ElectraForMaskedLM])
def test_onnx(kind, tmp_path):
    """onnxruntime's logits equal within 1e-4, for other numbers of rows and tokens, with padding."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    network = kind(ElectraConfig(vocab_size=500, intermediate_size=64, **CONFIG)).eval()
    write_onnx(network, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    for shape in ((1, 5), (3, 40)):
        ids = torch.randint(1, 500, shape)
        mask = torch.ones_like(ids)
        mask[-1, -2:] = 0
        types = (torch.arange(shape[1]) > 2).long().expand(shape)
        with torch.no_grad():
            ours = network(ids, attention_mask=mask, token_type_ids=types).logits.numpy()
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        (theirs,) = session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})
        assert np.abs(ours - theirs)[mask.bool().numpy()].max() < 1e-4


def test_onnx_without_its_packages(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs onnx; run .*\[onnx\]"):
        write_onnx(ElectraForPreTraining(ElectraConfig(vocab_size=9, **CONFIG)), tmp_path / "m.onnx")


def test_quiet_gives_back_what_it_took():
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with pytest.raises(ValueError, match="x"), quiet():
        assert logging.get_verbosity() == logging.CRITICAL
        raise ValueError("x")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def write_run(folder: Path, rate: float, loss: float | None) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"config": {"learning_rate": rate, "shape": {"layers": 4}}}))
    facts = {"step": 5, "tokens": 1000, "flops": 7, "tokens_per_second": 3.0}
    held = {"loss": 9.0, "generator_loss": 6.0, "discriminator_loss": loss, "fake_entropy": 0.4}
    line = facts | {f"heldout_{name}": value for name, value in held.items() if value is not None}
    (folder / "log.jsonl").write_text(json.dumps(facts) + "\n" + json.dumps(line) + '\n{"half')
    return folder


def test_tables_and_picture(tmp_path):
    """A run a line with what differs between them; the distance to the entropy of the fake rate."""
    runs = [read_run(write_run(tmp_path / name, rate, 0.35)) for name, rate in (("a", 0.1), ("b", 0.2))]
    write_tables(runs, tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "runs.csv").read_text(encoding="utf-8").split("\n")))
    assert [(r["run"], r["learning_rate"], r["below_entropy"]) for r in rows] == [
        ("a", "0.1", "0.05"),
        ("b", "0.2", "0.05"),
    ]
    assert "layers" not in rows[0]
    draw(runs, tmp_path / "out" / "curves.png")
    draw(runs, tmp_path / "out" / "flops.png", "flops")
    for name in ("curves", "flops"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    write_tables(runs, tmp_path / "out", "systems")
    for other, name in (("runs", "systems-runs"), ("curves", "systems")):
        ours, theirs = ((tmp_path / "out" / f"{n}.csv").read_bytes() for n in (other, name))
        assert ours == theirs
    with pytest.raises(UserError, match="no run"):
        read_run(tmp_path / "out")


SHAPE = ["--layers", "1", "--hidden", "32", "--heads", "2", "--embedding", "32", "--batch-size", "8"]


def launched(corpus: Path, out: Path, *more: str) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "pretrain.launch",
        "2",
        "tiny",
        "--corpus",
        str(corpus),
        "--out",
        str(out),
    ]
    return subprocess.Popen(
        [*command, *SHAPE, "--no-tensorboard", "--steps", "100000", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def wait_for(out: Path, process: subprocess.Popen) -> None:
    """Until the first log line is written."""
    for _ in range(6000):
        log = out / "log.jsonl"
        if process.poll() is not None or (log.exists() and log.stat().st_size):
            return
        time.sleep(0.1)


def test_sigterm_to_several_processes(corpus, tmp_path):
    """The launcher ends with 0 once they have saved, without a traceback."""
    process = launched(corpus, tmp_path)
    wait_for(tmp_path, process)
    process.terminate()
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert "SIGTERM: saved step-" in said
    assert "Traceback" not in said
    assert len(list((tmp_path / "checkpoints").glob("step-*/state.pt"))) == 1


def children(process: int) -> list[int]:
    """Processes below ``process``, on Linux."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in found]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
def test_one_process_dies(corpus, tmp_path):
    """The others stop, and the launcher says which it was, in sentences."""
    process = launched(corpus, tmp_path)
    wait_for(tmp_path, process)
    second = next(
        child
        for child in children(process.pid)
        if b"\0RANK=1\0" in b"\0" + Path(f"/proc/{child}/environ").read_bytes()
    )
    os.kill(second, signal.SIGKILL)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "error: process 1 of 2 ended with status -9" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_compile_changes_nothing_but_speed(corpus, tmp_path):
    """The losses of compiled layers equal those of plain ones within rounding."""
    from pretrain.command import parse
    from pretrain.train import train

    settings = ["--no-tensorboard", "--log-every", "1", "--steps", "5", "--dtype", "fp32", "--dropout", "0"]
    losses = []
    for name, more in (("plain", []), ("compiled", ["--compile"])):
        given = ["tiny", "--corpus", str(corpus), "--out", str(tmp_path / name), *SHAPE, *settings]
        train(parse([*given, *more]))
        lines = (tmp_path / name / "log.jsonl").read_text().split("\n")
        losses.append([json.loads(line)["loss"] for line in lines if line])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.mark.slow
def test_killed_20_times(corpus, tmp_path):
    """Case 51: kill -9 at 20 random moments of 200 steps, resumed: a whole run's weights, bit for bit."""
    settings = [
        "--no-tensorboard",
        "--steps",
        "200",
        "--save-every",
        "7",
        "--eval-every",
        "50",
        "--threads",
        "1",
    ]

    def start(name: str) -> subprocess.Popen:
        given = [
            "tiny",
            "--corpus",
            str(corpus),
            "--out",
            str(tmp_path / name),
            "--resume",
            *SHAPE,
            *settings,
        ]
        return subprocess.Popen(
            [sys.executable, "-m", "pretrain.train", *given],
            stdout=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
        )

    began = time.monotonic()
    assert start("whole").wait() == 0
    whole = time.monotonic() - began
    moments = np.random.default_rng(0)
    for _ in range(20):
        process = start("killed")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(0.3, 1.0) * whole)
        process.kill()
        process.wait()
    assert start("killed").wait() == 0
    ours, theirs = (
        torch.load(tmp_path / name / "checkpoints" / "step-200" / "state.pt", weights_only=True)["model"]
        for name in ("killed", "whole")
    )
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
