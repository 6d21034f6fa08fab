"""Adam, schedule, device, dropout: cases 45 to 47."""

import pytest
import torch
from transformers import BertConfig, BertModel, ElectraConfig, ElectraForPreTraining

from pretrain.device import autocast, default_dtype
from pretrain.dropout import ByteDropout, byte_dropout, keep_mask, use_cheap_dropout
from pretrain.optim import (
    Adam,
    LossScale,
    branch_steps,
    clipping,
    learning_rate,
    parameter_groups,
    stable_steps,
)
from provenance import UserError


def one_weight(**options) -> tuple[torch.nn.Parameter, Adam]:
    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    return weight, Adam([weight], lr=0.1, **options)


def test_first_step_without_bias_correction():
    """Case 46: 1 - 0.1 · (0.1 / (√0.001 + 1e-6)) = 0.68378."""
    weight, optimizer = one_weight(weight_decay=0.0)
    optimizer.step()
    assert weight.item() == pytest.approx(0.68378, abs=1e-5)


def test_decay_is_decoupled_and_times_the_rate():
    """Case 46: decay 0.01 takes a further 0.1 · 0.01 · 1."""
    weight, optimizer = one_weight()
    optimizer.step()
    assert weight.item() == pytest.approx(0.68378 - 0.001, abs=1e-5)


def test_many_steps_follow_the_formula():
    """Case 46: twenty steps against the formula in double precision."""
    weight, optimizer = one_weight()
    p, m, v = 1.0, 0.0, 0.0
    for step in range(20):
        g = 0.3 + 0.1 * step
        weight.grad.fill_(g)
        optimizer.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p -= 0.1 * (m / (v**0.5 + 1e-6) + 0.01 * p)
    assert weight.item() == pytest.approx(p, rel=1e-5)


def test_bias_correction_by_choice():
    """With correction the first step is AdamW's: 1 - lr."""
    weight, optimizer = one_weight(weight_decay=0.0, bias_correction=True)
    optimizer.step()
    assert weight.item() == pytest.approx(0.9, abs=1e-5)


def test_clipping_and_skipping():
    """Case 46 and 54: gradients are scaled to norm 1; a non-finite norm leaves weights and moments alone."""
    weight, optimizer = one_weight(weight_decay=0.0)
    weight.grad.fill_(4.0)
    divide_by, skip = clipping([weight], 1.0)
    assert (divide_by.item(), skip.item()) == (4.0, 0.0)
    optimizer.step(divide_by=divide_by, skip=skip)
    assert weight.item() == pytest.approx(0.68378, abs=1e-5)
    before, moment = weight.item(), optimizer.state[weight]["exp_avg"].item()
    for bad in (float("nan"), float("inf")):
        weight.grad = torch.full((1,), bad)
        divide_by, skip = clipping([weight], 1.0)
        assert skip.item() == 1.0
        optimizer.step(divide_by=divide_by, skip=skip)
        assert weight.item() == before
        assert optimizer.state[weight]["exp_avg"].item() == moment


def test_loss_scale():
    """fp16: a scaled loss steps as a plain one; an overflow halves it, 2,000 good steps double it."""
    weight, optimizer = one_weight(weight_decay=0.0)
    scale = LossScale(True, torch.device("cpu"))
    weight.grad.fill_(0.5 * 65536)
    divide_by, skip = clipping([weight], 1.0, scale.factor)
    assert (divide_by.item(), skip.item()) == (65536.0, 0.0)  # a norm of 0.5 is not clipped
    weight.grad.fill_(4 * 65536)
    divide_by, skip = clipping([weight], 1.0, scale.factor)
    optimizer.step(divide_by=divide_by, skip=skip)
    assert weight.item() == pytest.approx(0.68378, abs=1e-5)
    scale.update(torch.ones(()))
    assert scale.factor.item() == 32768
    for _ in range(2000):
        scale.update(torch.zeros(()))
    assert scale.factor.item() == 65536
    fixed = LossScale(False, torch.device("cpu"))
    fixed.update(torch.ones(()))
    assert fixed.factor.item() == 1


def test_groups():
    """Case 46: LayerNorm and biases are not decayed, embeddings are; case 45: a tied weight enters once."""
    model = ElectraForPreTraining(ElectraConfig(num_hidden_layers=1, vocab_size=100))
    named = [*model.named_parameters(), ("again", model.electra.embeddings.word_embeddings.weight)]
    decayed, others = parameter_groups(named, 0.01)
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.01, 0.0)
    assert len(decayed["params"]) + len(others["params"]) == len(named) - 1
    assert any(p is model.electra.embeddings.word_embeddings.weight for p in decayed["params"])
    assert all(p.dim() == 1 for p in others["params"])


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (5000, 2.4875e-4), (10_000, 4.95e-4), (500_000, 2.5e-4), (1_000_000, 0)]
)
def test_schedule(step, expected):
    """Case 47: the warm-up multiplies the decay from step 0 on."""
    assert learning_rate(step, peak=5e-4, total=1_000_000, warmup=10_000) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, 0.0), (50, 0.5), (100, 1.0), (899, 1.0), (900, 1.0), (925, 0.5), (964, 0.2), (1000, 0.0)],
)
def test_stable_then_decay(step, expected):
    """Peak 1, 1,000 steps, warm-up 100, a tenth of decay: 1 - √(k/100) after k steps of it."""
    rate = learning_rate(step, peak=1.0, total=1000, warmup=100, schedule="wsd", decay=0.1)
    assert rate == pytest.approx(expected)


def test_a_branch_is_the_shortest_run_with_that_beginning():
    """900 stable steps of a tenth's decay make 1,000; up to there the rate of no length differs."""
    assert branch_steps(900, 0.1) == 1000
    for stable, decay in ((1, 0.1), (7, 0.3), (1234, 0.2)):
        total = branch_steps(stable, decay)
        assert stable_steps(total, decay) >= stable > stable_steps(total - 1, decay)
        rates = [
            [
                learning_rate(s, peak=1.0, total=t, warmup=3, schedule="wsd", decay=decay)
                for s in range(stable)
            ]
            for t in (total, 10 * total)
        ]
        assert rates[0] == rates[1]


def test_no_warmup():
    assert learning_rate(0, peak=1.0, total=10, warmup=0) == 1.0


def test_mask_bytes_are_all_alike():
    """Each of a draw's eight bytes keeps 230/256; torch's plain random_() would bias the eighth."""
    torch.manual_seed(0)
    kept = keep_mask(torch.Size([80_000 * 8]), 26, torch.float32).view(-1, 8).mean(dim=0)
    assert kept.tolist() == pytest.approx([230 / 256] * 8, abs=0.004)


def test_dropout_scale_gradient_and_odd_sizes():
    """Kept elements are multiplied by 256/230, in the gradient too; the mean stays."""
    torch.manual_seed(0)
    x = torch.ones(10_007, requires_grad=True)
    y = byte_dropout(x, 0.1, training=True)
    assert sorted(set(y.tolist())) == pytest.approx([0.0, 256 / 230])
    assert y.mean().item() == pytest.approx(1.0, abs=0.02)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize(
    ("config", "kind"), [(ElectraConfig, ElectraForPreTraining), (BertConfig, BertModel)]
)
def test_cheap_dropout_changes_training_only(config, kind):
    """In evaluation the model computes what it did; in training masks follow the seed."""
    torch.manual_seed(0)
    small = config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100
    )
    model = kind(small).eval()
    ids, mask = torch.randint(1, 100, (3, 10)), torch.ones(3, 10)
    mask[1, 5:] = 0
    before = model(ids, attention_mask=mask)[0]
    assert use_cheap_dropout(model) is model
    after = model(ids, attention_mask=mask)[0]
    assert torch.allclose(before[mask.bool()], after[mask.bool()], atol=1e-5)
    assert not any(type(module) is torch.nn.Dropout for module in model.modules())
    assert any(isinstance(module, ByteDropout) for module in model.modules())
    model.train()
    torch.manual_seed(1)
    first = model(ids, attention_mask=mask)[0]
    second = model(ids, attention_mask=mask)[0]
    torch.manual_seed(1)
    assert torch.equal(first, model(ids, attention_mask=mask)[0])
    assert not torch.equal(first, second)


def test_dtype():
    cpu = torch.device("cpu")
    assert default_dtype(cpu) in ("fp32", "bf16")
    with autocast(cpu, "bf16"):
        assert torch.ones(2, 2).mm(torch.ones(2, 2)).dtype == torch.bfloat16
    with autocast(cpu, "fp32"):
        assert torch.ones(2, 2).mm(torch.ones(2, 2)).dtype == torch.float32
    with pytest.raises(UserError, match="fp8"):
        autocast(cpu, "fp8")
