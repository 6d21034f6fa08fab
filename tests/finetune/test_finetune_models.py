"""Loading encoders, facts about them, default recipes, layer-wise learning rates."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    ElectraConfig,
    ElectraForQuestionAnswering,
    ElectraForSequenceClassification,
    ElectraModel,
    MegatronBertConfig,
    ModernBertConfig,
)

from finetune import classify
from finetune.config import default_config
from finetune.folder import locate
from finetune.layers import layer_depth, layer_groups
from finetune.models import load_model, model_facts
from finetune.tokens import load_encoder
from pretrain.config import PRESETS
from pretrain.flops import step_flops
from provenance import UserError, write_manifest


def copy(model: Path, folder: Path) -> Path:
    return Path(shutil.copytree(model, folder / "copy"))


# --- facts and recipes ----------------------------------------------------------------------------


def test_facts(tiny_model: Path) -> None:
    facts = model_facts(tiny_model)
    own = sum(p.numel() for p in ElectraModel.from_pretrained(tiny_model).parameters())
    assert facts["parameters"] == own
    assert (facts["family"], facts["hidden_size"], facts["layers"]) == ("electra", 32, 2)
    assert (facts["vocabulary"], facts["longest_input"]) == (21128, 512)
    assert facts["name"] == tiny_model.name
    assert len(facts["weights_sha256"]) == len(facts["tokenizer_sha256"]) == 64


def test_parameters_of_the_published_sizes(tiny_model: Path, tmp_path: Path) -> None:
    """HFL's small has 12,280,576, counted without building the weights."""
    folder = copy(tiny_model, tmp_path)
    ElectraConfig(
        vocab_size=21128, embedding_size=128, hidden_size=256, num_hidden_layers=12, intermediate_size=1024
    ).save_pretrained(folder)
    assert model_facts(folder)["parameters"] == 12_280_576


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


# --- loading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "span"])
def test_a_stored_head_gives_the_same_logits(kind: str, tiny_model: Path, tmp_path: Path) -> None:
    """Parity with a checkpoint that transformers wrote, head included."""
    folder = copy(tiny_model, tmp_path)
    torch.manual_seed(1)
    config = ElectraConfig.from_pretrained(tiny_model, num_labels=3 if kind == "text" else 2)
    kinds = {"text": ElectraForSequenceClassification, "span": ElectraForQuestionAnswering}
    original = kinds[kind](config).eval()
    original.save_pretrained(folder)
    loaded = load_model(folder, kind, keep_head=True)
    ids = torch.randint(700, 8000, (2, 12))
    with torch.no_grad():
        ours, theirs = loaded(input_ids=ids), original(input_ids=ids)
    for name in ("logits",) if kind == "text" else ("start_logits", "end_logits"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
    fresh = load_model(folder, kind, 3)
    head = "classifier.dense.weight" if kind == "text" else "qa_outputs.weight"
    assert not torch.equal(fresh.get_parameter(head), original.get_parameter(head))
    assert torch.equal(
        fresh.get_parameter("electra.embeddings.word_embeddings.weight"),
        original.get_parameter("electra.embeddings.word_embeddings.weight"),
    )


@pytest.mark.parametrize("model_class", [ElectraForSequenceClassification, BertForSequenceClassification])
def test_first_token_alone_gives_the_same_logits_and_gradients(model_class: type) -> None:
    torch.manual_seed(0)
    config = model_class.config_class(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    network = model_class(config).eval()
    ids, mask = torch.randint(0, 50, (2, 7)), torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    results = []
    for _ in range(2):
        logits = network(input_ids=ids, attention_mask=mask).logits
        network.zero_grad()
        logits.square().sum().backward()
        results.append((logits, *[p.grad.clone() for p in network.parameters() if p.grad is not None]))
        classify.first_token_only(network)
    for plain, short in zip(*results, strict=True):
        torch.testing.assert_close(plain, short, atol=1e-6, rtol=1e-5)


def test_head_follows_the_seed(tiny_model: Path) -> None:
    heads = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        heads.append(load_model(tiny_model, "text", 2).get_parameter("classifier.out_proj.weight"))
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def bert(folder: Path, vocab_path: Path, *, safetensors: bool = True) -> Path:
    """A folder as old Hub repositories are: an encoder without heads, vocab.txt and no tokenizer.json."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=21128, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    model = BertModel(config)
    model.save_pretrained(folder)
    if not safetensors:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    shutil.copyfile(vocab_path, folder / "vocab.txt")
    return folder


@pytest.mark.parametrize("safetensors", [True, False])
def test_bert_with_vocab_txt_only(safetensors: bool, vocab_path: Path, tmp_path: Path) -> None:
    folder = bert(tmp_path / "bert", vocab_path, safetensors=safetensors)
    assert load_encoder(folder).encode(["Ａpple苹果"])[0].tokens[-2:] == ["苹", "果"]
    network = load_model(folder, "text", 2)
    stored = BertModel.from_pretrained(folder)
    assert torch.equal(network.bert.pooler.dense.weight, stored.pooler.dense.weight)
    assert load_model(folder, "span").dtype == torch.float32
    assert model_facts(folder)["family"] == "bert"


def test_bf16_weights_become_fp32_masters(tiny_model: Path, tmp_path: Path) -> None:
    folder = copy(tiny_model, tmp_path)
    ElectraModel.from_pretrained(tiny_model, dtype=torch.bfloat16).save_pretrained(folder)
    assert {p.dtype for p in load_model(folder, "text", 2).parameters()} == {torch.float32}


# --- the user's mistakes --------------------------------------------------------------------------


def test_missing_encoder_weights_are_named(tiny_model: Path, tmp_path: Path) -> None:
    folder = copy(tiny_model, tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights["electra.encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"encoder\.layer\.1\.output\.dense\.weight"):
        load_model(folder, "text", 2)


def test_a_pooler_that_is_not_stored_is_not_made_up(vocab_path: Path, tmp_path: Path) -> None:
    """To predict with a drawn one would be a guess; to train with one is how a head begins."""
    folder = bert(tmp_path / "bert", vocab_path)
    network = BertForSequenceClassification.from_pretrained(folder, num_labels=2)
    weights = {name: value for name, value in network.state_dict().items() if "pooler" not in name}
    network.save_pretrained(folder)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"has no bert\.pooler\.dense\.bias: it is not fine-tuned"):
        load_model(folder, "text", keep_head=True)
    assert load_model(folder, "text", 2).bert.pooler.dense.weight.std() > 0


@pytest.mark.parametrize(("key", "value"), [("num_hidden_layers", 1), ("intermediate_size", 128)])
def test_config_of_another_model(key: str, value: int, tiny_model: Path, tmp_path: Path) -> None:
    folder = copy(tiny_model, tmp_path)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(UserError, match="do not match"):
        load_model(folder, "text", 2)


def test_folders_that_are_no_models(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        locate(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"config\.json"):
        locate(tmp_path)
    folder = copy(tiny_model, tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match="no weights"):
        model_facts(folder)


def test_a_folder_that_differs_from_its_manifest_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    folder = copy(tiny_model, tmp_path)
    write_manifest(folder, stage="pretrain.export", config={}, name="exported")
    assert model_facts(folder)["name"] == "exported"
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match=r"model\.safetensors differs from its manifest"):
        model_facts(folder)


def test_flops_of_pretraining_come_from_the_manifest(tiny_model: Path, tmp_path: Path) -> None:
    """Steps times those of a step; 0 with random weights; unknown without a manifest of this version."""
    folder = copy(tiny_model, tmp_path)
    assert model_facts(folder)["pretraining_flops"] is None
    preset = PRESETS["tiny"]
    for step, expected in ((10, 10 * step_flops(preset)), (None, 0)):
        write_manifest(folder, stage="pretrain.export", config=preset, name="x", step=step)
        assert model_facts(folder)["pretraining_flops"] == expected
    write_manifest(folder, stage="pretrain.export", config={"of": "another version"}, name="x", step=1)
    assert model_facts(folder)["pretraining_flops"] is None


def test_unknown_hub_id_offline() -> None:
    with pytest.raises(UserError, match="neither a folder nor a model"):
        locate("nobody/no-such-model")


def test_vocabulary_of_another_size(tiny_model: Path, vocab_path: Path, tmp_path: Path) -> None:
    folder = bert(tmp_path / "bert", vocab_path)
    lines = vocab_path.read_text("utf-8").split("\n")[:5000]
    (folder / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="5000 entries but the model 21128"):
        load_encoder(folder)
    (folder / "vocab.txt").unlink()
    with pytest.raises(UserError, match="tokenizer"):
        load_encoder(folder)


def test_damaged_weights(tiny_model: Path, tmp_path: Path) -> None:
    folder = copy(tiny_model, tmp_path)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(folder, "text", 2)
