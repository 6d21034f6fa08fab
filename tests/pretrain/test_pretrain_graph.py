"""ONNX of what a run exports: any number of rows and tokens, and nothing said on the way."""

import logging
import sys

import numpy as np
import pytest
import torch
from transformers import ElectraForMaskedLM, ElectraForPreTraining

import pretrain.export
from pretrain.config import Size
from pretrain.graph import _no_chatter, write_onnx
from pretrain.model import Electra
from provenance import run_cli


def difference(network: torch.nn.Module, path, rows: int, tokens: int) -> float:
    """Largest difference of a logit between onnxruntime and PyTorch, padding aside."""
    import onnxruntime

    ids = torch.randint(672, 7992, (rows, tokens))
    mask = torch.ones_like(ids)
    mask[-1, 2:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": (ids > 4000).long()}
    with torch.no_grad():
        ours = network(**inputs).logits.numpy()
    session = onnxruntime.InferenceSession(path)
    (theirs,) = session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})
    assert theirs.shape == ours.shape
    return float(np.abs(ours - theirs)[mask.bool().numpy()].max())


@pytest.fixture
def onnx():
    """The packages of the extra."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")


def test_the_program_writes_graphs_of_both_networks(onnx, tmp_path, monkeypatch, capfd):
    """From one token to as many as there are positions; logits equal within 1e-4."""
    given = ["--random", "tiny", "--out", str(tmp_path), "--onnx"]
    monkeypatch.setattr(sys, "argv", ["export", *given])
    with pytest.raises(SystemExit) as ended:
        run_cli(pretrain.export.main)
    said = capfd.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    assert said.out.count("\n") == 1
    for name, kind in (("discriminator", ElectraForPreTraining), ("generator", ElectraForMaskedLM)):
        network = kind.from_pretrained(tmp_path / name).eval()
        for rows, tokens in ((1, 1), (1, 2), (3, 40), (1, 512)):
            found = difference(network, tmp_path / name / "model.onnx", rows, tokens)
            print(f"{name}, {rows} x {tokens}: {found:.1e}")
            assert found < 1e-4


@pytest.mark.parametrize("sharing", ["none", "gdes"])
def test_networks_of_any_sharing_and_length(sharing, onnx, tmp_path):
    torch.manual_seed(0)
    shape = Size(layers=1, hidden=32, heads=2, embedding=16, max_positions=24, initializer_range=0.3)
    network = Electra(shape, sharing=sharing).standalone("discriminator").eval()
    write_onnx(network, tmp_path / "model.onnx")
    assert difference(network, tmp_path / "model.onnx", 2, 24) < 1e-4


def test_other_logs_speak_again():
    """Also where the exporter fails."""
    with pytest.raises(ValueError, match="x"), _no_chatter():
        assert not logging.getLogger("torch").isEnabledFor(logging.WARNING)
        raise ValueError("x")
    assert logging.getLogger("torch").isEnabledFor(logging.WARNING)
