"""Networks and the objective: cases 39 to 42, 45, 49, 50, 54."""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from pretrain.config import PRESETS, SIZES, Size
from pretrain.data import Batch
from pretrain.losses import corrupt
from pretrain.model import Electra
from pretrain.objectives import OBJECTIVES, Objective, build_model
from pretrain.optim import Adam, parameter_groups
from pretrain.system import Outputs

SMALL = Size(layers=2, hidden=32, heads=2, embedding=24, generator_fraction=0.5, vocab_size=1000, dropout=0.0)


def batch_of(
    rows: int, tokens: int, vocab: int, chosen: list[int], lengths: list[int] | None = None
) -> Batch:
    ids = torch.randint(200, vocab, (rows, tokens))
    mask = None
    if lengths is not None:
        mask = (torch.arange(tokens)[None] < torch.tensor(lengths)[:, None]).float()
        ids = (ids * mask).long()
    positions = torch.tensor(chosen, dtype=torch.long)
    masked = ids.flatten().index_fill(0, positions, 103).view_as(ids)
    count = rows * tokens if lengths is None else sum(lengths)
    return Batch(ids, masked, torch.zeros_like(ids), positions, mask, count)


def forward(model: Electra, batch: Batch, **settings) -> Outputs:
    """One forward pass under the settings of tiny, changed as given."""
    return Objective(model, dataclasses.replace(PRESETS["tiny"], **settings))(batch)


def assert_tied(model: Electra) -> None:
    table = model.discriminator.electra.embeddings.word_embeddings.weight
    assert model.generator.electra.embeddings.word_embeddings.weight.data_ptr() == table.data_ptr()
    assert model.generator.generator_lm_head.weight.data_ptr() == table.data_ptr()
    assert model.generator.electra.embeddings is model.discriminator.electra.embeddings
    assert model.generator.electra.embeddings_project is not model.discriminator.electra.embeddings_project


def test_tying_survives():
    """Case 45: after building, moving, loading and an optimiser step; each tied parameter once."""
    model = Electra(SMALL, cheap_dropout=True)
    assert_tied(model)
    model.to(torch.device("cpu")).double().float()
    model.load_state_dict(model.state_dict())
    groups = parameter_groups(model.named_parameters(), 0.01)
    every = [p for group in groups for p in group["params"]]
    assert len({id(p) for p in every}) == len(every) == len(list(model.parameters()))
    out = forward(model, batch_of(2, 8, 1000, [1, 9]))
    (out.losses["generator"].total + out.losses["discriminator"].total).backward()
    Adam(groups, lr=0.1).step()
    assert_tied(model)


def test_sharing_nothing():
    """Two tables, each tied to nothing but, in the generator, the output over the vocabulary."""
    model = Electra(SMALL, sharing="none")
    model.load_state_dict(model.state_dict())
    model.tie()
    ours, theirs = (
        network.electra.embeddings.word_embeddings.weight
        for network in (model.discriminator, model.generator)
    )
    assert ours.data_ptr() != theirs.data_ptr() == model.generator.generator_lm_head.weight.data_ptr()
    out = forward(model, batch_of(2, 8, 1000, [1, 9]))
    out.losses["discriminator"].total.backward()
    assert ours.grad.any()
    assert all(p.grad is None for p in model.generator.parameters())


def test_masked_language_model():
    """One network as large as the discriminator; its loss is transformers' own over the chosen positions."""
    torch.manual_seed(0)
    config = dataclasses.replace(PRESETS["tiny"], shape=SMALL, objective="mlm")
    model = build_model(config).eval()
    assert list(model.parts) == ["encoder"]
    assert model.encoder.config.hidden_size == SMALL.hidden
    batch = batch_of(2, 12, 1000, [1, 2, 14], lengths=[12, 7])
    out = Objective(model, config)(batch)
    labels = torch.full((24,), -100).index_copy(
        0, batch.positions, batch.input_ids.flatten()[batch.positions]
    )
    theirs = model.encoder(
        batch.masked_ids, attention_mask=batch.attention_mask, labels=labels.view(2, 12)
    ).loss
    assert out.loss(3, 19).item() == pytest.approx(theirs.item(), abs=1e-5)
    assert list(out.losses) == ["encoder"]


def test_mlm_starts_at_the_logarithm_of_the_vocabulary():
    """ln 21128 = 9.958 with random weights."""
    torch.manual_seed(0)
    model = build_model(dataclasses.replace(PRESETS["tiny"], objective="mlm"))
    batch = batch_of(8, 128, 21128, [r * 128 + c for r in range(8) for c in range(1, 115, 6)])
    out = forward(model, batch, objective="mlm")
    assert out.loss(len(batch.positions), batch.tokens).item() == pytest.approx(9.958, abs=0.1)


def test_the_last_bias_starts_at_the_expected_fake_rate():
    """A discriminator that says 0.13 of every token pays the entropy of that rate, not ln 2."""
    torch.manual_seed(0)
    model = Electra(SIZES["tiny"], fake_rate=0.13).eval()
    bias = model.discriminator.discriminator_predictions.dense_prediction.bias
    assert bias.sigmoid().item() == pytest.approx(0.13)
    assert Electra(SMALL).discriminator.discriminator_predictions.dense_prediction.bias.item() == 0


def test_outputs_start_at_the_frequencies_of_tokens():
    """Three of four tokens are 200, one is 202; a thousandth goes to all 1,000 ids; [MASK] does not count."""
    torch.manual_seed(0)
    counts = np.zeros(1000, dtype=np.int64)
    counts[[200, 201, 202, 103]] = 6, 0, 2, 500
    model = Electra(SMALL).eval()
    model.start_at_frequencies(counts)
    shares = model.generator.generator_lm_head.bias.softmax(-1)
    assert shares[[200, 201, 202, 103]].tolist() == pytest.approx([0.749251, 1e-6, 0.249751, 1e-6])
    batch = dataclasses.replace(batch_of(1, 8, 1000, [3]), input_ids=torch.full((1, 8), 202))
    loss = forward(model, batch).losses["generator"].total.item()
    assert loss == pytest.approx(-math.log(0.249751), abs=0.3)


def test_no_other_code_names_an_objective():
    """A new objective is one function and one entry: its name stands in objectives.py alone."""
    folder = Path(__file__).parents[2] / "pretrain"
    for path in folder.glob("*.py"):
        code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in OBJECTIVES:
            if path.name not in ("objectives.py", "config.py"):
                assert not re.search(rf"[\"']{name}[\"']", code), (path.name, name)


def test_initial_loss(vocab_path):
    """Case 41: ln 21128 + 50 · ln 2 = 44.62 with random weights and the whole vocabulary."""
    torch.manual_seed(0)
    model = Electra(SIZES["tiny"], cheap_dropout=True).train()
    batch = batch_of(8, 128, 21128, [r * 128 + c for r in range(8) for c in range(1, 115, 6)])
    out = forward(model, batch)
    total = (
        out.losses["generator"].total / len(batch.positions)
        + 50 * out.losses["discriminator"].total / batch.tokens
    )
    assert math.log(21128) + 50 * math.log(2) == pytest.approx(44.62, abs=0.01)
    assert total.item() == pytest.approx(44.62, abs=0.3)


def test_labels():
    """Case 40: original 5 6 7, chosen 1 and 2, drawn 6 and 9 -> 5 6 9, labels 0 0 1."""
    corrupted, replaced = corrupt(torch.tensor([[5, 6, 7]]), torch.tensor([1, 2]), torch.tensor([6, 9]))
    assert corrupted.tolist() == [[5, 6, 9]]
    assert replaced.tolist() == [[False, False, True]]


def test_replaced_tokens_are_the_drawn_ones():
    """Case 39: every replaced id is the one drawn for its own position."""
    torch.manual_seed(0)
    batch = batch_of(4, 16, 1000, list(range(1, 60, 5)))
    out = forward(Electra(SMALL), batch)
    corrupted, replaced = corrupt(batch.input_ids, batch.positions, out.sampled)
    assert torch.equal(corrupted.flatten()[batch.positions], out.sampled)
    assert torch.equal(replaced, out.replaced)
    untouched = torch.ones(64, dtype=torch.bool).index_fill(0, batch.positions, False)
    assert torch.equal(corrupted.flatten()[untouched], batch.input_ids.flatten()[untouched])


def test_discriminator_loss_is_transformers_own():
    """Case 41: mean over every token that is no padding, [CLS] and [SEP] among them."""
    torch.manual_seed(0)
    model = Electra(SMALL).eval()
    batch = batch_of(2, 12, 1000, [1, 2, 14], lengths=[12, 7])
    out = forward(model, batch)
    corrupted, replaced = corrupt(batch.input_ids, batch.positions, out.sampled)
    theirs = model.discriminator(corrupted, attention_mask=batch.attention_mask, labels=replaced.long()).loss
    assert out.losses["discriminator"].total.item() / 19 == pytest.approx(theirs.item(), abs=1e-6)


def test_no_gradient_from_discriminator_to_generator():
    """Case 42: the discriminator's loss leaves weights that only the generator has without gradient."""
    model = Electra(SMALL)
    forward(model, batch_of(2, 8, 1000, [1, 9])).losses["discriminator"].total.backward()
    embeddings = {id(p) for p in model.discriminator.electra.embeddings.parameters()}
    for parameter in model.generator.parameters():
        if id(parameter) not in embeddings:
            assert parameter.grad is None or not parameter.grad.any()
    assert model.discriminator.electra.embeddings.word_embeddings.weight.grad.any()


def test_never_a_full_table_of_logits(monkeypatch):
    """Case 49: the projection sees the 12 chosen positions, filled up to 32, and not all 64 tokens."""
    seen = []
    linear = functional.linear

    def counting(x, weight, bias=None):
        if len(weight) == 1000:
            seen.append(len(x))
        return linear(x, weight, bias)

    monkeypatch.setattr(functional, "linear", counting)
    forward(Electra(SMALL), batch_of(4, 16, 1000, list(range(1, 60, 5))))
    assert sum(seen) == 32


def test_nothing_chosen_is_no_nan():
    """Case 54: a forced batch without candidates has loss 0 for the generator and finite gradients."""
    model = Electra(SMALL)
    out = forward(model, batch_of(1, 2, 1000, []))
    (out.losses["generator"].total + out.losses["discriminator"].total).backward()
    assert out.losses["generator"].total.item() == 0
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_two_processes_with_3_and_17_masked_tokens(monkeypatch):
    """Case 50: sums over counts of all, added over two processes, are one process's gradients."""
    torch.manual_seed(0)
    model = Electra(SMALL)
    a, b = (batch_of(2, 16, 1000, chosen) for chosen in ([1, 5, 20], [*range(1, 15), 18, 20, 25]))
    whole = Batch(
        *(torch.cat([getattr(a, n), getattr(b, n)]) for n in ("input_ids", "masked_ids", "token_type_ids")),
        torch.cat([a.positions, b.positions + 32]),
        None,
        64,
    )
    assert (len(a.positions), len(b.positions)) == (3, 17)
    # Draw the most likely id, so that both ways see the same replacements.
    monkeypatch.setattr("pretrain.projection.draw", lambda probabilities, _: probabilities.argmax(-1))

    def gradients(*batches: Batch) -> list[torch.Tensor]:
        model.zero_grad()
        for batch in batches:
            out = forward(model, batch)
            (out.losses["generator"].total / 20 + 50 * out.losses["discriminator"].total / 64).backward()
        return [p.grad.clone() for p in model.parameters()]

    for one, two in zip(gradients(whole), gradients(a, b), strict=True):
        assert torch.allclose(one, two, atol=1e-6)
