"""The paper's other systems, one test per defining property; each trains, resumes, exports, is counted."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, ElectraForMaskedLM

from pretrain.command import parse
from pretrain.config import PRESETS, SIZES, Size, ramp
from pretrain.data import Batch, heldout_batches, open_corpus, train_batches
from pretrain.evaluate import evaluate
from pretrain.export import export_random
from pretrain.flops import run_flops, step_flops
from pretrain.losses import copying_loss, corrupt
from pretrain.masking import MASKINGS, masked_count
from pretrain.model import Electra
from pretrain.objectives import OBJECTIVES, Objective, build_model
from pretrain.optim import Adam, parameter_groups
from pretrain.projection import vocabulary_loss
from pretrain.report import Report
from pretrain.sharing import SHARINGS, word_table
from pretrain.start import start_from, start_from_counts
from pretrain.system import Outputs
from pretrain.train import train
from provenance import UserError, read_manifest

SMALL = Size(layers=2, hidden=32, heads=2, embedding=24, generator_fraction=0.5, vocab_size=1000, dropout=0.0)
EQUAL = dataclasses.replace(SMALL, generator_fraction=1.0)
# Every way to train that is no default, as options of pretrain.train.
CASES = {
    "rtd": "",
    "embeddings": "--sharing embeddings --generator-fraction 0.5",
    "none, words": "--sharing none --generator-fraction 0.5 --masking word",
    "mlm": "--objective mlm",
    "rtd-masked": "--objective rtd-masked",
    "replace-mlm": "--objective replace-mlm",
    "all-tokens-mlm": "--objective all-tokens-mlm",
    "random": "--objective random",
    "random, unigrams": "--objective random --replacements unigrams",
    "two-stage": "--objective two-stage --generator-fraction 1 --sharing none",
    "two-stage, gdes": "--objective two-stage --generator-fraction 1 --sharing gdes",
    "adversarial": "--objective adversarial",
    "frozen": "--objective frozen --sharing none --temperature 2 --final-temperature 1",
    "all": "--sharing all --generator-fraction 1",
    "gdes": "--sharing gdes",
    "gdes, two outputs": "--objective replace-mlm --sharing gdes",
    "ngram": "--masking ngram",
    "30 % to 15 %": "--mask-fraction 0.3 --final-mask-fraction 0.15",
}
SHAPE = "--layers 1 --hidden 32 --heads 2 --embedding 32 --batch-size 4 --steps 6 --warmup 1 --no-tensorboard"
TIMES = "--log-every 2 --eval-every 3 --eval-rows 8 --learning-rate 0.001"


def words_of(case: str, corpus: Path, out: Path, given: Path | None = None) -> list[str]:
    """The command line of a small run of ``case``; a generator comes from the run ``given``."""
    words = ["tiny", "--corpus", str(corpus), "--out", str(out), *f"{SHAPE} {TIMES} {CASES[case]}".split()]
    return [*words, *([f"--continue-from=generator={given / 'generator'}"] if case == "frozen" else [])]


def state(out: Path, step: int) -> dict:
    return torch.load(out / "checkpoints" / f"step-{step}" / "state.pt", weights_only=True)


def equal(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def batch_of(lengths: list[int], chosen: list[int], tokens: int = 12) -> Batch:
    """Rows of random ids, padded, whose ``chosen`` places are [MASK]."""
    mask = (torch.arange(tokens)[None] < torch.tensor(lengths)[:, None]).float()
    ids = (torch.randint(200, 1000, mask.shape) * mask).long()
    masked = ids.flatten().index_fill(0, torch.tensor(chosen), 103).view_as(ids)
    return Batch(ids, masked, torch.zeros_like(ids), torch.tensor(chosen), mask, sum(lengths))


BATCH = ([12, 7], [1, 2, 5, 14])  # 4 chosen of 19 tokens


def made(objective: str, shape: Size = SMALL, **settings) -> tuple[Objective, Electra]:
    """Networks in evaluation mode, so that two passes agree."""
    torch.manual_seed(0)
    settings = {"sharing": "embeddings", "initial_fake_rate": 0.5, "dtype": "fp32", **settings}
    config = dataclasses.replace(PRESETS["tiny"], shape=shape, objective=objective, **settings)
    model = build_model(config).eval()
    return Objective(model, config), model


def spied(objective: Objective, batch: Batch, step: int = 0) -> tuple[Outputs, dict[str, torch.Tensor]]:
    """Outputs, and what each network read."""
    read = {}
    plain = objective.model.hidden_states

    def spy(name, input_ids, given):
        read[name] = input_ids
        return plain(name, input_ids, given)

    objective.model.hidden_states = spy  # type: ignore[method-assign]
    try:
        return objective(batch, step), read
    finally:
        del objective.model.hidden_states


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory) -> Path:
    """A finished run of rtd, whose generator others take."""
    out = tmp_path_factory.mktemp("systems") / "rtd"
    train(parse(words_of("rtd", corpus, out)))
    return out


@pytest.mark.parametrize("case", CASES)
def test_each_resumes_bit_for_bit_and_exports(case, corpus, whole, tmp_path, monkeypatch):
    """6 steps are 3, SIGTERM, and 3 more; what is exported loads, and holds the run's weights."""
    words = [words_of(case, corpus, tmp_path / name, whole) for name in ("one", "two")]
    train(parse(words[0]))
    advance = Report.advance

    def stop_at_3(self, step):
        advance(self, step)
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Report, "advance", stop_at_3)
        train(parse(words[1]))
    assert not (tmp_path / "two" / "manifest.json").exists()
    train(parse([*words[1], "--resume"]))
    assert equal(state(tmp_path / "one", 6), state(tmp_path / "two", 6))
    ends = [
        json.loads((tmp_path / name / "log.jsonl").read_text().split("\n")[-2]) for name in ("one", "two")
    ]
    assert ends[0]["flops"] == ends[1]["flops"]
    assert ends[0]["heldout_loss"] == ends[1]["heldout_loss"]

    config = parse(words[0]).config
    system = OBJECTIVES[config.objective]
    model = build_model(config).eval()
    model.load_state_dict(state(tmp_path / "one", 6)["model"])
    model.tie()
    batch = batch_of([12, 7], [1])
    exported = {path.parent.name for path in (tmp_path / "one").glob("*/model.safetensors")}
    assert exported == set(system.trained(config))
    for name in exported:
        encoder, info = AutoModel.from_pretrained(tmp_path / "one" / name, output_loading_info=True)
        assert not info["missing_keys"]
        assert read_manifest(tmp_path / "one" / name)["parameters"] == encoder.num_parameters()
        with torch.no_grad():
            ours = model.hidden_states(name, batch.input_ids, batch)
            theirs = encoder.eval()(batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        present = batch.attention_mask.bool()
        assert torch.allclose(ours[present], theirs[present], atol=1e-5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", [0, 5])
def test_flops_as_torch_counts_them(case, step, monkeypatch):
    """Within 2 % of torch.utils.flop_counter, in the first and last stage; the paper's count is near."""
    monkeypatch.setattr(
        "pretrain.model._filled_up", lambda rows: rows
    )  # up to 31 rows are much of two rows' 76
    words = ["mini", "--corpus", "c", "--out", "o", *CASES[case].split(), "--steps", "6", "--batch-size", "2"]
    if case == "frozen":
        words.append("--continue-from=generator=g")
    config = parse(words).config
    config = dataclasses.replace(config, shape=dataclasses.replace(config.shape, dropout=0.0))
    count = masked_count(128, 128, ramp(config.mask_fraction, config.final_mask_fraction, step, 6))
    ids = torch.randint(200, 21128, (2, 128))
    places = torch.arange(count) + 1
    places = torch.cat([places, 128 + places])
    batch = Batch(ids, ids, torch.zeros_like(ids), places, None, 256)
    model = build_model(config, cheap_dropout=True)
    with FlopCounterMode(display=False) as counter:
        Objective(model, config)(batch, step).loss(2 * count, 256).backward()
    assert counter.get_total_flops() == pytest.approx(step_flops(config, step=step), rel=0.02)
    assert run_flops(config, 6) == sum(step_flops(config, step=s) for s in range(6))
    paper = step_flops(config, "paper", step)
    assert 0.6 < paper / step_flops(config, step=step) < 4
    if case == "frozen":
        trained = step_flops(dataclasses.replace(config, objective="rtd"), "paper", step)
        assert 0.5 * trained < paper < 0.9 * trained


def test_rtd_masked_is_asked_at_the_chosen_positions_only():
    """Its loss is the mean cross-entropy there, and its fake rate and metrics are counted there."""
    objective, model = made("rtd-masked")
    batch = batch_of(*BATCH)
    out, read = spied(objective, batch)
    logits = model.discriminator(read["discriminator"], attention_mask=batch.attention_mask).logits
    replaced = (read["discriminator"] != batch.input_ids).float()
    expected = functional.binary_cross_entropy_with_logits(logits, replaced, reduction="none")
    term = out.losses["discriminator"]
    assert term.over == "chosen"
    assert term.total.item() == pytest.approx(expected.flatten()[batch.positions].sum().item(), abs=1e-5)
    weight = objective.config.discriminator_weight
    assert out.loss(4, 19).item() == pytest.approx(
        (out.losses["generator"].total / 4 + weight * term.total / 4).item()
    )
    found = evaluate(objective, [batch], objective.config, torch.device("cpu"), 0)
    assert found["heldout_fake_rate"] in (0.75, 1.0)  # of 4 positions, not of 19 tokens


def test_rtd_masked_logs_the_rate_that_its_loss_has(corpus, tmp_path):
    """Nearly every drawn token of a young generator is another than the original."""
    train(parse(words_of("rtd-masked", corpus, tmp_path)))
    entry = json.loads((tmp_path / "log.jsonl").read_text().split("\n")[0])
    assert entry["fake_rate"] > 0.8


def test_replace_mlm_reads_drawn_tokens_and_never_a_mask():
    """What stands at the chosen positions was drawn; the loss is transformers' for the originals there."""
    objective, model = made("replace-mlm")
    batch = batch_of(*BATCH)
    out, read = spied(objective, batch)
    assert torch.equal(read["encoder"], corrupt(batch.input_ids, batch.positions, out.sampled)[0])
    assert (read["generator"] == 103).sum() == 4
    assert not (read["encoder"] == 103).any()
    labels = torch.full((24,), -100)
    labels[batch.positions] = batch.input_ids.flatten()[batch.positions]
    given = {"attention_mask": batch.attention_mask, "labels": labels.view(2, 12)}
    assert out.losses["encoder"].total.item() / 4 == pytest.approx(
        model.encoder(read["encoder"], **given).loss.item(), abs=1e-5
    )
    assert "discriminator" not in model.parts


def test_all_tokens_mlm_predicts_every_token_with_a_probability_of_copying():
    """-ln(D · [the token seen is the original] + (1 - D) · softmax) over all tokens that are no padding."""
    objective, model = made("all-tokens-mlm")
    batch = batch_of(*BATCH)
    out, read = spied(objective, batch)
    seen = read["encoder"]
    hidden = model.encoder.electra(seen, attention_mask=batch.attention_mask).last_hidden_state
    logits = model.encoder(seen, attention_mask=batch.attention_mask).logits
    copy = model.units["encoder"](hidden).squeeze(-1).sigmoid()
    softmax = logits.softmax(-1).gather(-1, batch.input_ids.unsqueeze(-1)).squeeze(-1)
    expected = -torch.log(copy * (seen == batch.input_ids) + (1 - copy) * softmax)
    term = out.losses["all_tokens"]
    assert term.over == "tokens"
    assert term.total.item() == pytest.approx((expected * batch.attention_mask).sum().item(), abs=1e-4)
    assert out.losses["encoder"].weight == 0
    assert out.losses["encoder"].total.item() == pytest.approx(
        expected.flatten()[batch.positions].sum().item(), abs=1e-4
    )
    out.loss(4, 19).backward()
    assert model.units["encoder"].weight.grad.any()


def test_copying():
    """Sure to copy: free where it sees the original; ln 2 more for D = 1/2; never to copy: the softmax's."""
    nll = torch.tensor([3.0, 3.0, 3.0])
    same = torch.tensor([True, False, False])
    losses = copying_loss(nll, torch.tensor([50.0, 0.0, -50.0]), same)
    assert losses.tolist() == pytest.approx([0.0, 3 + np.log(2), 3.0], abs=1e-5)


def test_random_has_no_generator_and_draws_without_looking():
    """All ids alike but special ones; or as often as they stand in the corpus."""
    objective, model = made("random")
    assert list(model.parts) == ["discriminator"]
    assert model.shares[[0, 101, 102, 103]].tolist() == [0] * 4
    assert model.shares[[1, 200, 999]].tolist() == pytest.approx([1 / 996] * 3)
    batch = batch_of([500] * 20, list(range(1, 10_000, 2)), tokens=500)
    replaced = spied(objective, batch)[1]["discriminator"].flatten()[batch.positions]
    assert len(replaced.unique()) > 900
    config = dataclasses.replace(objective.config, replacements="unigrams")
    counts = np.zeros(1000, dtype=np.int64)
    counts[[200, 201, 103]] = 30, 10, 500
    start_from_counts(model, counts, config, new=False, given=())
    drawn = spied(Objective(model, config), batch)[1]["discriminator"].flatten()[batch.positions]
    assert set(drawn.tolist()) == {200, 201}
    assert (drawn == 200).float().mean().item() == pytest.approx(0.75, abs=0.03)


def test_two_stage(corpus, tmp_path, capsys):
    """The generator alone; then it stays as it is, and the discriminator starts from its weights."""
    words = words_of("two-stage", corpus, tmp_path)
    # Neither period ends with the first stage, which must write its line all the same.
    times = ["--log-every", "4", "--eval-every", "4"]
    train(parse([*words, *times, "--milestone-every", "1", "--switch", "0.5"]))
    said = capsys.readouterr().out
    assert "steps 0 to 3 train the generator\n" in said
    assert "steps 3 to 6 train the discriminator against the generator as it is then\n" in said
    at = {step: state(tmp_path, step)["model"] for step in range(1, 7)}

    def encoder(step: int, name: str) -> dict:
        start = f"{name}.electra."
        return {k.removeprefix(start): v for k, v in at[step].items() if k.startswith(start)}

    assert equal(encoder(1, "discriminator"), encoder(3, "discriminator"))
    assert not equal(encoder(2, "generator"), encoder(3, "generator"))
    assert equal(encoder(3, "generator"), encoder(6, "generator"))
    # The rate of a stage's first step is 0, so that after it the weights are those it began with.
    assert equal(encoder(4, "discriminator"), encoder(3, "generator"))
    assert not equal(encoder(6, "discriminator"), encoder(4, "discriminator"))
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().split("\n") if line]
    by_step = {entry["step"]: entry for entry in log}
    assert "discriminator_loss" not in by_step[3]  # a stage ends with a line, so that none mixes two
    assert {"discriminator_loss", "generator_loss", "fake_rate"} <= set(by_step[4])


def test_two_stage_needs_equal_sizes_and_nothing_shared(corpus, tmp_path):
    words = ["tiny", "--corpus", "c", "--out", "o", "--objective", "two-stage"]
    with pytest.raises(UserError, match="128 and 64 wide; give --generator-fraction 1"):
        parse([*words, "--sharing", "none", "--generator-fraction", "0.5"])
    with pytest.raises(UserError, match=r"leaves its generator as it is.*--sharing none or gdes"):
        parse([*words, "--sharing", "embeddings"])
    with pytest.raises(UserError, match="switch is a setting of objective two-stage, not of rtd"):
        parse(["tiny", "--corpus", "c", "--out", "o", "--switch", "0.3"])


def test_a_branch_goes_by_no_length(corpus, tmp_path):
    """A run that changes with its length cannot be cut short into another."""
    words = words_of("30 % to 15 %", corpus, tmp_path / "run")
    train(parse([*words, "--schedule", "wsd", "--milestone-every", "3"]))
    step = tmp_path / "run" / "checkpoints" / "step-3"
    with pytest.raises(UserError, match="final_mask_fraction, which goes by the length of the run"):
        parse(["tiny", "--corpus", str(corpus), "--out", "o", "--decay-from", str(step)])


def test_adversarial_is_a_policy_gradient_with_a_baseline():
    """The term is -(R - b) · ln p(drawn): R is the discriminator's loss there and gives it no gradient."""
    objective, model = made("adversarial")
    batch = batch_of(*BATCH)
    out, read = spied(objective, batch)
    logits = model.generator(read["generator"], attention_mask=batch.attention_mask).logits
    hidden = model.generator.electra(read["generator"], attention_mask=batch.attention_mask).last_hidden_state
    log_p = logits.log_softmax(-1).flatten(0, 1)[batch.positions].gather(1, out.sampled.unsqueeze(1))
    reward = functional.binary_cross_entropy_with_logits(out.logits, out.replaced.float(), reduction="none")
    reward = reward.flatten()[batch.positions]
    unit = model.units["generator"](hidden.flatten(0, 1)[batch.positions]).squeeze(1)
    baseline = -functional.logsigmoid(unit)
    expected = -((reward - baseline).detach() * log_p.squeeze(1)).sum()
    assert out.losses["policy"].total.item() == pytest.approx(expected.item(), abs=1e-4)

    def reached(loss: torch.Tensor) -> set[str]:
        model.zero_grad(set_to_none=True)
        loss.backward(retain_graph=True)
        return {n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}

    policy = reached(out.losses["policy"].total)
    assert "generator.generator_predictions.dense.weight" in policy
    assert not any("discriminator_predictions" in name or "units" in name for name in policy)
    assert reached(out.losses["baseline"].total) == {"units.generator.weight", "units.generator.bias"}
    assert out.losses["generator"].weight == 0  # likelihood is logged, it does not train
    assert not out.losses["generator"].total.requires_grad


def test_adversarial_generator_learns_what_fools(monkeypatch):
    """A discriminator that believes id 500 alone: after 40 updates it is drawn most of the time."""
    size = dataclasses.replace(SMALL, layers=1)
    objective, model = made("adversarial", size)

    def believing(name, input_ids, batch):
        fooled = torch.where(input_ids == 500, -3.0, 3.0)
        return torch.where(input_ids == batch.input_ids, -3.0, fooled).requires_grad_()

    monkeypatch.setattr(model, "detect", believing)
    batch = batch_of([64] * 8, list(range(1, 512, 2)), tokens=64)
    model.generator.generator_lm_head.bias.data[500] = 3.0  # found within a few draws
    optimizer = Adam(parameter_groups(model.named_parameters(), 0.0), lr=3e-3)
    shares = []
    for _ in range(40):
        out = objective(batch)
        shares.append((out.sampled == 500).float().mean().item())
        out.loss(len(batch.positions), batch.tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert shares[0] < 0.1
    assert shares[-1] > 0.5


def test_frozen_generator(corpus, whole, tmp_path):
    """It is the folder's to the bit, its output bias too; there must be one, and it is not exported again."""
    words = words_of("frozen", corpus, tmp_path / "run", whole)
    assert parse(words).config.initial_unigrams
    train(parse(words))
    given = ElectraForMaskedLM.from_pretrained(whole / "generator").state_dict()
    ours = state(tmp_path / "run", 6)["model"]
    assert all(torch.equal(ours[f"generator.{name}"], value) for name, value in given.items())
    assert not (tmp_path / "run" / "generator").exists()
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().split("\n") if line]
    weight = parse(words).config.discriminator_weight
    assert log[-1]["loss"] == pytest.approx(weight * log[-1]["discriminator_loss"])
    with pytest.raises(UserError, match="needs a trained generator; give --continue-from generator=MODEL"):
        parse([word for word in words if "continue-from" not in word])


def test_frozen_draws_at_the_temperature_of_the_step(monkeypatch):
    """From 3 to 1 in a straight line; without dropout, while the discriminator has it."""
    objective, model = made("frozen", sharing="none", temperature=3.0, final_temperature=1.0, steps=10)
    model.train()
    seen = []
    plain = model.fill_in

    def spy(name, input_ids, batch, temperature):
        seen.append((temperature, model.generator.training, torch.is_grad_enabled()))
        return plain(name, input_ids, batch, temperature)

    monkeypatch.setattr(model, "fill_in", spy)
    for step in (0, 5, 10):
        objective(batch_of(*BATCH), step).loss(4, 19).backward()
    assert seen == [(3.0, False, False), (2.0, False, False), (1.0, False, False)]
    assert model.generator.training
    assert all(p.grad is None for p in model.generator.parameters())
    assert all(p.grad is not None for p in model.discriminator.parameters())


def test_temperature_of_draws():
    """Probabilities .64 .32 .04 at temperature 2 are as 8 to √32 to 2; the loss is that of temperature 1."""
    torch.manual_seed(0)
    bias = torch.tensor([0.64, 0.32, 0.04]).log()
    zeros = torch.zeros(100_000, 2)
    nll, drawn, _ = vocabulary_loss(zeros, torch.zeros(3, 2), bias, torch.zeros(100_000).long(), 2.0)
    roots = np.array([8, 32**0.5, 2])
    assert (torch.bincount(drawn) / 100_000).tolist() == pytest.approx(list(roots / roots.sum()), abs=0.01)
    assert nll[0].item() == pytest.approx(-np.log(0.64))


def test_sharing_all():
    """One encoder, two heads; after loading and moving too; unequal sizes are refused."""
    _, model = made("rtd", EQUAL, sharing="all")
    model.to(torch.device("cpu")).double().float()
    model.load_state_dict(model.state_dict())
    model.tie()
    ours, theirs = (dict(network.electra.named_parameters()) for network in model.networks())
    assert all(ours[name].data_ptr() == theirs[name].data_ptr() for name in ours)
    assert model.generator.generator_lm_head.weight.data_ptr() == word_table(model.discriminator).data_ptr()
    heads = sum(p.numel() for n, p in model.named_parameters() if ".electra." not in n)
    assert sum(p.numel() for p in model.parameters()) == model.generator.electra.num_parameters() + heads
    with pytest.raises(UserError, match=r"sharing all needs networks of one size.*32 and 16 wide"):
        made("rtd", SMALL, sharing="all")
    assert made("mlm", SMALL, sharing="all")  # one network has nothing to share


def test_sharing_all_exports_one_encoder(tmp_path, monkeypatch):
    config = dataclasses.replace(
        PRESETS["tiny"], shape=dataclasses.replace(SIZES["tiny"], generator_fraction=1.0), sharing="all"
    )
    monkeypatch.setitem(PRESETS, "tiny", config)
    export_random("tiny", tmp_path)
    both = [AutoModel.from_pretrained(tmp_path / name) for name in ("discriminator", "generator")]
    assert equal(*(dict(encoder.state_dict()) for encoder in both))


def test_sharing_gdes():
    """The discriminator's table is the generator's plus a residual; its loss moves the residual alone."""
    objective, model = made("rtd", sharing="gdes")
    ours = model.discriminator.get_input_embeddings()
    theirs = model.generator.get_input_embeddings()
    assert torch.equal(word_table(model.discriminator), theirs.weight)
    assert ours.weight.data_ptr() != theirs.weight.data_ptr()
    assert model.discriminator.electra.embeddings is not model.generator.electra.embeddings
    out = objective(batch_of(*BATCH))
    out.losses["discriminator"].total.backward()
    assert theirs.weight.grad is None
    assert ours.weight.grad.any()
    model.zero_grad(set_to_none=True)
    objective(batch_of(*BATCH)).losses["generator"].total.backward()
    assert theirs.weight.grad.any()
    assert ours.weight.grad is None
    with torch.no_grad():
        theirs.weight += 1
        ours.weight += 0.5
    model.load_state_dict(model.state_dict())
    model.tie()
    ids = torch.tensor([[300, 301]])
    assert torch.equal(ours(ids)[0], theirs.weight[300:302] + ours.weight[300:302])
    alone = model.standalone("discriminator").get_input_embeddings()
    assert type(alone) is torch.nn.Embedding
    assert torch.equal(alone.weight, theirs.weight + ours.weight)
    assert len({id(p) for p in model.parameters()}) == len(list(model.parameters()))


def test_gdes_predicts_with_the_sum():
    """An encoder's output over the vocabulary is the table it reads with, as in what is exported."""
    objective, model = made("replace-mlm", sharing="gdes")
    torch.nn.init.normal_(model.encoder.get_input_embeddings().weight)
    batch = batch_of(*BATCH)
    out, read = spied(objective, batch)
    logits = model.standalone("encoder").eval()(read["encoder"], attention_mask=batch.attention_mask).logits
    labels = batch.input_ids.flatten()[batch.positions]
    expected = functional.cross_entropy(logits.flatten(0, 1)[batch.positions], labels, reduction="sum")
    assert out.losses["encoder"].total.item() == pytest.approx(expected.item(), rel=1e-4)


def test_gdes_goes_on_from_a_pair(whole, corpus):
    """Two tables that differ become one and a residual: what each network computes is what it did."""
    config = dataclasses.replace(parse(words_of("gdes", corpus, whole)).config, dtype="fp32")
    model = build_model(config).eval()
    sources = {name: str(whole / name) for name in ("discriminator", "generator")}
    start_from(model, sources, corpus / "vocab.txt")
    batch = batch_of(*BATCH)
    for name in sources:
        theirs = AutoModel.from_pretrained(whole / name).eval()
        there = theirs(batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        here = model.hidden_states(name, batch.input_ids, batch)
        assert torch.allclose(here[0], there[0], atol=1e-5)


def test_mask_fraction_falls_over_the_run(corpus):
    """30 % of full rows at the first step, 15 % at the end; held-out rows always have the last share."""
    rows, heldout, _ = open_corpus(corpus, 128)
    config = dataclasses.replace(PRESETS["tiny"], mask_fraction=0.3, final_mask_fraction=0.15, steps=100)
    for step, share in ((0, 0.3), (50, 0.225), (99, 0.1515)):
        (batch,) = train_batches(rows, config, step, rank=0, processes=1, micro=config.batch_size)
        assert len(batch.positions) / batch.tokens == pytest.approx(share, abs=0.008)
    held = heldout_batches(heldout, config, 20, 20)[0]
    always = dataclasses.replace(PRESETS["tiny"], mask_fraction=0.15)
    plain = heldout_batches(heldout, always, 20, 20)[0]
    assert torch.equal(held.positions, plain.positions)


def test_bad_settings():
    for wrong in ({"final_mask_fraction": 0.0}, {"switch": 1.0}, {"temperature": 0.0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            dataclasses.replace(PRESETS["tiny"], **wrong)
    with pytest.raises(UserError, match="temperature is a setting of objective frozen, not of mlm"):
        build_model(dataclasses.replace(PRESETS["tiny"], objective="mlm", temperature=2.0))


def test_everything_is_tried():
    """A new objective, sharing or masking needs a line in CASES."""
    configs = [
        parse(["tiny", "--corpus", "c", "--out", "o", "--continue-from=generator=g", *words.split()]).config
        if "frozen" in words
        else parse(["tiny", "--corpus", "c", "--out", "o", *words.split()]).config
        for words in CASES.values()
    ]
    assert {config.objective for config in configs} == set(OBJECTIVES)
    assert {config.sharing for config in configs} == set(SHARINGS)
    assert {config.masking for config in configs} == set(MASKINGS)


def test_two_stage_on_two_processes(corpus, tmp_path):
    """In a stage only some networks have gradients, and the processes still agree."""
    words = words_of("two-stage", corpus, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pretrain.launch", "2", *words],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / "discriminator" / "model.safetensors").exists()
