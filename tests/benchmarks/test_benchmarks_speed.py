"""The speed benchmark compares equal work, in turns, and makes its inputs larger without repeating them."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks.speed import turns
from benchmarks.speed.corpus import peak_of_workers
from benchmarks.speed.inputs import repeat_text, repeat_wiki
from benchmarks.speed.pretrain import our_step, random_batch, transformers_step
from corpus.inputs.sources import read_documents
from provenance import UserError

CPU = torch.device("cpu")
SAMPLE = Path(__file__).parents[2] / "corpus" / "sample" / "zhwiki-sample.xml"


def test_contestants_do_the_same_work():
    """Untrained, the generator's loss is ln 21128 = 9.96 for each, and updates lower the sum.

    The discriminator's weighs 2 here: 2 ln 2 in transformers, 11.34 in all; ours starts at a share of 0.26
    replaced, which with 36 of 256 replaced gives 9.96 - 2 (36 ln 0.26 + 220 ln 0.74) / 256 = 10.85.
    """
    batch = random_batch(4, 64)
    assert len(batch.positions) == 36
    ways = {our_step: 10.85, transformers_step: 11.34, partial(transformers_step, chosen_only=True): 11.34}
    for make, first in ways.items():
        step = make("tiny", batch, CPU, "fp32")
        losses = [step() for _ in range(6)]
        assert abs(losses[0] - first) < 0.3
        assert losses[-1] < losses[0]


def test_contestants_take_turns_and_the_first_round_does_not_count():
    order: list[str] = []
    steps = {name: lambda name=name: order.append(name) or len(order) for name in ("a", "b")}
    seconds, values = turns.take_turns(steps, 3, CPU)
    assert order == ["a", "b"] * 4
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}
    assert values == {"a": 1, "b": 2}


def clock(monkeypatch, durations):
    """Make ``perf_counter`` go forward by the given seconds in each step."""
    moments = iter([t for start, d in enumerate(durations) for t in (100 * start, 100 * start + d)])
    monkeypatch.setattr(turns.time, "perf_counter", lambda: next(moments))


def test_ratios_are_of_medians_and_rates_are_per_core(monkeypatch):
    """Peer 6, 8, 9 s; ours 2, 4, 3 s on two cores: medians 8 and 3, 8/3 times, 12 MB / 3 s / 2 cores."""
    peer = turns.Contestant("peer", lambda: lambda: 1.0)
    ours = turns.Contestant("ours", lambda: lambda: 1.0, peers={"peer": 3}, least_rate=1.5, cores=2)
    measurement = turns.Measurement("Work", "MB", 12, (peer, ours), "checksum", rounds=3, warm_up=False)
    clock(monkeypatch, [6, 2, 8, 4, 9, 3])
    first, second = turns.measure(measurement, 5, CPU)
    assert (first["median"], second["median"], second["times"]) == (8, 3, {"peer": 2.67})
    assert (second["rate"], second["met"], first["met"]) == (2.0, False, None)
    assert second["checksum"] == 1.0


def test_a_record_and_a_page_are_written(tmp_path, monkeypatch):
    setting = turns.Setting(CPU, True, tmp_path, (), SAMPLE, tmp_path)
    ours = turns.Contestant("ours", lambda: lambda: 1.0, least_rate=2)
    measurement = turns.Measurement("Work", "MB", 12, (ours,), "checksum", rounds=1, warm_up=False)
    clock(monkeypatch, [4])
    entries = turns.measure(measurement, 1, CPU)
    page = turns.report("work", measurement, entries, setting, "python -m x", tmp_path)
    assert "| ours | 4 | 4 to 4 | 3 |  | 2 MB/s: met | 1 |" in page
    assert (tmp_path / "work-cpu-quick.md").read_text() == page
    assert json.loads((tmp_path / "work-cpu-quick.json").read_text())["entries"][0]["rate"] == 3


def test_repeated_pages_are_read_and_differ(tmp_path):
    size = repeat_wiki(SAMPLE, tmp_path / "wiki.xml", 300_000)
    documents = list(read_documents(tmp_path / "wiki.xml"))
    assert size == (tmp_path / "wiki.xml").stat().st_size >= 300_000
    copies = [document.text for document in documents if document.title.startswith("兰州 ")]
    assert len(set(copies)) == len(copies) > 1


def test_repeated_text_keeps_its_first_copy_and_changes_the_others(tmp_path):
    (tmp_path / "a.txt").write_text("".join(chr(0x4E00 + i) * (40 - i) for i in range(40)), encoding="utf-8")
    written = repeat_text([tmp_path / "a.txt"], tmp_path / "many.jsonl.gz", 10_000)
    texts = [document.text for document in read_documents(tmp_path / "many.jsonl.gz")]
    assert written == sum(len(text.encode()) for text in texts) >= 10_000
    assert texts[0] == (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert len(set(texts)) == len(texts) == 5
    with pytest.raises(UserError, match="no text"):
        (tmp_path / "b.txt").write_text("\n")
        repeat_text([tmp_path / "b.txt"], tmp_path / "none.jsonl.gz", 10)


def test_peak_memory_is_that_of_the_largest_process():
    import sys

    child = "import time; data = bytearray(150_000_000); time.sleep(1)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert 150 < peak_of_workers([sys.executable, "-c", parent], poll=0.05) < 250
    with pytest.raises(UserError, match="failed"):
        peak_of_workers([sys.executable, "-c", "raise SystemExit(3)"])
