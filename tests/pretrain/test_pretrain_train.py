"""The loop, checkpoints, resume and export: cases 35, 50, 51, 52, 54."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, ElectraForMaskedLM, ElectraForPreTraining

from pretrain.command import parse
from pretrain.config import PRESETS, Runtime, config_from, micro_batch
from pretrain.data import open_corpus, row_indices, train_batches
from pretrain.evaluate import entropy
from pretrain.export import export_random
from pretrain.inspect import as_html, inspect
from pretrain.report import Report, duration
from pretrain.train import train
from provenance import UserError, plain, read_manifest, verify_manifest

SMALL = {
    **{"layers": 1, "hidden": 32, "heads": 2, "embedding": 32, "steps": 20, "batch-size": 8, "warmup": 2},
    **{"log-every": 5, "eval-every": 10, "save-every": 10},
}
OPTIONS = ["--no-tensorboard", *(word for name, value in SMALL.items() for word in (f"--{name}", str(value)))]


def run(corpus: Path, out: Path, *more: str) -> None:
    train(parse(["tiny", "--corpus", str(corpus), "--out", str(out), *OPTIONS, *more]))


def weights(out: Path, step: int) -> dict:
    return torch.load(out / "checkpoints" / f"step-{step}" / "state.pt", weights_only=True)


def equal(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("run")
    run(corpus, out)
    return out


def test_a_run_leaves_what_the_contract_names(finished):
    names = {p.name for p in finished.iterdir()}
    assert {"checkpoints", "discriminator", "generator", "log.jsonl", "manifest.json"} <= names
    entries = [json.loads(line) for line in (finished / "log.jsonl").read_text().split("\n") if line]
    assert [e["step"] for e in entries] == [5, 10, 15, 20]
    fields = "step tokens flops lr loss generator_loss discriminator_loss tokens_per_second skipped"
    assert set(fields.split()) | {"fake_rate", "fake_entropy"} <= set(entries[0])
    assert "heldout_auc" in entries[1]
    assert "heldout_auc" not in entries[0]
    assert entries[-1]["loss"] < entries[0]["loss"]
    assert verify_manifest(finished, "pretrain.train")["counts"]["tokens"] == entries[-1]["tokens"]


def test_resume_is_exact(corpus, finished, tmp_path, monkeypatch, capsys):
    """Case 51: 20 steps = 10, SIGTERM, resume, 10: weights, moments and log, bit for bit."""
    advance = Report.advance

    def stop_at_10(self, step):
        advance(self, step)
        if step == 10:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Report, "advance", stop_at_10)
    run(corpus, tmp_path)
    assert "SIGTERM: saved step-10" in capsys.readouterr().out
    assert not (tmp_path / "manifest.json").exists()
    monkeypatch.undo()
    with pytest.raises(UserError, match="--resume"):
        run(corpus, tmp_path)
    with pytest.raises(UserError, match=r"learning_rate: 0\.001 -> 0\.002"):
        run(corpus, tmp_path, "--resume", "--learning-rate", "0.002")
    run(corpus, tmp_path, "--resume")
    assert equal(weights(tmp_path, 20), weights(finished, 20))
    logs = [(out / "log.jsonl").read_text().split("\n") for out in (finished, tmp_path)]
    for a, b in zip(*logs, strict=True):
        if a:
            a, b = json.loads(a), json.loads(b)
            a.pop("tokens_per_second"), b.pop("tokens_per_second")
            assert a == b


def test_torn_checkpoint_is_passed_over(corpus, finished, tmp_path, capsys):
    """Case 51: a damaged checkpoint is named, the one before it is taken, the end is the same."""
    out = tmp_path / "run"
    shutil.copytree(finished, out)
    for name in ("manifest.json", "log.jsonl"):
        (out / name).unlink()
    state = out / "checkpoints" / "step-20" / "state.pt"
    state.write_bytes(state.read_bytes()[:-100])
    run(corpus, out, "--resume")
    said = capsys.readouterr().out
    assert "passed over step-20" in said
    assert "resumed from step-10" in said
    assert equal(weights(out, 20), weights(finished, 20))


def test_finished_runs(corpus, finished, capsys):
    """The same run again is reused and says so; another one is refused."""
    before = (finished / "manifest.json").read_bytes()
    run(corpus, finished)
    assert "nothing to do" in capsys.readouterr().out
    assert (finished / "manifest.json").read_bytes() == before
    with pytest.raises(UserError, match="seed: 0 -> 1"):
        run(corpus, finished, "--seed", "1")


def test_replay_from_a_manifest(finished):
    """--from takes the settings whole; options still change them."""
    manifest = finished / "manifest.json"
    given = parse(["tiny", "--corpus", "c", "--out", "o", "--from", str(manifest), "--seed", "3"])
    assert plain(given.config) == {**read_manifest(finished)["config"], "seed": 3}
    assert config_from(read_manifest(finished)["config"]).shape.hidden == 32


def test_bad_usage(corpus, tmp_path):
    with pytest.raises(UserError, match="tiny, mini, small, small-ex, base, large"):
        parse(["huge", "--corpus", "c", "--out", "o"])
    with pytest.raises(UserError, match="rtd"):
        parse(["tiny", "--corpus", "c", "--out", "o", "--objective", "nsp"])
    with pytest.raises(SystemExit) as exit_:
        parse(["tiny", "--corpus", "c", "--out", "o", "--lerning-rate", "1"])
    assert exit_.value.code == 2
    with pytest.raises(UserError, match=r"run corpus.build"):
        run(tmp_path / "none", tmp_path / "out")
    with pytest.raises(UserError, match="rows-128"):
        run(corpus, tmp_path / "out", "--length", "256")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match="not empty"):
        run(corpus, tmp_path / "foreign")
    with pytest.raises(UserError, match="does not divide by 3"):
        micro_batch(PRESETS["tiny"], Runtime(), 3)


def test_batches_depend_on_seed_step_and_row_alone(corpus):
    """Cases 35, 50, 51: processes and micro-batches see one run's rows; an epoch is a permutation."""
    rows, heldout, _ = open_corpus(corpus, 128)
    config = PRESETS["tiny"]
    (whole,) = train_batches(rows, config, 7, rank=0, processes=1, micro=16)
    parts = [b for r in (0, 1) for b in train_batches(rows, config, 7, rank=r, processes=2, micro=4)]
    assert len(heldout) == 20
    assert len(parts) == 4
    for name in ("input_ids", "masked_ids", "token_type_ids"):
        for index, part in enumerate(parts):
            ours = getattr(part, name)
            assert torch.equal(ours, getattr(whole, name)[index * 4 : index * 4 + 4, : ours.shape[1]])
    assert sum(b.tokens for b in parts) == whole.tokens
    order = np.concatenate([row_indices(config, 200, k) for k in range(25)])
    first, second = order[:200], order[200:]
    assert sorted(first) == sorted(second) == list(range(200))
    assert (first != second).any()


def test_export_loads_as_transformers(finished, caplog, vocab_path):
    """Case 52: both folders load alone, nothing missing, logits as the training model's."""
    from safetensors import safe_open

    from pretrain.checkpoint import load_checkpoint
    from pretrain.model import Electra

    model = Electra(config_from(read_manifest(finished)["config"]).shape).eval()
    load_checkpoint(finished / "checkpoints" / "step-20", model, None, torch.device("cpu"))
    for part, kind, ours in (
        ("discriminator", ElectraForPreTraining, model.discriminator),
        ("generator", ElectraForMaskedLM, model.generator),
    ):
        folder = finished / part
        loaded, info = kind.from_pretrained(folder, output_loading_info=True)
        assert not info["missing_keys"]
        assert not info["unexpected_keys"]
        tokenizer = AutoTokenizer.from_pretrained(folder)
        assert len(tokenizer) == 21128
        assert tokenizer.model_max_length == 512
        ids = tokenizer(["他说好，iPhone也好。", "甲"], padding=True, return_tensors="pt")
        with torch.no_grad():
            theirs, mine = loaded.eval()(**ids).logits, ours(**ids).logits
        present = ids["attention_mask"].bool()
        assert torch.allclose(theirs[present], mine[present], atol=1e-5)
        with safe_open(folder / "model.safetensors", "pt") as file:
            assert "electra.embeddings.word_embeddings.weight" in set(file.keys())
        manifest = verify_manifest(folder, "pretrain.export")
        encoder, info = AutoModel.from_pretrained(folder, output_loading_info=True)
        assert not info["missing_keys"]
        assert manifest["parameters"] == sum(p.numel() for p in encoder.parameters())
        assert (folder / "vocab.txt").read_bytes() == vocab_path.read_bytes()
        assert "Intended use" in (folder / "README.md").read_text()
    table = loaded.electra.embeddings.word_embeddings.weight
    assert loaded.generator_lm_head.weight.data_ptr() == table.data_ptr()
    assert "byte_dropout" not in (finished / "discriminator" / "config.json").read_text()


def test_random_baseline(tmp_path):
    """The same folders with untrained weights: the seed decides them, the card says it."""
    hashes = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        export_random("tiny", tmp_path / name, seed=seed)
        hashes.append(read_manifest(tmp_path / name / "discriminator")["weights_sha256"])
    assert hashes[0] == hashes[1] != hashes[2]
    assert read_manifest(tmp_path / "a" / "discriminator")["name"] == "zh-electra-tiny-random"
    assert "random" in (tmp_path / "a" / "discriminator" / "README.md").read_text()


def test_inspect(finished):
    tokens = inspect(finished, "今天<好>")
    assert [t.text for t in tokens] == ["今", "天", "<", "好", ">"]
    assert all(0 <= t.replaced <= 1 and t.guess is not None for t in tokens)
    page = as_html("今天<好>", tokens)
    assert "&lt;" in page
    assert page.count("<span") == 5
    with pytest.raises(UserError, match=r"model.safetensors"):
        inspect(finished / "checkpoints", "好")


def test_two_processes(corpus, tmp_path):
    """Case 50: two gloo processes train, log the same counts as one would, and export."""
    command = [
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        "29611",
        "-m",
        "pretrain.train",
        "tiny",
    ]
    command += ["--corpus", str(corpus), "--out", str(tmp_path / "two"), *OPTIONS, "--dtype", "fp32"]
    command += ["--dropout", "0", "--steps", "1", "--log-every", "1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    one = tmp_path / "one"
    run(corpus, one, "--dtype", "fp32", "--dropout", "0", "--steps", "1", "--log-every", "1")
    logs = [json.loads((out / "log.jsonl").read_text().split("\n")[0]) for out in (tmp_path / "two", one)]
    assert logs[0]["tokens"] == logs[1]["tokens"]
    assert logs[0]["generator_loss"] == pytest.approx(logs[1]["generator_loss"], rel=1e-5)
    assert (tmp_path / "two" / "discriminator" / "model.safetensors").exists()


def test_non_finite_steps_are_skipped_and_counted(corpus, tmp_path, monkeypatch):
    """Case 54: a step whose gradient is not finite changes nothing and is counted; the run goes on."""
    import pretrain.train as module

    calls = []
    clipping = module.clipping

    def broken(parameters, norm):
        calls.append(1)
        if len(calls) == 3:
            parameters[0].grad.fill_(float("nan"))
        return clipping(parameters, norm)

    monkeypatch.setattr(module, "clipping", broken)
    run(corpus, tmp_path)
    assert verify_manifest(tmp_path)["counts"]["skipped"] == 1
    state = weights(tmp_path, 20)["model"]
    assert all(torch.isfinite(value).all() for value in state.values())


def test_entropy_and_durations():
    """The loss of a discriminator that knows the rate alone: 0.15 -> 0.4227 nats."""
    assert entropy(0.15) == pytest.approx(0.42271, abs=1e-5)
    assert entropy(0.0) == entropy(1.0) == 0.0
    assert [duration(s) for s in (45, 725, 11_100)] == ["45 s", "12 min", "3 h 05 min"]
