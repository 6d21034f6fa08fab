"""The loop, checkpoints, resume and export: cases 35, 50, 51, 52, 54."""

import dataclasses
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
from pretrain.data import Batch, open_corpus, row_indices, train_batches
from pretrain.evaluate import entropy, evaluate
from pretrain.export import export_random
from pretrain.inspect import as_html, as_table, inspect
from pretrain.objectives import Objective, build_model
from pretrain.plan import plan
from pretrain.report import Report, duration
from pretrain.system import Loss, Outputs
from pretrain.train import train
from provenance import UserError, plain, read_manifest, verify_manifest, write_manifest

SMALL = {
    **{"layers": 1, "hidden": 32, "heads": 2, "embedding": 32, "steps": 20, "batch-size": 8, "warmup": 2},
    **{"log-every": 5, "eval-every": 10, "save-every": 10, "learning-rate": 0.001, "initial-fake-rate": 0.5},
}
OPTIONS = [
    "--no-tensorboard",
    "--no-initial-unigrams",
    *(word for name, value in SMALL.items() for word in (f"--{name}", str(value))),
]


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
    assert "going on from step-10" in said
    assert equal(weights(out, 20), weights(finished, 20))


@pytest.fixture(scope="module")
def stable(corpus, tmp_path_factory) -> Path:
    """18 of 20 steps at the peak rate."""
    out = tmp_path_factory.mktemp("stable")
    run(corpus, out, "--schedule", "wsd", "--milestone-every", "9")
    return out


def test_a_branch_is_a_whole_run_of_its_length(corpus, stable, tmp_path):
    """Steps 0 to 9 of the long run and 1 of decay are a run of 10 steps: weights and identity."""
    assert {p.name for p in (stable / "checkpoints").iterdir()} == {"step-9", "step-18", "step-20"}
    branch, whole = tmp_path / "branch", tmp_path / "whole"
    step_9 = stable / "checkpoints" / "step-9"
    words = ["tiny", "--corpus", str(corpus), "--out", str(branch), "--no-tensorboard"]
    train(parse([*words, "--decay-from", str(step_9)]))
    run(corpus, whole, "--schedule", "wsd", "--steps", "10")
    assert equal(weights(branch, 10), weights(whole, 10))
    assert read_manifest(branch)["config_id"] == read_manifest(whole)["config_id"]
    with pytest.raises(UserError, match=r"leave out seed: 0 -> 1"):
        parse([*words, "--decay-from", str(step_9), "--seed", "1"])
    with pytest.raises(UserError, match=r"decays before step-9; give --steps of at least 10"):
        parse([*words, "--decay-from", str(step_9), "--steps", "9"])
    with pytest.raises(UserError, match="no checkpoint"):
        parse([*words, "--decay-from", str(stable)])


def test_a_branch_needs_the_schedule_and_the_corpus(corpus, finished, stable, tmp_path):
    words = ["tiny", "--out", str(tmp_path / "out"), "--decay-from"]
    with pytest.raises(UserError, match="schedule linear"):
        parse([*words, str(finished / "checkpoints" / "step-10"), "--corpus", str(corpus)])
    other = tmp_path / "other"
    shutil.copytree(corpus, other)
    (other / "more.txt").write_text("x")
    write_manifest(other, stage="corpus.build", config={"synthetic": True})
    with pytest.raises(UserError, match="another corpus"):
        train(parse([*words, str(stable / "checkpoints" / "step-9"), "--corpus", str(other)]))


def test_masked_language_model(corpus, tmp_path):
    """The same loop and corpus with one network: it exports what AutoModel loads."""
    run(corpus, tmp_path, "--objective", "mlm")
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().split("\n") if line]
    assert entries[-1]["loss"] == entries[-1]["encoder_loss"] < entries[0]["loss"]
    assert "heldout_encoder_accuracy" in entries[-1]
    assert not any("discriminator" in name or "fake" in name for name in entries[-1])
    encoder, info = AutoModel.from_pretrained(tmp_path / "encoder", output_loading_info=True)
    assert not info["missing_keys"]
    assert read_manifest(tmp_path / "encoder")["parameters"] == encoder.num_parameters()
    assert "masked language model" in (tmp_path / "encoder" / "README.md").read_text()
    tokens = inspect(tmp_path, "今天好")
    assert all(t.replaced is None and t.guess is not None for t in tokens)
    assert inspect(tmp_path / "encoder", "今天好") == tokens
    run(corpus, tmp_path, "--overwrite", "--objective", "mlm", "--masking", "word", "--steps", "2")
    assert verify_manifest(tmp_path)["config"]["masking"] == "word"


def test_starting_at_the_frequencies_of_the_corpus(corpus, tmp_path):
    """Ids 700 to 749 alone stand in the rows: the generator starts near ln 50, not ln 21128."""
    rows, _, _ = open_corpus(corpus, 128)
    counts = rows.token_counts(21128)
    assert counts.sum() == sum(len(rows.column("input_ids", i)) for i in range(len(rows)))
    assert counts[700:750].sum() + counts[101] + counts[102] == counts.sum()
    run(corpus, tmp_path, "--initial-unigrams", "--steps", "1", "--log-every", "1", "--warmup", "0")
    first = json.loads((tmp_path / "log.jsonl").read_text().split("\n")[0])
    assert first["generator_loss"] == pytest.approx(np.log(50), abs=0.3)


def test_fp16_trains_and_resumes(corpus, tmp_path):
    """The scale on the loss falls until gradients are finite; those steps are counted, and it is kept."""
    run(corpus, tmp_path, "--dtype", "fp16")
    state = weights(tmp_path, 20)
    skipped = verify_manifest(tmp_path)["counts"]["skipped"]
    assert state["scale"]["factor"].item() == 65536 / 2**skipped
    assert all(torch.isfinite(value).all() for value in state["model"].values())


def test_many_skipped_steps_stop_the_run(corpus, tmp_path, monkeypatch):
    import pretrain.train as module

    monkeypatch.setattr(module, "MAX_SKIPPED", 5)
    monkeypatch.setattr(module, "clipping", lambda parameters, norm, scale: (torch.ones(()), torch.ones(())))
    with pytest.raises(UserError, match="last 5 updates before step 5 were not finite"):
        run(corpus, tmp_path)


def test_the_plan_warns(corpus, tmp_path, capsys):
    """Epochs over 40, and a warm-up of more than a tenth of the run."""
    config = dataclasses.replace(PRESETS["tiny"], steps=100, warmup=11, batch_size=100)
    given = {"rows": 200, "micro": 10, "processes": 2, "device": torch.device("cpu"), "parameters": 2**20}
    given |= {"kept": 0, "out": tmp_path}
    said = plan("tiny", config, Runtime(), **given)
    assert "50.00 epochs" in said
    assert "5 micro-batch(es) of 10 rows; 16 MiB" in said
    assert "warning: 50 epochs" in said
    assert "warning: the warm-up of 11 steps" in said
    calm = dataclasses.replace(config, warmup=8, steps=80)
    assert "warning" not in plan("tiny", calm, Runtime(), **given)
    shortest = dataclasses.replace(config, warmup=1, steps=3)  # there is no lower one
    assert "warning" not in plan("tiny", shortest, Runtime(), **given)


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


def test_bad_usage(corpus, tmp_path, capsys):
    for words in (["huge", "--corpus", "c", "--out", "o"], ["--corpus", "c", "--out", "o"]):
        with pytest.raises(SystemExit) as exit_:
            parse(words)
        assert exit_.value.code == 2
    assert "SIZE" in capsys.readouterr().err
    assert parse(["--corpus", "c", "--out", "o", "mini"]).config == PRESETS["mini"]
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
    config = dataclasses.replace(PRESETS["tiny"], batch_size=16)
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
    load_checkpoint(finished / "checkpoints" / "step-20", model)
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
    doubt = as_table(tokens).columns[1]._cells[0]
    assert "rgb(" in str(doubt.style)
    page = as_html("今天<好>", tokens)
    assert "&lt;" in page
    assert page.count("<span") == 5
    with pytest.raises(UserError, match=r"model.safetensors"):
        inspect(finished / "checkpoints", "好")


WORKER = """
import sys
import pretrain.projection as projection
from pretrain.command import parse
from pretrain.train import train

projection.draw = lambda probabilities, uniform: uniform.new_full(uniform.shape, 2345).long()
train(parse(sys.argv[1:]))
"""


def test_two_processes(corpus, tmp_path, monkeypatch):
    """Two gloo processes whose rows hold different numbers of masked tokens compute one process's gradients.

    Each process draws from its own stream, so for this comparison one id stands for every draw.
    Without clipping, Adam's first moment after one step is a tenth of the gradient.
    """
    options = ["--dtype", "fp32", "--dropout", "0", "--clip", "1e9", "--steps", "1", "--log-every", "1"]
    (tmp_path / "worker.py").write_text(WORKER)
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(tmp_path / "worker.py")]
    given = ["tiny", "--corpus", str(corpus), "--out", str(tmp_path / "two"), *OPTIONS, *options]
    done = subprocess.run(
        [sys.executable, "-m", *launch, *given],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    same = lambda probabilities, uniform: uniform.new_full(uniform.shape, 2345).long()  # noqa: E731
    monkeypatch.setattr("pretrain.projection.draw", same)
    run(corpus, tmp_path / "one", *options)
    two, one = (weights(tmp_path / name, 1)["optimizer"]["state"] for name in ("two", "one"))
    assert two.keys() == one.keys()
    for key in one:
        difference = (two[key]["exp_avg"] - one[key]["exp_avg"]).abs().max().item()
        assert 10 * difference < 2e-6 * max(1.0, 10 * one[key]["exp_avg"].abs().max().item())
    logs = [json.loads((tmp_path / n / "log.jsonl").read_text().split("\n")[0]) for n in ("two", "one")]
    assert logs[0]["tokens"] == logs[1]["tokens"]
    assert logs[0]["loss"] == pytest.approx(logs[1]["loss"], rel=1e-5)
    assert (tmp_path / "two" / "discriminator" / "model.safetensors").exists()


def test_heldout_metrics(monkeypatch):
    """Five tokens, one of them padding; two replaced, one of these found; one false alarm.

    Precision 1/2, recall 1/2, fake rate 2/4; of the four pairs (replaced, original) two are in order: AUC 50.
    The generator chose three ids: one drawn right, two guessed right.
    """
    batch = Batch(
        input_ids=torch.tensor([[5, 6, 7, 8, 0]]),
        masked_ids=torch.tensor([[103, 103, 103, 8, 0]]),
        token_type_ids=torch.zeros(1, 5, dtype=torch.long),
        positions=torch.tensor([0, 1, 2]),
        attention_mask=torch.tensor([[1.0, 1, 1, 1, 0]]),
        tokens=4,
    )
    outputs = Outputs(
        losses={
            "generator": Loss(torch.tensor(6.0), "chosen"),
            "discriminator": Loss(torch.tensor(2.0), "tokens", 50.0),
        },
        guessed={"generator": torch.tensor([5, 9, 7])},
        sampled=torch.tensor([9, 9, 7]),
        logits=torch.tensor([[2.0, -2.0, 1.0, -1.0, 9.0]]),
        replaced=torch.tensor([[True, True, False, False, False]]),
    )
    config = dataclasses.replace(PRESETS["tiny"], dtype="fp32")
    objective = Objective(build_model(config), config)
    monkeypatch.setattr(objective, "forward", lambda given, step: outputs)
    found = evaluate(objective, [batch], config, torch.device("cpu"), 0)
    assert 0 < found.pop("heldout_token_cosine") < 1
    assert {name.removeprefix("heldout_"): value for name, value in found.items()} == pytest.approx(
        {
            "loss": 2.0 + 50 * 0.5,
            "generator_loss": 2.0,
            "discriminator_loss": 0.5,
            "fake_rate": 0.5,
            "fake_entropy": 0.693147,
            "generator_accuracy": 200 / 3,
            "generator_accuracy_sampled": 100 / 3,
            "precision": 50.0,
            "recall": 50.0,
            "auc": 50.0,
        },
        abs=1e-5,
    )


def test_non_finite_steps_are_skipped_and_counted(corpus, tmp_path, monkeypatch):
    """Case 54: a step whose gradient is not finite changes nothing and is counted; the run goes on."""
    import pretrain.train as module

    calls = []
    clipping = module.clipping

    def broken(parameters, norm, scale):
        calls.append(1)
        if len(calls) == 3:
            parameters[0].grad.fill_(float("nan"))
        return clipping(parameters, norm, scale)

    monkeypatch.setattr(module, "clipping", broken)
    run(corpus, tmp_path)
    assert verify_manifest(tmp_path)["counts"]["skipped"] == 1
    assert "NaN" not in (tmp_path / "log.jsonl").read_text()
    state = weights(tmp_path, 20)["model"]
    assert all(torch.isfinite(value).all() for value in state.values())


def test_entropy_and_durations():
    """The loss of a discriminator that knows the rate alone: 0.15 -> 0.4227 nats."""
    assert entropy(0.15) == pytest.approx(0.42271, abs=1e-5)
    assert entropy(0.0) == entropy(1.0) == 0.0
    assert [duration(s) for s in (45, 725, 11_100)] == ["45 s", "12 min", "3 h 05 min"]
