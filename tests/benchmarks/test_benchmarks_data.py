"""What the data report says."""

import pytest

from benchmarks.data import contradictions, describe, facts_of, key_of, overlap, quantiles
from benchmarks.protocol import load
from benchmarks.tasks import get_task
from finetune.examples import SpanExample, TextExample


def test_overlap_repeats_and_contradictions():
    train = [
        TextExample("0", "好", None, 1),
        TextExample("1", "好", None, 0),
        TextExample("2", "差", None, 0),
    ]
    rows = [TextExample("3", "好", None, 1), TextExample("4", "中", None, 1)]
    assert overlap(train, rows) == rows[:1]
    assert contradictions(train) == {("好",)}
    assert key_of(SpanExample("q", "问", "文", ("文",), 0)) == ("问", "文")
    assert quantiles(list(range(1, 101))) == "50, 95, 100"
    assert quantiles([3]) == "3, 3, 3"
    assert quantiles([]) == ""


@pytest.mark.real
def test_chnsenticorp_leaks(real_data):
    """Counted on the published files."""
    data = load(get_task("chnsenticorp"), real_data / "tasks")
    facts = {split: facts_of(data, split) for split in data.splits}
    assert facts["test"]["inputs that are in train"] == 331
    assert facts["dev"]["inputs that are in train"] == 338
    assert facts["train"]["repeated inputs"] == 1351
    assert facts["train"]["inputs with several labels"] == 24


@pytest.mark.real
def test_answers_a_limit_of_thirty_puts_out_of_reach(real_data):
    """Counted on the published files."""
    data = load(get_task("cmrc2018"), real_data / "tasks")
    train, dev = facts_of(data, "train"), facts_of(data, "dev")
    assert train["all answers over 30 characters"] == "2109 (20.8 %)"
    assert dev["all answers over 30 characters"].endswith(" %)")
    assert dev["answers not in the context"] == 193
    assert dev["first answer not at its place"] == 0


def test_report_is_printed(tmp_path, capsys):
    folder = tmp_path / "chnsenticorp"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.tsv").write_text("1\t房间很大\n0\t房間很小\n", encoding="utf-8")
    describe("chnsenticorp", data=tmp_path)
    printed = capsys.readouterr().out
    for part in ("ChnSentiCorp", "rows", "label 1", "script hant", "inputs that are in train", "50.0 %"):
        assert part in printed
