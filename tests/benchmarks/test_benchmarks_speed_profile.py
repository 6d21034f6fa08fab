"""Where the time of a pretraining step goes."""

import json
import time

import pytest
import torch

from benchmarks.speed import profile
from benchmarks.speed.profile import Clock, follow, run, shares
from provenance import UserError

PARTS = {
    "rows and masks",
    *("generator, forward", "output layer: loss and draws", "discriminator, forward", "losses"),
    *("discriminator, backward", "output layer, backward", "generator, backward"),
    "clipping and optimiser",
}


def spin(seconds: float) -> None:
    """Use so much of this thread's processor time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Slow(torch.autograd.Function):
    """Its backward pass takes as long as it is told."""

    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        spin(ctx.seconds)
        return gradient, None


def test_parts_get_their_own_time():
    """Networks of known cost: each part is charged what it took, backward too."""

    class Networks(torch.nn.Module):
        weight = torch.ones(2, requires_grad=True)

        def hidden_states(self, name, *_):
            spin(0.01 if name == "generator" else 0.02)
            return Slow.apply(self.weight * 2, 0.03 if name == "generator" else 0.04)

        def fill_in(self, name, *_):
            hidden = self.hidden_states(name)
            spin(0.05)
            return Slow.apply(hidden, 0.06).sum(), None, None

        def detect(self, name, *_):
            return self.hidden_states(name)

    networks, clock = Networks(), Clock()
    follow(networks, clock)
    filling, *_ = networks.fill_in("generator")
    loss = filling + networks.detect("discriminator").sum()
    clock.mark("losses")
    loss.backward()
    clock.mark("generator, backward")
    assert dict(clock.spent) == pytest.approx(
        {
            "generator, forward": 0.01,
            "output layer: loss and draws": 0.05,
            "discriminator, forward": 0.02,
            "losses": 0.0,
            "discriminator, backward": 0.04,
            "output layer, backward": 0.06,
            "generator, backward": 0.03,
        },
        abs=0.008,
    )


def test_shares_add_up():
    assert shares({"a": 1.0, "b": 3.0}) == {"b": 0.75, "a": 0.25}
    assert list(shares({"a": 1.0, "b": 3.0})) == ["b", "a"]


def test_the_program(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run(size="tiny", rows=4, length=32, steps=1, out=tmp_path / "out")
    record = json.loads((tmp_path / "out" / "pretrain-profile-cpu.json").read_text(encoding="utf-8"))
    assert set(record["parts"]) == PARTS
    assert sum(record["parts"].values()) == pytest.approx(1, abs=0.002)
    assert sum(record["operations"].values()) == pytest.approx(1, abs=0.002)
    assert {"matrix products", "GELU", "LayerNorm", "optimiser and clipping"} <= set(record["operations"])
    page = (tmp_path / "out" / "pretrain-profile-cpu.md").read_text(encoding="utf-8")
    assert "| discriminator, backward |" in page
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "USDT" not in capfd.readouterr().err
    with pytest.raises(UserError, match="at least 1"):
        run(steps=0)
    assert profile.REST in record["operations"]
