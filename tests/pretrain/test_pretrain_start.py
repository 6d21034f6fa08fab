"""Going on from networks that transformers can load: the shape of hfl/chinese-electra-small, case 44."""

import json
from pathlib import Path

import pytest
import torch
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from pretrain.command import parse
from pretrain.config import SIZES
from pretrain.model import Electra
from pretrain.start import parse_sources, start_from
from pretrain.train import train
from provenance import UserError

# As HFL publishes them: 12 layers, embeddings of 128; 256 and 4 heads, the generator 64 and 1 head.
SHARED = {"vocab_size": 21128, "embedding_size": 128, "num_hidden_layers": 12, "max_position_embeddings": 512}
DISCRIMINATOR = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
GENERATOR = {"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 256}


@pytest.fixture(scope="module")
def pair(tmp_path_factory, vocab_path) -> dict[str, str]:
    """Two folders as transformers writes them, random weights, one table of embeddings."""
    torch.manual_seed(1)
    discriminator = ElectraForPreTraining(ElectraConfig(**SHARED, **DISCRIMINATOR))
    generator = ElectraForMaskedLM(ElectraConfig(**SHARED, **GENERATOR))
    generator.electra.embeddings.load_state_dict(discriminator.electra.embeddings.state_dict())
    torch.nn.init.normal_(generator.generator_lm_head.bias)
    root = tmp_path_factory.mktemp("hfl")
    for name, network in (("discriminator", discriminator), ("generator", generator)):
        network.save_pretrained(root / name)
        (root / name / "vocab.txt").write_bytes(vocab_path.read_bytes())
    return {name: str(root / name) for name in ("discriminator", "generator")}


def test_both_networks(pair, vocab_path):
    """All weights are theirs and the embeddings are one table again."""
    model = Electra(SIZES["small"], cheap_dropout=True)
    hashes = start_from(model, pair, vocab_path)
    assert set(hashes) == set(pair)
    for name, kind in (("discriminator", ElectraForPreTraining), ("generator", ElectraForMaskedLM)):
        theirs, ours = kind.from_pretrained(pair[name]).state_dict(), getattr(model, name).state_dict()
        assert theirs.keys() == ours.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    assert model.generator.electra.embeddings is model.discriminator.electra.embeddings


def test_a_discriminator_alone(pair, vocab_path):
    """The new generator shares the loaded embeddings."""
    model = Electra(SIZES["small"])
    start_from(model, {"discriminator": pair["discriminator"]}, vocab_path)
    table = ElectraForPreTraining.from_pretrained(pair["discriminator"]).electra.embeddings.word_embeddings
    assert torch.equal(model.generator.generator_lm_head.weight, table.weight)


def test_what_does_not_fit_is_named(pair, vocab_path, tmp_path):
    with pytest.raises(UserError, match="num_hidden_layers is 12, and 4 here"):
        start_from(Electra(SIZES["mini"]), pair, vocab_path)
    with pytest.raises(UserError, match="discriminator_predictions"):
        start_from(Electra(SIZES["small"]), {"discriminator": pair["generator"]}, vocab_path)
    with pytest.raises(UserError, match="cannot be loaded"):
        start_from(Electra(SIZES["small"]), {"generator": str(tmp_path)}, vocab_path)
    with pytest.raises(UserError, match=r"'encoder=x' is not NETWORK=MODEL with a network of discriminator"):
        parse_sources(["encoder=x"], ["discriminator", "generator"])
    torch.manual_seed(2)
    ElectraForMaskedLM(ElectraConfig(**SHARED, **GENERATOR)).save_pretrained(tmp_path / "other")
    mixed = {**pair, "generator": str(tmp_path / "other")}
    with pytest.raises(UserError, match=r"word_embeddings.weight differs between .* --sharing none"):
        start_from(Electra(SIZES["small"]), mixed, vocab_path)
    start_from(Electra(SIZES["small"], sharing="none"), mixed, vocab_path)
    (tmp_path / "other" / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(UserError, match="another vocab"):
        start_from(Electra(SIZES["small"], sharing="none"), mixed, vocab_path)


def test_a_run_goes_on_from_a_pair(pair, corpus, tmp_path):
    """A fresh schedule over the loaded weights; where they come from is part of the run's identity."""
    words = ["small", "--corpus", str(corpus), "--out", str(tmp_path), "--length", "128", "--batch-size", "2"]
    words += ["--steps", "1", "--no-tensorboard", "--eval-rows", "4", "--warmup", "1"]
    given = [f"{name}={folder}" for name, folder in pair.items()]
    train(parse([*words, "--continue-from", *given]))
    run = json.loads((tmp_path / "run.json").read_text())
    assert set(run["start"]) == {"discriminator", "generator"}
    with pytest.raises(UserError, match="first weights"):
        train(parse([*words, "--continue-from", given[0]]))
    # the rate of step 0 is 0: the exported weights are those it started from
    ours = ElectraForPreTraining.from_pretrained(tmp_path / "discriminator").state_dict()
    theirs = ElectraForPreTraining.from_pretrained(Path(pair["discriminator"])).state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
