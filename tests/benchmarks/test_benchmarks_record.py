"""Records: identity, place, reading back, damage."""

import dataclasses
import json

import pytest

from benchmarks.record import (
    Record,
    bench_id,
    find_records,
    is_finished,
    read_record,
    record_path,
    write_record,
)
from provenance import UserError

EXAMPLE = Record(
    model={
        "name": "org--name",
        "weights_sha256": "a" * 64,
        "tokenizer_sha256": "b" * 64,
        "revision": None,
        "family": "electra",
        "parameters": 12_280_576,
    },
    task="drcd",
    task_version="1",
    protocol="reduced",
    protocol_note="train: 90 % of dev",
    seed=3,
    bench_id="0123456789ab",
    config={"learning_rate": 3e-4, "epochs": 2},
    scores={"dev": {"exact_match": 62.5, "f1": 80.25}},
    examples={"train": 9, "dev": 1},
    data_sha256={"train": "c" * 64, "dev": "c" * 64},
    predictions_sha256={"dev": "d" * 64},
    degenerate=False,
    git={"commit": None, "dirty": None},
    environment={"python": "3.11", "device": "cpu", "dtype": "fp32", "threads": 1},
    started="2026-01-01T00:00:00+00:00",
    seconds=1.5,
)
IDENTITY = {
    "config": {"lr": 1.0},
    "weights_sha256": "a",
    "tokenizer_sha256": "b",
    "task": {"name": "t", "version": "1"},
    "data_sha256": {"dev": "c"},
    "protocol": "full",
    "protocol_note": "",
}


def test_a_record_comes_back_from_its_place(tmp_path):
    path = write_record(tmp_path, EXAMPLE)
    assert path == tmp_path / "org--name" / "drcd" / "0123456789ab" / "seed-03.json"
    assert path == record_path(tmp_path, "org--name", "drcd", "0123456789ab", 3)
    assert read_record(path) == EXAMPLE
    assert list(find_records(tmp_path)) == [(path, EXAMPLE)]
    assert is_finished(path)
    assert not is_finished(path.with_name("seed-04.json"))
    assert [file.name for file in path.parent.iterdir()] == ["seed-03.json"]  # no partial file stays


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"lr": 2.0}},
        {"weights_sha256": "x"},
        {"tokenizer_sha256": "x"},
        {"task": {"name": "t", "version": "2"}},
        {"data_sha256": {"dev": "x"}},
        {"protocol": "reduced"},
        {"protocol_note": "train: first 3000 rows"},
    ],
)
def test_bench_id_follows_all_that_decides_a_score(change):
    """Nothing stale is found under another configuration, vocabulary or file."""
    assert bench_id(**IDENTITY) == bench_id(**dict(reversed(IDENTITY.items())))
    assert len(bench_id(**IDENTITY)) == 12
    assert bench_id(**{**IDENTITY, **change}) != bench_id(**IDENTITY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "not a record of schema"),
        ({"seed": -1}, "seed is -1"),
        ({"protocol": "other"}, "protocol is 'other'"),
        ({"scores": {"dev": {"f1": 180.0}}}, "f1 on dev is 180.0"),
        ({"scores": {"dev": {"f1": None}}}, "f1 on dev is None"),
        ({"scores": []}, "scores is not an object"),
        ({"model": {"name": "x"}}, "model lacks weights_sha256"),
        ({"degenerate": None}, "degenerate is neither"),
        ({"extra": 1}, "unknown fields extra"),
    ],
)
def test_a_damaged_record_is_named(tmp_path, change, message):
    path = write_record(tmp_path, EXAMPLE)
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **change}), "utf-8")
    with pytest.raises(UserError, match=message) as error:
        read_record(path)
    assert str(path) in str(error.value)


def test_a_cut_or_misplaced_record_is_not_taken_for_finished(tmp_path):
    path = write_record(tmp_path, EXAMPLE)
    moved = path.with_name("seed-07.json")
    moved.write_bytes(path.read_bytes())
    with pytest.raises(UserError, match="another run"):
        is_finished(moved)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match="not a readable record"):
        is_finished(path)
    with pytest.raises(UserError, match="lacks task"):
        lacking = {k: v for k, v in dataclasses.asdict(EXAMPLE).items() if k != "task"}
        path.write_text(json.dumps(lacking), "utf-8")
        read_record(path)


@pytest.mark.parametrize("keep_seal", [True, False])
def test_a_record_edited_by_hand_is_refused_by_name(tmp_path, keep_seal):
    """A plausible number is not enough: the seal is over the whole content."""
    path = write_record(tmp_path, EXAMPLE)
    content = json.loads(path.read_text("utf-8"))
    content["scores"]["dev"]["f1"] += 1
    if not keep_seal:
        del content["sha256"]
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(UserError, match=r"seed-03\.json was changed after it was written"):
        list(find_records(tmp_path))
