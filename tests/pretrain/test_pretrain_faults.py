"""Disks that are full or refuse, torn checkpoints, SIGTERM under torchrun: nothing is lost, and said why."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import pretrain.checkpoint
from pretrain.checkpoint import checkpoints, last_checkpoint
from pretrain.command import parse
from pretrain.report import Report
from pretrain.train import train
from provenance import UserError, run_cli, verify_manifest

SHAPE = ["--layers", "1", "--hidden", "32", "--heads", "2", "--embedding", "32", "--batch-size", "8"]
STEPS = ["--steps", "20", "--save-every", "10", "--eval-every", "10", "--eval-rows", "8", "--log-every", "1"]


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="writes to /dev/full")


def words(corpus: Path, out: Path, *more: str) -> list[str]:
    return ["tiny", "--corpus", str(corpus), "--out", str(out), *SHAPE, *STEPS, *more]


def run(corpus: Path, out: Path, *more: str) -> None:
    train(parse(words(corpus, out, "--no-tensorboard", *more)))


def weights(out: Path) -> dict[str, torch.Tensor]:
    return torch.load(out / "checkpoints" / "step-20" / "state.pt", weights_only=True)["model"]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("finished")
    run(corpus, out)
    return out


@pytest.fixture
def unfinished(finished, tmp_path) -> Path:
    """A run of two checkpoints that was killed before it wrote its manifest."""
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    for name in ("manifest.json", "log.jsonl"):
        (out / name).unlink()
    return out


@contextlib.contextmanager
def small_files(largest: int):
    """No file of this process may grow beyond ``largest`` bytes, as by ``ulimit -f``."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def at_step(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], object]) -> None:
    """Do ``act`` once a run has done ``step`` steps."""
    advance = Report.advance

    def and_then(self: Report, done: int) -> None:
        advance(self, done)
        if done == step:
            act()

    monkeypatch.setattr(Report, "advance", and_then)


def failing(capfd: pytest.CaptureFixture[str], program: Callable[[], object]) -> str:
    """The one sentence on stderr that a program ends with."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        run_cli(program)
    said = capfd.readouterr().err.strip()
    assert ended.value.code == 1, said
    assert said.startswith("error: ")
    assert "\n" not in said
    return said


def no_more_room(monkeypatch: pytest.MonkeyPatch, undo: contextlib.ExitStack) -> str:
    """The device whose every write fails with ENOSPC; it is opened in place of state.pt."""
    monkeypatch.setattr(pretrain.checkpoint, "STATE", "/dev/full")
    return "No space left on device"


def no_longer_files(monkeypatch: pytest.MonkeyPatch, undo: contextlib.ExitStack) -> str:
    undo.enter_context(small_files(100_000))
    return "File too large"


@pytest.mark.parametrize("limit", [pytest.param(no_more_room, marks=needs_full), no_longer_files])
def test_full_disk_at_a_checkpoint(limit, corpus, finished, tmp_path, monkeypatch, capfd):
    """The second checkpoint does not fit: the first stays, nothing looks finished, resume ends as ever."""
    reasons: list[str] = []
    with contextlib.ExitStack() as undo:
        at_step(monkeypatch, 15, lambda: reasons.append(limit(monkeypatch, undo)))
        said = failing(capfd, lambda: run(corpus, tmp_path))
    assert f"checkpoints/step-20: {reasons[0]}; make room there" in said
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"step-10"}
    assert not {"manifest.json", "discriminator", "generator"} & {p.name for p in tmp_path.iterdir()}
    verify_manifest(tmp_path / "checkpoints" / "step-10", "pretrain.checkpoint")
    monkeypatch.undo()
    run(corpus, tmp_path, "--resume")
    assert "going on from step-10" in capfd.readouterr().out
    assert same(weights(tmp_path), weights(finished))


@needs_full
def test_full_disk_at_the_export(corpus, finished, unfinished, capfd):
    """All steps are done and the last checkpoint stands: a resumed run has only the export to do."""
    from transformers import PreTrainedModel

    with pytest.MonkeyPatch.context() as patch:

        def save(self, folder, *_, **__):
            with open("/dev/full", "wb") as file:
                file.write(b"0" * 100_000)

        patch.setattr(PreTrainedModel, "save_pretrained", save)
        shutil.rmtree(unfinished / "discriminator")
        said = failing(capfd, lambda: run(corpus, unfinished, "--resume"))
    assert f"{unfinished / 'discriminator'}: No space left on device" in said
    assert not (unfinished / "discriminator").exists()
    assert not (unfinished / "manifest.json").exists()
    run(corpus, unfinished, "--resume")
    verify_manifest(unfinished, "pretrain.train")
    assert same(weights(unfinished), weights(finished))


@pytest.mark.parametrize("curves", [True, False])
def test_full_disk_at_the_log(curves, corpus, finished, tmp_path, monkeypatch, capfd):
    """The log or its curves are named, whichever is full first; no traceback of TensorBoard's thread."""
    with contextlib.ExitStack() as undo:
        at_step(monkeypatch, 15, lambda: undo.enter_context(small_files(1000)))
        given = words(corpus, tmp_path, "--tensorboard" if curves else "--no-tensorboard")
        said = failing(capfd, lambda: train(parse(given)))
    assert "log.jsonl cannot be written" in said or "tensorboard cannot be written" in said
    assert "go on with --resume" in said
    monkeypatch.undo()
    run(corpus, tmp_path, "--resume")
    assert same(weights(tmp_path), weights(finished))
    logs = [(out / "log.jsonl").read_text().count("\n") for out in (tmp_path, finished)]
    assert logs == [20, 20]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_tensorboard_fails_in_its_thread(tmp_path, monkeypatch, capfd):
    """Its error is raised at the next call and not printed; the hook for other threads is given back."""
    import threading

    from tensorboard.summary.writer.record_writer import RecordWriter

    def full(self, data):
        raise OSError(28, "No space left on device")

    before = threading.excepthook
    with Report(tmp_path, 10) as report, pytest.raises(UserError, match="tensorboard cannot be written"):
        report.start(0, tensorboard=True)
        monkeypatch.setattr(RecordWriter, "write", full)
        for step in range(1, 10_000):
            report.log({"step": step, "loss": 1.0, "tokens_per_second": 1.0})
            time.sleep(0.01)
    assert threading.excepthook == before
    assert "Traceback" not in capfd.readouterr().err


def cut(checkpoint: Path) -> None:
    os.truncate(checkpoint / "state.pt", 1000)


def changed(checkpoint: Path) -> None:
    with open(checkpoint / "state.pt", "r+b") as file:
        file.seek(100_000)
        file.write(b"!")


def no_manifest(checkpoint: Path) -> None:
    (checkpoint / "manifest.json").unlink()


def half_a_manifest(checkpoint: Path) -> None:
    os.truncate(checkpoint / "manifest.json", 100)


def empty(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)
    checkpoint.mkdir()


@pytest.mark.parametrize("tear", [cut, changed, no_manifest, half_a_manifest, empty])
def test_torn_checkpoints_are_named(tear, unfinished):
    """The last whole one is taken; where none is, the run must not silently begin again."""
    said: list[str] = []
    tear(unfinished / "checkpoints" / "step-20")
    found = last_checkpoint(unfinished, said.append)
    assert found is not None
    assert found[0].name == "step-10"
    assert [line.split(":")[0] for line in said] == ["passed over step-20"]
    tear(unfinished / "checkpoints" / "step-10")
    with pytest.raises(UserError, match=r"no checkpoint under .* is whole; put one back .* --overwrite"):
        last_checkpoint(unfinished, said.append)
    assert len(said) == 3


def test_what_a_killed_save_leaves_is_no_checkpoint(corpus, finished, unfinished):
    """Neither an unfinished folder nor one of another name counts, and the former goes away."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    step_20 = unfinished / "checkpoints" / "step-20"
    killed = step_20.with_name(f".step-20.{process.pid}.partial")
    step_20.rename(killed)
    (unfinished / "checkpoints" / "step-20-copy").mkdir()
    assert [step for step, _ in checkpoints(unfinished)] == [10]
    run(corpus, unfinished, "--resume")
    assert not killed.exists()
    assert same(weights(unfinished), weights(finished))


def test_output_that_refuses(corpus, tmp_path, capfd):
    """A folder that cannot be made, and one without the right to write."""
    (tmp_path / "file").touch()
    refused = [(tmp_path / "file" / "run", "Not a directory")]
    if Path("/proc/self").exists():  # not even root can make a folder there
        refused.append((Path("/proc/zh-electra"), "No such file or directory"))
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o500)
        refused.append((tmp_path / "locked" / "run", "Permission denied"))
    for out, why in refused:
        said = failing(capfd, lambda out=out: run(corpus, out))
        assert f"{out} cannot be written ({why}); choose another output folder" in said


# --- torchrun -------------------------------------------------------------------------------------


def torchrun(corpus: Path, out: Path) -> subprocess.Popen:
    """Two processes by torchrun itself, once they have done a step."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "pretrain.train"]
    process = subprocess.Popen(
        [sys.executable, *command, *words(corpus, out, "--no-tensorboard", "--steps", "100000")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    log = out / "log.jsonl"
    for _ in range(6000):
        if process.poll() is not None or (log.exists() and log.stat().st_size):
            break
        time.sleep(0.1)
    return process


def assert_saved(out: Path, said: str) -> None:
    assert "SIGTERM: saved step-" in said
    assert last_checkpoint(out, print) is not None
    assert not (out / "manifest.json").exists()


def test_sigterm_to_torchrun(corpus, tmp_path):
    """Its own end status is 1, whatever its processes do; they have saved before."""
    process = torchrun(corpus, tmp_path)
    process.terminate()
    said, _ = process.communicate(timeout=600)
    assert_saved(tmp_path, said)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
def test_sigterm_to_a_process_of_torchrun(corpus, tmp_path):
    """One of them is enough: all save and stop, and torchrun ends with 0."""
    process = torchrun(corpus, tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ranks = {int(child): Path(f"/proc/{child}/environ").read_bytes() for child in children}
    os.kill(next(child for child, given in ranks.items() if b"\0RANK=1\0" in given), signal.SIGTERM)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert_saved(tmp_path, said)
