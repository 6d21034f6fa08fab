"""What --help shows: names of values, defaults in words, and every name that may be given."""

import importlib

import pytest

from benchmarks.seeds import parse_seeds, seeds_text
from benchmarks.speed.__main__ import MEASURED

PROGRAMS = [
    "run",
    "data",
    "score",
    "compare",
    "tables",
    "fetch",
    "predict",
    "speed.__main__",
    "speed.accuracy",
]


def help_of(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr("sys.argv", [program, "--help"])
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{program}").main()
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("program", PROGRAMS)
def test_options_are_shown_for_people(program: str, monkeypatch, capsys):
    """No Python in it, such as ``{None}|INT`` or ``default: None``, and no folder of this machine."""
    shown = help_of(program, monkeypatch, capsys)
    for word in ("None", "STR", "PATH", "False", "(default: )", "default: /"):
        assert word not in shown


def test_speed_lists_what_it_measures(monkeypatch, capsys):
    shown = help_of("speed.__main__", monkeypatch, capsys)
    words = shown.replace("│", " ").replace(",", " ").replace(";", " ").split()
    assert set(MEASURED) <= set(words)


@pytest.mark.parametrize("text", ["10", "1", "3,", "3,5", "0,2"])
def test_seeds_are_shown_as_they_are_written(text: str):
    assert seeds_text(parse_seeds(text)) == text
    assert seeds_text(parse_seeds("0-9")) == "10"
