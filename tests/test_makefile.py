"""What the targets of the Makefile run, as `make --dry-run` prints it."""

import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def program_of(tmp_path: Path, *arguments: str) -> list[str]:
    """The words of the one command that a target runs, after ``python -m``."""
    ready = tmp_path / ".ready"
    ready.touch()
    command = ["make", "--dry-run", "--no-print-directory", "-f", str(ROOT / "Makefile"), "-o", str(ready)]
    done = subprocess.run(
        [*command, f"READY={ready}", "DATA=none", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout)[2:]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ([], ["--preset", "wiki", "--out", "data/corpus/wiki"]),
        (["CORPUS=web", "INPUT=a.txt"], ["a.txt", "--preset", "web", "--out", "data/corpus/web"]),
        (["CORPUS=mine", "INPUT=a.txt b.txt"], ["a.txt", "b.txt", "--out", "data/corpus/mine"]),
        (["CORPUS=my/folder", "INPUT=a.txt"], ["a.txt", "--out", "my/folder"]),
        (["INPUT=a.txt"], ["a.txt"]),
        (["INPUT=a.txt", "OUT=my folder"], ["a.txt", "--out", "my folder"]),
        (["INPUT='my notes/*.txt' b.txt"], ["my notes/*.txt", "b.txt"]),
        (["INPUT=my notes.txt"], ["my notes.txt"]),
    ],
)
def test_corpus(tmp_path: Path, variables: list[str], expected: list[str]) -> None:
    """CORPUS names the corpus; a path may hold spaces."""
    (tmp_path / "my notes.txt").touch()
    assert program_of(tmp_path, "corpus", *variables) == ["corpus.build", *expected]


def test_pretraining_takes_the_corpus_by_the_same_name(tmp_path: Path) -> None:
    """CORPUS means in pretraining what it means in building; a folder may hold spaces."""
    found = program_of(tmp_path, "pretrain-mini", "CORPUS=my corpus", "OUT=my run", "STEPS=300")
    assert found == ["pretrain.train", "mini", "--corpus", "my corpus", "--out", "my run", "--steps", "300"]
