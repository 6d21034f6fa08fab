"""Default recipes, rates that fall from layer to layer, and which weights decay."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    MegatronBertConfig,
    ModernBertConfig,
)

from finetune.config import default_config
from finetune.layers import layer_depth, layer_groups
from finetune.models import load_model


@pytest.mark.parametrize(
    ("family", "hidden", "rate", "decay", "optimizer"),
    [
        ("electra", 256, 3e-4, 0.8, "adam"),
        ("electra", 768, 1e-4, 0.8, "adam"),
        ("electra", 1024, 5e-5, 0.9, "adam"),
        ("bert", 768, 3e-5, 1.0, "adamw"),
        ("bert", 1024, 3e-5, 1.0, "adamw"),
        ("roformer", 768, 3e-5, 1.0, "adamw"),
        ("albert", 312, 1e-4, 1.0, "adamw"),
    ],
)
def test_default_recipe(family: str, hidden: int, rate: float, decay: float, optimizer: str) -> None:
    config = default_config({"family": family, "hidden_size": hidden}, max_length=256, epochs=None)
    assert (config.learning_rate, config.layer_decay, config.optimizer) == (rate, decay, optimizer)
    assert (config.max_length, config.epochs, config.batch_size, config.warmup) == (256, 3, 32, 0.1)


@pytest.mark.parametrize(
    ("rate", "decay", "layers", "expected"),
    [
        (3e-4, 0.8, 12, (1.319e-5, 1.649e-5, 1.92e-4, 3e-4)),
        (1e-4, 0.8, 12, (4.398e-6, 5.498e-6, 6.4e-5, 1e-4)),
        (5e-5, 0.9, 24, (3.231e-6, 3.590e-6, 4.05e-5, 5e-5)),
        (3e-4, 0.8, 24, (9.07e-7, None, 1.92e-4, 3e-4)),
    ],
)
def test_layer_decay(rate: float, decay: float, layers: int, expected: tuple[float | None, ...]) -> None:
    """Rates of embeddings, layer 0, top layer and head by google-research/electra ``optimization.py``."""
    names = (
        "electra.embeddings.word_embeddings.weight",
        "electra.encoder.layer.0.output.dense.weight",
        f"electra.encoder.layer.{layers - 1}.output.dense.weight",
        "classifier.out_proj.weight",
    )
    for name, value in zip(names, expected, strict=True):
        scale = decay ** (layers + 2 - layer_depth(name, layers, "electra"))
        assert value is None or rate * scale == pytest.approx(value, rel=5e-4)


def test_layer_names() -> None:
    """layer.1 is not layer.10; the projection goes with the embeddings."""
    assert layer_depth("electra.encoder.layer.1.attention.self.query.bias", 12, "electra") == 2
    assert layer_depth("electra.encoder.layer.10.attention.self.query.bias", 12, "electra") == 11
    assert layer_depth("electra.embeddings_project.weight", 12, "electra") == 0
    assert layer_depth("bert.pooler.dense.weight", 12, "bert") == 13
    assert layer_depth("qa_outputs.bias", 12, "electra") == 14


def test_groups_hold_each_parameter_once(tiny_model: Path) -> None:
    network = load_model(tiny_model, "text", 3)
    groups = layer_groups(
        list(network.named_parameters()), layers=2, prefix="electra", decay=0.8, weight_decay=0.01
    )
    assert sum(len(group["params"]) for group in groups) == len(list(network.parameters()))
    scales = {
        name: group["scale"]
        for name, parameter in network.named_parameters()
        for group in groups
        if any(parameter is member for member in group["params"])
    }
    assert scales["electra.embeddings.word_embeddings.weight"] == pytest.approx(0.8**4)
    assert scales["electra.encoder.layer.1.output.LayerNorm.weight"] == pytest.approx(0.8**2)
    assert scales["classifier.dense.bias"] == 1.0
    undecayed = {id(p) for group in groups if group["weight_decay"] == 0 for p in group["params"]}
    named = dict(network.named_parameters())
    assert id(named["electra.encoder.layer.1.output.LayerNorm.weight"]) in undecayed
    assert id(named["electra.embeddings.word_embeddings.weight"]) not in undecayed


@pytest.mark.parametrize("family", [MegatronBertConfig, ModernBertConfig, BertConfig])
def test_norms_do_not_decay_whatever_they_are_called(family: type) -> None:
    """Megatron calls them ln, ModernBERT norm: a weight that begins at 1 is no weight to shrink."""
    config = family(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        **{f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")},
    )
    network = AutoModelForSequenceClassification.from_config(config)
    groups = layer_groups(
        list(network.named_parameters()),
        layers=2,
        prefix=network.base_model_prefix,
        decay=1.0,
        weight_decay=0.01,
    )
    decayed = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    matrices = {id(p) for p in network.parameters() if p.dim() > 1}
    assert decayed == matrices
    assert sum(len(group["params"]) for group in groups) == len(list(network.parameters()))
