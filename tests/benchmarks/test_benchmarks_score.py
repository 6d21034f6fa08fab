"""The scoring program."""

import dataclasses
import json

import pytest

from benchmarks.score import score, score_file
from benchmarks.tasks import get_task
from provenance import UserError


@pytest.fixture
def spans(tmp_path):
    qas = [
        {"id": "1", "question": "?", "answers": [{"text": "甲乙丙丁", "answer_start": 0}]},
        {"id": "2", "question": "?", "answers": [{"text": "丁", "answer_start": 3}]},
    ]
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "甲乙丙丁", "qas": qas}]}]}), "utf-8")
    return path


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_prints_one_json_line(spans, tmp_path, capsys):
    """The contract: exact_match, f1, total and unanswered; DRCD's own metric is an option."""
    predictions = write(tmp_path / "p.json", {"1": "甲丙丁乙"})
    score("cmrc2018", spans, predictions)
    line = capsys.readouterr().out
    assert json.loads(line) == {"exact_match": 0.0, "f1": 25.0, "total": 2, "unanswered": 1}
    assert line.count("\n") == 1
    assert score_file(get_task("drcd"), spans, predictions, "drcd")["f1"] == 50.0


def test_labels_by_name_or_number_and_our_own_files(tmp_path):
    gold = write(tmp_path / "test.tsv", "甲\t乙\tneutral\n甲\t丙\tcontradiction\n甲\t丁\tentailment\n")
    given = write(tmp_path / "p.json", {"test-0": "neutral", "test-1": "contradictory", "test-2": 0})
    task = get_task("xnli")
    assert score_file(task, gold, given) == {"accuracy": pytest.approx(200 / 3), "total": 3, "unanswered": 0}
    lines = write(tmp_path / "p.jsonl", '{"id": "test-0", "prediction": 2}\n')
    assert score_file(task, gold, lines)["unanswered"] == 2
    stars = dataclasses.replace(get_task("chnsenticorp"), labels=("1", "2", "3"))
    gold = write(tmp_path / "test.tsv", "2\t好\n1\t差\n3\t很好\n")
    for name, content in (
        ("p.json", {"test-0": 2, "test-1": "1", "test-2": 3}),  # as the file spells them
        ("p.jsonl", "".join(f'{{"id": "test-{i}", "prediction": {n}}}\n' for i, n in enumerate((1, 0, 2)))),
    ):
        assert score_file(stars, gold, write(tmp_path / name, content))["accuracy"] == 100


def test_mistakes_are_one_sentence(spans, tmp_path):
    task = get_task("cmrc2018")
    for content, message in (("{", "not JSON"), ([1], "not a JSON object"), ({"x": "甲"}, "no id of")):
        with pytest.raises(UserError, match=message):
            score_file(task, spans, write(tmp_path / "p.json", content))
    for answer in (None, ["甲乙丙丁"], {"text": "甲"}):
        with pytest.raises(
            UserError, match=r"p\.json: 1 has the answer .*, not a text; give one, empty for none"
        ):
            score_file(task, spans, write(tmp_path / "p.json", {"1": answer}))
    line = '{"id": "1", "prediction": "甲"}\n'
    for second, message in ((line, "has 1 again"), ('{"id": "2"}', "has no id and"), ("{", "is not JSON")):
        with pytest.raises(UserError, match=rf"p\.jsonl:2 {message}"):
            score_file(task, spans, write(tmp_path / "p.jsonl", line + second))
    hidden = spans.read_text("utf-8").replace('"text": "', '"text": "FAKE')
    with pytest.raises(UserError, match="has no answer that stands in its context"):
        score_file(task, write(tmp_path / "test.json", hidden), write(tmp_path / "p.json", {"1": "甲"}))
    gold = write(tmp_path / "dev.tsv", "甲\t乙\t0\n" * 3)
    with pytest.raises(UserError, match="has the label 0 on all 3 rows"):
        score_file(get_task("bq"), gold, write(tmp_path / "p.json", {"dev-0": "0"}))
    gold = write(tmp_path / "dev.tsv", "甲\t乙\t1\n")
    with pytest.raises(UserError, match="dev-0 has the label 'yes'"):
        score_file(get_task("bq"), gold, write(tmp_path / "p.json", {"dev-0": "yes"}))
