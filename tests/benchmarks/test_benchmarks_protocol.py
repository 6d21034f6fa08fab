"""The two protocols, and files whose scores would mean nothing."""

import hashlib
import json

import pytest

from benchmarks.protocol import load
from benchmarks.tasks import TASKS, get_task
from provenance import UserError


def table(folder, text, name="dev.tsv"):
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def spans(folder, data, name="dev.json"):
    path = folder / name
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def article(context, *questions):
    qas = [
        {"id": key, "question": "问？", "answers": [{"text": t, "answer_start": s} for t, s in answers]}
        for key, answers in questions
    ]
    return {"title": "", "paragraphs": [{"id": "p", "context": context, "qas": qas}]}


# --- protocols ------------------------------------------------------------------------------------


def write_pairs(folder, name, count):
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{name}甲{i}\t乙{i}\t{i % 2}\n" for i in range(count))
    return table(folder, text, f"{name}.tsv")


def test_reduced_protocol_splits_dev_by_content(tmp_path):
    """The last 8 hex digits of sha256(text_a TAB text_b), as a number, below a tenth of their range: dev."""
    for name in ("dev", "test"):
        write_pairs(tmp_path / "bq", name, 300)
    data = load(get_task("bq"), tmp_path)

    def is_dev(i):
        digest = hashlib.sha256(f"dev甲{i}\t乙{i}".encode()).hexdigest()
        return int(digest[-8:], 16) / 16**8 < 0.1

    assert [row.id for row in data.splits["dev"]] == [f"dev-{i}" for i in range(300) if is_dev(i)]
    assert [row.id for row in data.splits["train"]] == [f"dev-{i}" for i in range(300) if not is_dev(i)]
    assert len(data.splits["test"]) == 300
    assert list(data.splits) == ["train", "dev", "test"]
    assert data.protocol == "reduced"
    assert data.protocol_note == "train: 90 % of dev; other files than the published ones: dev, test"
    assert data.sha256["train"] == data.sha256["dev"]


def test_reduced_protocol_keeps_a_paragraph_on_one_side(tmp_path):
    (tmp_path / "drcd").mkdir()
    articles = [article(f"甲{i}", (f"{i}a", [("甲", 0)]), (f"{i}b", [("甲", 0)])) for i in range(60)]
    spans(tmp_path / "drcd", {"data": articles})
    spans(tmp_path / "drcd", {"data": articles}, "test.json")
    data = load(get_task("drcd"), tmp_path)
    sides = {name: {row.context for row in data.splits[name]} for name in ("train", "dev")}
    assert sides["dev"] == {
        f"甲{i}"
        for i in range(60)
        if int(hashlib.sha256(f"甲{i}".encode()).hexdigest()[-8:], 16) < 0.1 * 2**32
    }
    assert not sides["train"] & sides["dev"]


def test_other_files_and_a_limit_are_noted(tmp_path):
    for name in ("train", "dev", "test"):
        write_pairs(tmp_path / "bq", name, 20)
    assert load(get_task("bq"), tmp_path).protocol_note == (
        "other files than the published ones: train, dev, test"
    )
    data = load(get_task("bq"), tmp_path, limit=5)
    assert data.protocol_note.endswith("; train: first 5 rows")
    assert [row.id for row in data.splits["train"]] == [f"train-{i}" for i in range(5)]


def test_missing_files_say_what_to_do(tmp_path):
    with pytest.raises(UserError, match=r"train\.tsv, dev\.tsv, test\.tsv.*benchmarks\.fetch lcqmc.*apply"):
        load(get_task("lcqmc"), tmp_path)
    write_pairs(tmp_path / "lcqmc", "train", 5)
    with pytest.raises(UserError, match=r"needs dev\.tsv, test\.tsv"):
        load(get_task("lcqmc"), tmp_path)


def test_a_file_of_another_format_is_found(tmp_path):
    """The published name first; two others are one too many."""
    folder = tmp_path / "bq"
    for name in ("train", "dev", "test"):
        write_pairs(folder, name, 20)
    table(folder, "text_a,text_b,label\n甲,乙,1\n丙,丁,0\n", "dev.csv")
    assert len(load(get_task("bq"), tmp_path).splits["dev"]) == 20
    (folder / "dev.tsv").unlink()
    assert [row.text_a for row in load(get_task("bq"), tmp_path).splits["dev"]] == ["甲", "丙"]
    table(folder, "{}", "dev.jsonl")
    with pytest.raises(UserError, match=r"dev\.csv and dev\.jsonl; keep one"):
        load(get_task("bq"), tmp_path)


def test_gold_that_is_not_real_is_refused(tmp_path):
    """Hidden test files carry one label throughout; or answers that stand nowhere."""
    folder = tmp_path / "bq"
    for name in ("train", "dev"):
        write_pairs(folder, name, 20)
    table(folder, "".join(f"甲{i}\t乙\t0\n" for i in range(9)), "test.tsv")
    with pytest.raises(UserError, match=r"test\.tsv has the label 0 on all 9 rows"):
        load(get_task("bq"), tmp_path)
    (tmp_path / "cmrc2018").mkdir()
    spans(tmp_path / "cmrc2018", {"data": [article("甲乙", ("q", [("甲", 0)]))]}, "train.json")
    for answers in ([], [("FAKE_ANSWER_1", -1), ("FAKE_ANSWER_2", -1)]):
        spans(tmp_path / "cmrc2018", {"data": [article("甲乙", ("q", answers))]})
        with pytest.raises(UserError, match=r"dev\.json has no answer that stands in its context"):
            load(get_task("cmrc2018"), tmp_path)


def test_a_traditional_task_in_simplified_script_is_refused(tmp_path):
    (tmp_path / "drcd").mkdir()
    for name in ("train.json", "dev.json", "test.json"):
        text = "他在电脑上学习汉语" if name == "dev.json" else "他在電腦上學習漢語"
        spans(tmp_path / "drcd", {"data": [article(text, ("q", [("他", 0)]))]}, name)
    with pytest.raises(UserError, match=r"dev\.json is in simplified script, but DRCD is in traditional"):
        load(get_task("drcd"), tmp_path)


REAL = {
    "cmrc2018": ({"train": 10142, "dev": 3219}, "full"),
    "drcd": ({"train": 3220, "dev": 304, "test": 3493}, "train: 90 % of dev"),
    "xnli": ({"train": 9751, "dev": 2490, "test": 5010}, "train: train_standin"),
    "chnsenticorp": ({"train": 9600, "dev": 1200, "test": 1200}, "full"),
    "lcqmc": ({"train": 7917, "dev": 885, "test": 12500}, "train: 90 % of dev"),
    "bq": ({"train": 8971, "dev": 1029, "test": 10000}, "train: 90 % of dev"),
}


@pytest.mark.real
@pytest.mark.parametrize("name", list(TASKS))
def test_real_files(real_data, name):
    data = load(get_task(name), real_data / "tasks")
    sizes, note = REAL[name]
    assert {split: len(rows) for split, rows in data.splits.items()} == sizes
    assert (data.protocol_note or data.protocol) == note
