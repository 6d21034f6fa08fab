"""The table of encoders; each one's shape, tiny and with random weights, through one task of each kind."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from benchmarks.models import ENCODERS
from benchmarks.protocol import load
from benchmarks.settings import resolve
from benchmarks.tasks import TASKS, get_task
from finetune.models import load_model, model_facts
from finetune.train import finetune
from provenance import UserError

ROOT = Path(__file__).parents[2]
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@dataclass(frozen=True)
class Shape:
    """How a model lies on the Hub: class and configuration, form of its weights, size of its vocabulary."""

    model: type
    config: dict[str, Any]
    weights: str = "bin"
    vocabulary: int = 21128
    tokenizer: str = "BertTokenizer"


BERT = Shape(transformers.BertForMaskedLM, TINY)
ELECTRA_CONFIG = TINY | {"embedding_size": 16}
SHAPES = {
    "google-bert/bert-base-chinese": Shape(transformers.BertForPreTraining, TINY, "safetensors"),
    "hfl/chinese-roberta-wwm-ext": BERT,  # a BERT, whatever its name says
    "hfl/rbt3": Shape(transformers.BertForMaskedLM, TINY | {"num_hidden_layers": 3}),
    "hfl/chinese-lert-small": Shape(transformers.BertModel, TINY | {"num_attention_heads": 4}),
    "hfl/chinese-electra-180g-small-discriminator": Shape(
        transformers.ElectraForPreTraining, TINY | {"embedding_size": 8}
    ),
    "hfl/chinese-electra-base-discriminator": Shape(transformers.ElectraModel, ELECTRA_CONFIG),
    "nghuyong/ernie-1.0-base-zh": Shape(
        transformers.ErnieForMaskedLM,
        TINY | {"hidden_act": "relu", "max_position_embeddings": 513, "layer_norm_eps": 1e-5},
        vocabulary=18000,
    ),
    "nghuyong/ernie-3.0-base-zh": Shape(
        transformers.ErnieForMaskedLM,
        TINY | {"max_position_embeddings": 2048, "type_vocab_size": 4, "use_task_id": True},
        vocabulary=40000,
    ),
    # Not in the table: no token types; positions that begin behind the padding index; shared layers.
    "distilbert": Shape(
        transformers.DistilBertForMaskedLM, {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    ),
    "roberta": Shape(
        transformers.RobertaForMaskedLM, TINY | {"max_position_embeddings": 514, "pad_token_id": 0}
    ),
    "albert": Shape(transformers.AlbertForMaskedLM, TINY | {"embedding_size": 8}),
    # Erlangshen's two and RoFormer: positions are relative, turned, or as in BERT.
    "deberta-v2": Shape(
        transformers.DebertaV2ForMaskedLM,
        TINY | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256},
    ),
    "megatron-bert": Shape(transformers.MegatronBertForMaskedLM, TINY),
    "roformer": Shape(
        transformers.RoFormerForMaskedLM, TINY | {"embedding_size": 16, "max_position_embeddings": 512}
    ),
}


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, vocab_path: Path) -> Callable[[str], Path]:
    """A folder as the Hub keeps such a model: weights, config.json, and of the tokenizer vocab.txt alone."""

    def build(name: str) -> Path:
        shape, folder = SHAPES[name], tmp_path_factory.mktemp("model")
        torch.manual_seed(0)
        config = shape.model.config_class(vocab_size=shape.vocabulary, **shape.config)
        network = shape.model(config)
        network.save_pretrained(folder)
        if shape.weights == "bin":
            torch.save(network.state_dict(), folder / "pytorch_model.bin")
            (folder / "model.safetensors").unlink()
        lines = vocab_path.read_text("utf-8").split("\n")[:-1]
        lines += [f"[more{i}]" for i in range(shape.vocabulary - len(lines))]
        (folder / "vocab.txt").write_text("\n".join(lines[: shape.vocabulary]) + "\n", "utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": shape.tokenizer}))
        return folder

    return build


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_goes_through_a_task_of_each_kind(name: str, make: Callable[[str], Path]) -> None:
    """Old repositories hold a .bin and vocab.txt alone; a head for pretraining is left out."""
    model = make(name)
    facts = model_facts(model) | {"hub": name if name in ENCODERS else None}
    if name in ENCODERS:
        assert facts["family"] == ENCODERS[name].family
    for kind in ("span", "pair", "single"):
        task = next(task for task in TASKS.values() if task.kind == kind)
        data = load(task, ROOT / "benchmarks/sample", limit=8)
        config, _ = resolve(task, facts, {"epochs": 1, "batch_size": 4, "dtype": "fp32"})
        result = finetune(
            model,
            "span" if kind == "span" else "text",
            data.splits["train"],
            {"dev": data.splits["dev"][:4]},
            config=config,
            seed=0,
            num_labels=len(task.labels) or None,
        )
        assert len(result.predictions["dev"]) == 4
        assert np.isfinite(result.losses).all()


@pytest.mark.parametrize("config", [transformers.GPT2Config, transformers.XLNetConfig, transformers.T5Config])
def test_models_that_write_are_refused(config: type, tmp_path: Path) -> None:
    """Their heads read the last token, which is padding where a longer row stands beside."""
    config().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(UserError, match=r"generates text and is no encoder"):
        model_facts(tmp_path)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_pickle_with_code_is_refused_and_not_run(make: Callable[[str], Path], tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    model = make("hfl/rbt3")
    (model / "pytorch_model.bin").write_bytes(pickle.dumps({"bert.pooler.dense.weight": Code()}))
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(model, "text", 2)
    assert not (tmp_path / "ran").exists()


def test_longest_input_of_models_whose_positions_begin_late(make: Callable[[str], Path]) -> None:
    """RoBERTa's 514 positions take 512 tokens with padding index 1, 513 with index 0."""
    model = make("roberta")
    task = get_task("chnsenticorp")
    data = load(task, ROOT / "benchmarks/sample", limit=4)
    config, _ = resolve(task, model_facts(model), {"epochs": 1, "max_length": 514})
    assert model_facts(model)["longest_input"] == 513
    with pytest.raises(UserError, match="takes 513 tokens, not 514"):
        finetune(model, "text", data.splits["train"], {}, config=config, seed=0, num_labels=2)


# --- the table ------------------------------------------------------------------------------------


def test_titles_are_those_of_published_scores() -> None:
    with open(ROOT / "results/reference/published_results.csv", encoding="utf-8", newline="") as file:
        titles = {row["model"] for row in csv.DictReader(file)}
    assert {encoder.title for encoder in ENCODERS.values()} <= titles
    assert all(encoder.source for encoder in ENCODERS.values())
    named = " ".join(encoder.title for encoder in ENCODERS.values())
    for wanted in (
        "BERT-base",
        "BERT-wwm",
        "BERT-wwm-ext",
        "RoBERTa-wwm-ext",
        "RBT3",
        "MacBERT",
        "LERT",
        "ERNIE",
    ):
        assert wanted in named


SIZES = {"small": 256, "small-ex": 256, "base": 768, "large": 1024}


def test_rates_are_those_of_the_published_scores() -> None:
    """Wherever a published row of ours says `lr`, the program would use that rate."""
    by_title = {encoder.title: encoder for encoder in ENCODERS.values()}
    by_task = {task.title: task for task in TASKS.values()}
    checked = 0
    with open(ROOT / "results/reference/published_results.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            encoder = by_title.get(row["model"])
            stated = row["notes"].partition("lr ")[2].split(" ")[0].rstrip(";,")
            theirs = row["source"].startswith(("github:ymcui", "github:iflytek"))
            if encoder is None or not stated or not theirs:
                continue
            size = next((n for end, n in SIZES.items() if row["model"].endswith(f"-{end}")), 768)
            hidden = 256 if encoder.title.startswith("MiniRBT") else size
            facts = {"family": encoder.family, "hidden_size": hidden, "hub": encoder.hub}
            config, sources = resolve(by_task[row["task"]], facts, {})
            checked += 1
            assert config.learning_rate == pytest.approx(float(stated)), row
            if encoder.learning_rate:
                assert encoder.hub in sources["learning_rate"]
    assert checked > 200
