"""The launcher's command line: help and mistakes are said once, before any process starts."""

import sys

import pytest

import pretrain.launch
from provenance import run_cli


@pytest.fixture
def call(monkeypatch, capfd):
    """Run the launcher's ``main``: its status, what it printed, and what it would have launched."""
    launched: list[tuple[int, list[str]]] = []
    monkeypatch.setattr(pretrain.launch, "launch", lambda *given: launched.append(given))

    def run(*words: object) -> tuple[int, str, list]:
        monkeypatch.setattr(sys, "argv", ["launch", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            run_cli(pretrain.launch.main)
        seen = capfd.readouterr()
        return int(ended.value.code or 0), seen.out + seen.err, launched

    return run


def test_help(call):
    status, said, launched = call("--help")
    assert (status, launched) == (0, [])
    assert said.startswith("usage: python -m pretrain.launch PROCESSES SIZE")
    status, said, launched = call(2, "mini", "--help")
    assert (status, launched) == (0, [])
    assert said.count("usage: python -m pretrain.train") == 1


@pytest.mark.parametrize("words", [[], ["--out"], ["0", "tiny"], ["two", "tiny"], ["2"]])
def test_usage(words, call):
    status, said, launched = call(*words)
    assert (status, launched) == (2, [])
    assert said.startswith("usage: ")


def test_mistakes_are_said_once(call, corpus, tmp_path):
    given = ["tiny", "--out", tmp_path / "out", "--corpus"]
    status, said, launched = call(2, *given, tmp_path / "none")
    assert (status, launched, said.count("is no folder")) == (1, [], 1)
    status, said, launched = call(2, *given, corpus, "--objective", "none")
    assert (status, launched, said.count("is not known")) == (1, [], 1)
    assert call(2, "huge", "--corpus", corpus)[::2] == (2, [])
    status, said, launched = call(2, *given, corpus)
    assert (status, said) == (0, "")
    assert launched == [(2, [str(word) for word in (*given, corpus)])]
