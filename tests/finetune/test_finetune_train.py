"""Whole runs on toy tasks: learning, seeds, order of predictions, saving."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForPreTraining, ElectraForSequenceClassification

from finetune.batches import PASS_COST, PassCost
from finetune.config import FinetuneConfig, Runtime
from finetune.examples import SpanExample, TextExample
from finetune.models import Kind, load_model
from finetune.predict import predict
from finetune.tokens import load_encoder
from finetune.train import Run, finetune
from provenance import UserError, verify_manifest

TEXT = FinetuneConfig(1e-3, layer_decay=0.8, epochs=6, batch_size=8, max_length=24)
SPAN = FinetuneConfig(4e-3, epochs=8, batch_size=8, max_length=48, window_step=16, max_question_length=8)
WORDS = "山水云雨花草鱼鸟"


def texts(count: int, seed: int) -> list[TextExample]:
    """Label 1 where 好 is in the text, 0 where 坏 is; of various lengths."""
    random = np.random.default_rng(seed)
    examples = []
    for i in range(count):
        words = list(random.choice(list(WORDS), int(random.integers(1, 12))))
        label = int(random.integers(2))
        words.insert(int(random.integers(len(words) + 1)), "坏好"[label])
        examples.append(TextExample(f"t{i}", "".join(words), None, label))
    return examples


def spans(count: int, seed: int, length: int = 12) -> list[SpanExample]:
    """The answer is the number, always 20 and a digit, somewhere among other characters."""
    random = np.random.default_rng(seed)
    examples = []
    for i in range(count):
        words = list(random.choice(list(WORDS), int(random.integers(3, length))))
        start = int(random.integers(len(words)))
        answer = f"{random.integers(1, 9)}"
        context = "".join([*words[:start], answer, *words[start:]])
        examples.append(SpanExample(f"s{i}", "几？", context, (answer,), start))
    return examples


def accuracy(predictions: list[dict], examples: list[TextExample]) -> float:
    return float(np.mean([p["prediction"] == e.label for p, e in zip(predictions, examples, strict=True)]))


@pytest.mark.parametrize("kind", ["text", "span"])
def test_parts_of_a_batch_train_as_the_whole(
    kind: Kind, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout, whose masks differ: in fp32 the losses of all updates agree, and so do the outputs."""
    model = shutil.copytree(tiny_model, tmp_path / "model")
    content = json.loads((model / "config.json").read_text())
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    (model / "config.json").write_text(json.dumps(content | none))
    examples = texts(30, 0) if kind == "text" else spans(30, 0)
    config = replace(TEXT if kind == "text" else SPAN, epochs=2)
    losses, passes = {}, Counter()

    def run(cost: PassCost) -> list[dict]:
        monkeypatch.setitem(PASS_COST, "cpu", cost)
        forward = Run.forward
        monkeypatch.setattr(Run, "forward", lambda *given: passes.update([cost]) or forward(*given))
        runtime = Runtime(device="cpu")
        found = finetune(
            model, kind, examples, {"dev": examples}, config=config, seed=0, num_labels=2, runtime=runtime
        )
        monkeypatch.setattr(Run, "forward", forward)
        losses[cost] = found.losses
        return found.predictions["dev"]

    whole, cut = PassCost(10**6, 10**6), PassCost(0, 32)
    expected, found = run(whole), run(cut)
    assert passes[cut] > 2 * passes[whole] > 0
    assert losses[cut] == pytest.approx(losses[whole], rel=1e-4)
    assert [row["prediction"] for row in found] == [row["prediction"] for row in expected]


@pytest.mark.parametrize("device", ["cpu", "cuda:1", "mps"])
def test_any_device_has_parts(device: str, tiny_model: Path) -> None:
    """32 rows of 512 tokens go through a CPU by eights, through any other device at once."""
    row = np.zeros(512, dtype=np.int64)
    config = replace(TEXT, max_length=512)
    run = Run("text", load_model(tiny_model, "text", 2), None, config, torch.device(device), None)
    parts = run.parts([(row, row)] * 32, list(range(32)))
    assert [len(part) for part in parts] == ([8] * 4 if device == "cpu" else [32])


def test_rows_are_filled_up_no_further_than_the_longest_input(tiny_model: Path) -> None:
    """It may be all that the model has positions for."""
    row = np.zeros(13, dtype=np.int64)
    network, encoder = load_model(tiny_model, "text", 2), load_encoder(tiny_model)
    for longest, expected in ((24, 16), (14, 14), (13, 13)):
        config = replace(TEXT, max_length=longest)
        run = Run("text", network, encoder, config, torch.device("cpu"), lambda done, loss: None)
        assert run.forward([(row, row)])[1].shape == (1, expected)


def test_learns_to_classify_and_is_reproducible(tiny_model: Path) -> None:
    """The same seed gives the same predictions to the bit, another seed others."""
    train, dev = texts(160, 0), texts(33, 1)
    calls: list[tuple[int, int, float]] = []

    def run(seed: int, **options):
        torch.rand(seed + 3)  # what ran before in the process must not matter
        return finetune(
            tiny_model, "text", train, {"dev": dev}, config=TEXT, seed=seed, num_labels=2, **options
        )

    first = run(0, runtime=Runtime(eval_batch_size=32), on_progress=lambda *call: calls.append(call))
    assert accuracy(first.predictions["dev"], dev) >= 0.9
    assert [p["id"] for p in first.predictions["dev"]] == [e.id for e in dev]  # 33 of 33, in order
    assert all(sum(p["probabilities"]) == pytest.approx(1) for p in first.predictions["dev"])
    assert len(first.losses) == 6 * 20
    assert first.losses[-1] < first.losses[0]
    assert calls[-1][:2] == (122, 122)  # 120 updates, 2 prediction batches
    assert [done for done, _, _ in calls] == sorted(done for done, _, _ in calls)
    again = run(0, runtime=Runtime(eval_batch_size=32))
    assert again.predictions == first.predictions
    assert again.losses == first.losses
    other = run(1)
    assert other.losses != first.losses


def test_batch_size_changes_no_prediction(tiny_model: Path) -> None:
    """In float32, and whatever the order of the rows: padding and neighbours take no part."""
    dev = texts(33, 1)
    outcomes = []
    for size, examples in ((1, dev), (33, dev), (7, dev[::-1])):
        result = finetune(
            tiny_model,
            "text",
            texts(16, 0),
            {"dev": examples},
            config=TEXT,
            seed=0,
            num_labels=2,
            runtime=Runtime(eval_batch_size=size),
        )
        outcomes.append({p["id"]: p for p in result.predictions["dev"]})
    for outcome in outcomes[1:]:
        for key, prediction in outcomes[0].items():
            assert outcome[key]["prediction"] == prediction["prediction"]
            assert outcome[key]["probabilities"] == pytest.approx(prediction["probabilities"], abs=1e-5)


def test_learns_to_extract_over_windows(tiny_model: Path) -> None:
    """Contexts of up to three windows; answers are texts of the context."""
    train, dev = spans(120, 0), spans(20, 1, length=70)
    result = finetune(tiny_model, "span", train, {"dev": dev}, config=SPAN, seed=0)
    found = result.predictions["dev"]
    assert np.mean([p["prediction"] == e.answers[0] for p, e in zip(found, dev, strict=True)]) >= 0.8
    assert all(p["prediction"] in e.context for p, e in zip(found, dev, strict=True))
    assert result.counts["dev"]["windows"] > 20
    assert result.counts["train"]["unalignable"] == 0


@pytest.mark.parametrize("kind", ["text", "span"])
def test_bert_with_vocab_txt_only(kind: str, vocab_path: Path, tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=21128, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    BertForPreTraining(config).save_pretrained(tmp_path)
    shutil.copyfile(vocab_path, tmp_path / "vocab.txt")
    examples = texts(16, 0) if kind == "text" else spans(16, 0)
    settings = FinetuneConfig(1e-3, optimizer="adamw", epochs=1, batch_size=8, max_length=80, dtype="bf16")
    result = finetune(tmp_path, kind, examples, {"dev": examples}, config=settings, seed=0, num_labels=2)  # type: ignore[arg-type]
    assert len(result.predictions["dev"]) == 16
    assert np.isfinite(result.losses).all()


def test_saved_model_predicts_the_same(tiny_model: Path, tmp_path: Path) -> None:
    """The folder loads with transformers alone and holds the head."""
    dev = texts(9, 1)
    result = finetune(tiny_model, "text", texts(16, 0), {"dev": dev}, config=TEXT, seed=0, num_labels=2)
    folder = tmp_path / "saved"
    result.save(folder)
    assert verify_manifest(folder, "finetune.train")["seed"] == 0
    assert (folder / "vocab.txt").is_file()
    network = ElectraForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for network_ in (network, load_model(folder, "text", keep_head=True)):
        for prediction, example in zip(result.predictions["dev"], dev, strict=True):
            with torch.no_grad():
                logits = network_(**tokenizer(example.text_a, return_tensors="pt")).logits[0]
            assert logits.softmax(-1).tolist() == pytest.approx(prediction["probabilities"], abs=1e-5)


@pytest.mark.parametrize("kind", ["text", "span"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_a_saved_model_gives_the_predictions_of_its_run_again(
    kind: str, dtype: str, tiny_model: Path, tmp_path: Path
) -> None:
    """To the last digit, probabilities and scores too: the same kernels in the same batches."""
    train, dev = (texts(16, 0), texts(9, 1)) if kind == "text" else (spans(16, 0), spans(9, 1))
    config = replace(TEXT if kind == "text" else SPAN, epochs=1, dtype=dtype)
    labels = {"num_labels": 2} if kind == "text" else {}
    result = finetune(tiny_model, kind, train, {"dev": dev}, config=config, seed=0, **labels)  # type: ignore[arg-type]
    result.save(tmp_path / "saved")
    found = predict(tmp_path / "saved", kind, dev, config=config)  # type: ignore[arg-type]
    assert found == result.predictions["dev"]


def test_the_users_mistakes(tiny_model: Path) -> None:
    def run(train: list, kind: str = "text", config: FinetuneConfig = TEXT) -> None:
        finetune(tiny_model, kind, train, {}, config=config, seed=0, num_labels=2)  # type: ignore[arg-type]

    with pytest.raises(UserError, match="no training example"):
        run([])
    with pytest.raises(UserError, match="no training example"):
        run([SpanExample("a", "问", "天地", ("人",), None)], "span", SPAN)
    with pytest.raises(UserError, match="a has no label"):
        run([TextExample("a", "天地")])
    with pytest.raises(UserError, match="512 tokens, not 600"):
        run(texts(4, 0), config=FinetuneConfig(1e-3, max_length=600))
