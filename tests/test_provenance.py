"""Identity, atomic output, locks and manifests."""

import dataclasses
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import provenance
from provenance import UserError


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float = 0.15
    name: str = "甲"
    lengths: tuple[int, ...] = (128, 512)


def test_config_id_is_sha256_of_sorted_json():
    canonical = '{"lengths":[128,512],"name":"甲","rate":0.15}'
    assert provenance.config_id(Config()) == hashlib.sha256(canonical.encode()).hexdigest()[:12]


def test_config_id_ignores_key_order_and_sees_every_value():
    assert provenance.config_id({"a": 1, "b": 2}) == provenance.config_id({"b": 2, "a": 1})
    assert provenance.config_id(Config()) != provenance.config_id(Config(rate=0.25))


def test_config_id_refuses_what_json_cannot_hold():
    with pytest.raises(TypeError, match="function"):
        provenance.config_id({"f": lambda: None})


def test_atomic_file_leaves_nothing_on_failure(tmp_path: Path):
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), provenance.atomic_file(target) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_atomic_folder_replaces_whole_or_not_at_all(tmp_path: Path):
    target = tmp_path / "folder"
    with provenance.atomic_folder(target) as partial:
        (partial / "a").write_text("1")
    with pytest.raises(RuntimeError), provenance.atomic_folder(target) as partial:
        (partial / "b").write_text("2")
        raise RuntimeError
    assert [p.name for p in target.iterdir()] == ["a"]
    with provenance.atomic_folder(target) as partial:
        (partial / "c").write_text("3")
    assert [p.name for p in target.iterdir()] == ["c"]
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def _hold_until_told(folder: Path, ready, done) -> None:
    with provenance.hold(folder):
        ready.set()
        done.wait(30)


def test_a_second_run_on_one_folder_is_refused(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold_until_told, args=(tmp_path, ready, done))
    other.start()
    assert ready.wait(30)
    with pytest.raises(UserError, match="held by another run"), provenance.hold(tmp_path):
        pass
    other.kill()  # a killed run leaves no lock behind
    other.join()
    with provenance.hold(tmp_path):
        pass


def finished(folder: Path) -> Path:
    folder.mkdir()
    (folder / "rows").write_text("甲\n")
    (folder / ".hidden").write_text("")
    provenance.write_manifest(
        folder, stage="corpus.build", config=Config(), rows={"rows": 1}, counts={"kept": 1}
    )
    return folder


def test_manifest_names_each_file_with_rows_bytes_and_hash(tmp_path: Path):
    folder = finished(tmp_path / "a")
    manifest = provenance.verify_manifest(folder, "corpus.build")
    digest = hashlib.sha256("甲\n".encode()).hexdigest()
    assert manifest["files"] == {"rows": {"bytes": 4, "sha256": digest, "rows": 1}}
    assert manifest["config_id"] == provenance.config_id(Config())
    assert {"git", "environment", "parent", "schema"} <= manifest.keys()


def test_manifest_chain_holds_the_parents_hash(tmp_path: Path):
    parent = finished(tmp_path / "a")
    child = tmp_path / "b"
    child.mkdir()
    manifest = provenance.write_manifest(child, stage="pretrain.train", config={}, parent=parent)
    assert manifest["parent"] == hashlib.sha256((parent / "manifest.json").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda f: (f / "rows").write_text("乙\n"), "rows differs"),
        (lambda f: (f / "rows").unlink(), "rows is named in its manifest but missing"),
        (lambda f: (f / "manifest.json").unlink(), "was not finished"),
        (lambda f: (f / "manifest.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "manifest.json").write_text(json.dumps({"schema": 0})), "not a manifest of schema"),
    ],
)
def test_a_harmed_folder_does_not_verify(tmp_path: Path, harm, message: str):
    folder = finished(tmp_path / "a")
    harm(folder)
    with pytest.raises(UserError, match=message):
        provenance.verify_manifest(folder)


def test_a_folder_of_another_stage_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"written by corpus\.build"):
        provenance.verify_manifest(finished(tmp_path / "a"), "pretrain.train")


def test_a_users_mistake_is_one_line_and_exit_1():
    program = (
        "import provenance\n"
        "def main(): raise provenance.UserError('x.tsv line 3: two columns; give three')\n"
        "provenance.run_cli(main)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "error: x.tsv line 3: two columns; give three\n"


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"PYTHONIOENCODING": "gbk"}, "?野家 ± ?".encode("gbk")),
        ({"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "𠮷野家 ± ?".encode()),
    ],
)
def test_a_console_that_is_not_utf8(settings: dict[str, str], shown: bytes, tmp_path: Path):
    """What it cannot show becomes "?"; arguments, and files that they name, are found all the same."""
    (tmp_path / "𠮷野家").touch()
    program = (
        "import os, sys, provenance\n"
        "def main():\n"
        "    assert os.path.exists(sys.argv[1]) and len(sys.argv[1]) == 3\n"
        "    print(sys.argv[1], chr(0xb1), chr(0xd83d))\n"
        "provenance.run_cli(main)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(provenance.__file__).parent), **settings}
    command = [sys.executable, "-c", program, "𠮷野家".encode()]
    result = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment, check=False)
    assert (result.stdout, result.stderr, result.returncode) == (shown + b"\n", b"", 0)


def test_interrupt_while_modules_load(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    before = sys.excepthook
    provenance.quiet_interrupt()
    assert sys.excepthook is before  # imported by someone else's program
    monkeypatch.setattr(sys, "argv", ["-m", "option"])
    provenance.quiet_interrupt()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "interrupted\n"
    sys.excepthook(ValueError, ValueError("a fault of ours"), None)
    assert "ValueError: a fault of ours" in capsys.readouterr().err


def test_leftovers_of_a_killed_process_go(tmp_path: Path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    while provenance._is_running(ended.pid):  # it stays as a zombie: nobody has asked for its status
        time.sleep(0.01)
    (tmp_path / f".step-5.{ended.pid}.partial").mkdir()
    with provenance.atomic_folder(tmp_path / "step-5") as partial:
        (partial / "a").write_text("1")
    ended.wait()
    assert [p.name for p in tmp_path.iterdir()] == ["step-5"]


def test_a_process_ends_with_another(tmp_path: Path):
    code = "import sys, time, provenance; provenance.end_with(int(sys.argv[1])); time.sleep(600)"
    first = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    second = subprocess.Popen([sys.executable, "-c", code, str(first.pid)])
    first.kill()  # and never waited for, as by a program that still reads its output
    assert second.wait(timeout=300) == 1
    first.communicate()


@pytest.mark.parametrize("folder", [True, False])
def test_a_manifest_is_found_by_its_folder_or_itself(folder: bool, tmp_path: Path):
    provenance.write_manifest(tmp_path, stage="corpus.build", config={"a": 1})
    given = tmp_path if folder else tmp_path / "manifest.json"
    assert provenance.read_manifest(given)["config"] == {"a": 1}


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    program = tmp_path / "long.py"
    program.write_text("from provenance import run_cli\nrun_cli(lambda: print('x' * 1_000_000))\n")
    environment = dict(os.environ, PYTHONPATH=str(Path(provenance.__file__).parent))
    run = subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    run.stdout.read(10)
    run.stdout.close()
    assert run.wait(timeout=300) == 141
    assert run.stderr.read() == b""
