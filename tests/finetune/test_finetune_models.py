"""Loading encoders, and facts about them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    ElectraConfig,
    ElectraForQuestionAnswering,
    ElectraForSequenceClassification,
    ElectraModel,
)

from finetune import classify
from finetune.folder import locate
from finetune.models import load_model, model_facts
from finetune.tokens import load_encoder
from pretrain.config import PRESETS
from pretrain.flops import step_flops
from provenance import UserError, write_manifest


def copy(model: Path, folder: Path) -> Path:
    return Path(shutil.copytree(model, folder / "copy"))


# --- facts ----------------------------------------------------------------------------------------


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
