"""Mistakes in inputs, folders and settings of a build (case 34)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpus import build
from corpus.command import check_config
from corpus.config import PRESETS
from provenance import UserError, hold


@pytest.fixture
def expect_mistake(run: Callable) -> Callable[..., None]:
    """One sentence, exit status 1, nothing left behind."""

    def expect(inputs: list[str], out: Path, message: str, *more: str) -> None:
        existed = out.exists()
        done = run(inputs, out, "--no-progress", *more)
        assert (done.returncode, done.stdout) == (1, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") == 1
        assert out.exists() == existed

    return expect


def test_missing_input(tmp_path: Path, expect_mistake: Callable) -> None:
    expect_mistake(["none.jsonl"], tmp_path / "out", "none.jsonl")


def test_damage_that_shows_late(inputs: list[str], tmp_path: Path, expect_mistake: Callable) -> None:
    whole = Path(inputs[0]).read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-20])
    expect_mistake(
        [str(tmp_path / "cut.jsonl.gz"), inputs[1]], tmp_path / "out", "cut.jsonl.gz", "--workers", "2"
    )


def test_no_document_passes(tmp_path: Path, write_lines: Callable, expect_mistake: Callable) -> None:
    source = write_lines(tmp_path / "english.jsonl.gz", [{"id": "a", "text": "no Chinese here"}])
    expect_mistake([str(source)], tmp_path / "out", "no document passed")


def test_foreign_folder_is_refused(inputs: list[str], tmp_path: Path, options: Callable) -> None:
    """Case 34: nothing is deleted without --overwrite, and files of others never."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="--overwrite"):
        build.build(options(inputs[:1], tmp_path))
    out = build.build(replace(options(inputs[:1], tmp_path), overwrite=True))
    assert (out / "notes.txt").read_text() == "mine"
    with pytest.raises(UserError, match="--overwrite"):
        build.build(options(inputs[:1], tmp_path, seed=2))


def test_held_folder_is_refused(inputs: list[str], tmp_path: Path, options: Callable) -> None:
    with hold(tmp_path / "out"), pytest.raises(UserError, match="held by another run"):
        build.build(options(inputs[:1], tmp_path / "out"))
    assert (tmp_path / "out").is_dir()


@pytest.mark.parametrize(
    "entry", ["history", "history=0", "history=-1", "history=x", "=0.5", "history=1e7", "a=nan"]
)
def test_bad_weight(entry: str) -> None:
    with pytest.raises(UserError, match="SOURCE=WEIGHT"):
        check_config(replace(PRESETS["web"], weights=(entry,)))


def test_two_weights_for_a_source() -> None:
    with pytest.raises(UserError, match="twice"):
        check_config(replace(PRESETS["web"], weights=("a=2", "a=3")))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"min_similarity": 1.1}, "--min-similarity 1.1 is not a share"),
        ({"max_kana_share": -0.1}, "--max-kana-share -0.1 is not a share"),
        ({"held_out": float("nan")}, "--held-out nan is not a share"),
        ({"held_out": 1.0}, "no document to train on"),
        ({"recurring_lines": -1}, "--recurring-lines -1 is not a number from 0 to"),
        ({"min_han": 10**20}, "--min-han 1(0+) is not a number from 0 to 2147483647"),
        ({"text_key": ""}, "--text-key is empty"),
        ({"blocklist": "/dev/zero"}, "--blocklist /dev/zero is no file"),
        ({"blocklist": ""}, "--blocklist '' is no file"),
        ({"min_fragment": 129}, "more than a row of 128 tokens"),
        ({"min_fragment": 513, "length": (512,)}, "more than a row of 512 tokens"),
        ({"length": (128, 7)}, "--length 7 is not a number of tokens from 8 to 4096"),
        ({"length": ()}, "--length names no number"),
    ],
)
def test_settings_that_make_no_sense(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_config(replace(PRESETS["web"], **setting))


def test_presets_make_sense() -> None:
    for preset in PRESETS.values():
        check_config(preset)
        check_config(replace(preset, seed=-1, min_fragment=128))


def test_usage_error_exits_2(tmp_path: Path, run: Callable) -> None:
    done = run([], tmp_path / "out", "--lenght", "128")
    assert done.returncode == 2


def test_what_cannot_be_built_says_why(tmp_path, capsys):
    export = tmp_path / "only-redirects.xml"
    head = "<title>甲</title><ns>0</ns><id>1</id><redirect title='乙' />"
    page = f"<page>{head}<revision><text>x</text></revision></page>"
    export.write_text(f"<mediawiki>{page}</mediawiki>", encoding="utf-8")
    out = ["--out", str(tmp_path / "out"), "--no-progress"]
    with pytest.raises(UserError, match=r"no document \(left out: redirect 1\)"):
        build.build(build.parse([str(export), *out]))
    with pytest.raises(UserError, match="--workers 0 is no number"):
        build.build(build.parse([str(export), *out, "--workers", "0"]))
    with pytest.raises(UserError, match="missing is no folder"):
        build.build(build.parse([str(export), *out, "--benchmarks", str(tmp_path / "missing")]))
