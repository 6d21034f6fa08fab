"""The loss over the vocabulary and draws from it: cases 42, 49."""

import pytest
import torch
from torch.nn import functional

from pretrain.projection import draw, vocabulary_loss


def test_draws_follow_the_probabilities():
    """Case 42: logits ln(.7 .2 .1), 100,000 draws; an entry of probability 0 never comes."""
    torch.manual_seed(0)
    logits = torch.tensor([0.7, 0.2, 0.1, 0.0]).log()
    drawn = draw(logits.softmax(-1).expand(100_000, 4).contiguous(), torch.rand(100_000))
    share = torch.bincount(drawn, minlength=4) / 100_000
    assert share.tolist() == pytest.approx([0.7, 0.2, 0.1, 0.0], abs=0.01)
    assert share[3] == 0


def test_draw_at_the_edges():
    """Case 42: uniform numbers of 0 and just under 1 fall on possible entries only."""
    probabilities = torch.tensor([[0.0, 0.5, 0.5, 0.0, 0.0, 0.0]]).repeat(2, 1)
    assert draw(probabilities, torch.tensor([0.0, 1 - 2**-24])).tolist() == [1, 2]


def test_draw_over_blocks_is_the_plain_inverse():
    """Case 42: the two-step sum draws what one cumulative sum in double precision does."""
    torch.manual_seed(0)
    probabilities, uniform = torch.randn(500, 21128).mul(3).softmax(-1), torch.rand(500)
    plain = torch.searchsorted(probabilities.double().cumsum(-1), uniform.double()[:, None], right=True)
    assert (draw(probabilities, uniform) == plain.squeeze(1)).float().mean() > 0.99


def test_vocabulary_loss_is_cross_entropy():
    """Case 49: only chosen rows are projected; loss and gradients equal torch's cross entropy."""
    torch.manual_seed(0)
    tensors = [torch.randn(70, 16), torch.randn(1000, 16), torch.randn(1000)]
    ours, theirs = ([t.clone().requires_grad_() for t in tensors] for _ in range(2))
    labels = torch.randint(0, 1000, (70,))
    loss, drawn, _ = vocabulary_loss(*ours, labels)
    expected = functional.cross_entropy(theirs[0] @ theirs[1].T + theirs[2], labels, reduction="none")
    assert drawn.shape == (70,)
    assert torch.allclose(loss, expected, rtol=1e-5)
    scale = torch.rand(70)  # each row may weigh differently
    (loss * scale).sum().backward()
    (expected * scale).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a.grad, b.grad, atol=1e-5)
