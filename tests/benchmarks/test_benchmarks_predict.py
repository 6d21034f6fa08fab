"""Predicting a file with a fine-tuned model, and the same scores as transformers gives for its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers

from benchmarks.metrics import percent, span_items
from benchmarks.predict import class_numbers, predict_task, run, settings
from benchmarks.protocol import load
from benchmarks.readers import read_file
from benchmarks.score import score_file
from benchmarks.tasks import TASKS, get_task
from corpus import vocab
from provenance import UserError

SAMPLE = Path(__file__).parents[2] / "benchmarks" / "sample"
PAIR = next(task for task in TASKS.values() if task.kind == "pair" and task.labels == ("0", "1"))
SPAN = next(task for task in TASKS.values() if task.kind == "span")


def trained(model_class: type, tiny_model: Path, vocab_path: Path, folder: Path, batches, **config) -> Path:
    """A checkpoint that transformers trained and wrote by itself; ``batches`` are its keyword arguments."""
    torch.manual_seed(0)
    known = transformers.ElectraConfig.from_pretrained(tiny_model, **config)
    network = model_class.from_pretrained(tiny_model, config=known).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for batch in batches:
        network(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    network.save_pretrained(folder)
    vocab.save_tokenizer(vocab.tokenizer(vocab_path), vocab_path, folder)
    return folder


@pytest.fixture(scope="module")
def classifier(tiny_model: Path, vocab_path: Path, tmp_path_factory) -> Path:
    tokenizer = vocab.tokenizer(vocab_path)
    rows = load(PAIR, SAMPLE).splits["train"]
    batches = []
    for start in range(0, len(rows), 16):
        part = rows[start : start + 16]
        texts = [row.text_a for row in part], [row.text_b for row in part]
        inputs = tokenizer(*texts, padding=True, return_tensors="pt")
        batches.append({**inputs, "labels": torch.tensor([row.label for row in part])})
    return trained(
        transformers.ElectraForSequenceClassification,
        *(tiny_model, vocab_path, tmp_path_factory.mktemp("classifier"), batches * 12),
        num_labels=2,
    )


@pytest.fixture(scope="module")
def reader(tiny_model: Path, vocab_path: Path, tmp_path_factory) -> Path:
    tokenizer = vocab.tokenizer(vocab_path)
    batches = []
    for row in load(SPAN, SAMPLE).splits["train"][:60]:
        inputs = tokenizer(row.question, row.context, return_tensors="pt")
        last = row.start + len(row.answers[0]) - 1
        places = [inputs.char_to_token(0, place, sequence_index=1) for place in (row.start, last)]
        start, end = torch.tensor(places).split(1)
        batches.append({**inputs, "start_positions": start, "end_positions": end})
    return trained(
        transformers.ElectraForQuestionAnswering,
        *(tiny_model, vocab_path, tmp_path_factory.mktemp("reader"), batches),
    )


@torch.inference_mode()
def test_a_classifier_of_transformers_scores_the_same(classifier: Path) -> None:
    """Prediction for prediction, and the probabilities."""
    rows = load(PAIR, SAMPLE).splits["dev"]
    network = transformers.AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier)
    found = predict_task(str(classifier), PAIR, rows, batch_size=8)
    assert len({row["prediction"] for row in found}) == 2
    for row, mine in zip(rows, found, strict=True):
        logits = network(**tokenizer(row.text_a, row.text_b, return_tensors="pt")).logits[0]
        assert int(logits.argmax()) == mine["prediction"]
        assert logits.softmax(-1).tolist() == pytest.approx(mine["probabilities"], abs=1e-5)


@torch.inference_mode()
def test_a_question_answering_model_of_transformers_scores_the_same(reader: Path) -> None:
    """The best pair of start and end over the context's tokens, by the plain double loop."""
    rows = load(SPAN, SAMPLE).splits["dev"]
    network = transformers.AutoModelForQuestionAnswering.from_pretrained(reader).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(reader)
    theirs = {}
    for row in rows:
        inputs = tokenizer(row.question, row.context, return_tensors="pt", return_offsets_mapping=True)
        offsets = inputs.pop("offset_mapping")[0].tolist()
        context = [i for i, part in enumerate(inputs.sequence_ids(0)) if part == 1]
        output = network(**inputs)
        start, end = output.start_logits[0].tolist(), output.end_logits[0].tolist()
        pairs = [(start[i] + end[j], i, j) for i in context for j in context if i <= j < i + 100]
        _, first, last = max(pairs)
        theirs[row.id] = row.context[offsets[first][0] : offsets[last][1]]
    ours = {row["id"]: row["prediction"] for row in predict_task(str(reader), SPAN, rows, batch_size=8)}
    gold = {row.id: row.answers for row in rows}
    assert ours == theirs
    assert percent(span_items(gold, ours)) == percent(span_items(gold, theirs))


@pytest.mark.parametrize("kind", ["pair", "span"])
def test_the_batch_size_changes_no_prediction(kind: str, classifier: Path, reader: Path) -> None:
    """33 rows with batches of 32 give 33 predictions, equal to those one by one."""
    task, model = (PAIR, classifier) if kind == "pair" else (SPAN, reader)
    rows = load(task, SAMPLE).splits["dev"][:33]
    found = [predict_task(str(model), task, rows, batch_size=size) for size in (32, 1, 7)]
    assert len(rows) == 33
    assert [row["id"] for row in found[0]] == [row.id for row in rows]
    for other in found[1:]:
        assert [row["prediction"] for row in other] == [row["prediction"] for row in found[0]]


def test_predictions_of_a_file_are_written_and_scored(reader: Path, tmp_path: Path, capsys) -> None:
    """The form in which CMRC 2018 takes submissions; its score is that of benchmarks.score."""
    file, out = SAMPLE / SPAN.name / "dev.json", tmp_path / "submission.json"
    run(str(reader), SPAN.name, file, out=out)
    printed = json.loads(capsys.readouterr().out)
    submission = json.loads(out.read_text("utf-8"))
    assert list(submission) == [example.id for example in read_file(SPAN, file)]
    scored = score_file(SPAN, file, out)
    assert printed == {key: scored[key] for key in ("exact_match", "f1", "total")}


def test_a_file_without_real_gold_is_predicted_and_not_scored(
    classifier: Path, reader: Path, tmp_path: Path, capsys
) -> None:
    hidden = json.loads((SAMPLE / SPAN.name / "dev.json").read_text("utf-8"))
    for article in hidden["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                question["answers"] = [{"text": "FAKE_ANSWER_1", "answer_start": -1}]
    (tmp_path / "test.json").write_text(json.dumps(hidden), "utf-8")
    (tmp_path / "mine.tsv").write_text("甲\t乙\n丙\t丁\n", "utf-8")
    for model, task, name, rows in ((reader, SPAN, "test.json", 36), (classifier, PAIR, "mine.tsv", 2)):
        out = tmp_path / f"{name}.jsonl"
        run(str(model), task.name, tmp_path / name, out=out)
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "not scored" in printed.err
        lines = [json.loads(line) for line in out.read_text("utf-8").strip().split("\n")]
        assert len(lines) == rows
        assert "n_best" in lines[0] or "probabilities" in lines[0]


def renamed(model: Path, folder: Path, *names: str) -> Path:
    """A copy of a classifier whose outputs have other names."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def test_class_names_of_another_order_are_followed(classifier: Path, tmp_path: Path) -> None:
    """A model whose first class is our second."""
    rows = load(PAIR, SAMPLE).splits["dev"]
    swapped = renamed(classifier, tmp_path / "swapped", "1", "0")
    plain, other = (predict_task(str(m), PAIR, rows, 8) for m in (classifier, swapped))
    assert [1 - row["prediction"] for row in plain] == [row["prediction"] for row in other]
    assert other[0]["probabilities"] == pytest.approx(plain[0]["probabilities"][::-1])


def test_class_names_in_any_case_and_none_that_are_no_labels(classifier: Path, tmp_path: Path) -> None:
    """The order of names that nobody knows would be a guess, and its score too."""
    names = ("ENTAILMENT", "Neutral", "contradictory")
    xnli = get_task("xnli")
    assert class_numbers(str(renamed(classifier, tmp_path / "case", *names)), xnli) == [1, 2, 0]
    assert class_numbers(str(classifier), PAIR) == [0, 1]
    for number, names in enumerate([("duplicate", "other"), ("1", "1"), ("0", "1", "2")]):
        other = renamed(classifier, tmp_path / str(number), *names)
        with pytest.raises(UserError, match=rf"calls its classes {', '.join(names)}, not 0, 1; write"):
            class_numbers(str(other), PAIR)


def test_a_model_of_few_positions_predicts_long_texts(reader: Path, tmp_path: Path) -> None:
    """In windows of its own length: the task's 512 tokens are more than it takes."""
    network = transformers.ElectraForQuestionAnswering.from_pretrained(reader)
    table = network.electra.embeddings.position_embeddings.weight.data[:96].clone()
    config = transformers.ElectraConfig.from_pretrained(reader, max_position_embeddings=96)
    short = transformers.ElectraForQuestionAnswering(config)
    kept = {name: value for name, value in network.state_dict().items() if "position_embeddings" not in name}
    short.load_state_dict(kept | {"electra.embeddings.position_embeddings.weight": table})
    short.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(reader).save_pretrained(tmp_path)
    rows = load(SPAN, SAMPLE).splits["dev"]
    assert max(len(row.context) for row in rows) > 96
    assert settings(str(tmp_path), SPAN).max_length == 96
    found = predict_task(str(tmp_path), SPAN, rows, batch_size=8)
    assert all(row["prediction"] in example.context for row, example in zip(found, rows, strict=True))


def test_models_that_are_not_fine_tuned_are_refused(
    tiny_model: Path, classifier: Path, tmp_path: Path
) -> None:
    file, out = SAMPLE / PAIR.name / "dev.tsv", tmp_path / "out.json"
    with pytest.raises(UserError, match=r"has no classifier.*not fine-tuned"):
        run(str(tiny_model), PAIR.name, file, out=out)
    with pytest.raises(UserError, match=r"has no qa_outputs.*not fine-tuned"):
        run(str(classifier), SPAN.name, SAMPLE / SPAN.name / "dev.json", out=out)
    with pytest.raises(UserError, match="has 2 classes, not 3"):
        run(str(classifier), "xnli", SAMPLE / "xnli" / "dev.tsv", out=out)
    assert not out.exists()


def test_settings_are_those_of_fine_tuning_or_of_the_family(classifier: Path) -> None:
    found = settings(str(classifier), get_task("chnsenticorp"))
    assert (found.max_length, found.dtype) == (256, "fp32")
