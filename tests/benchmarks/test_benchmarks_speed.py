"""The speed benchmark compares equal work, in turns."""

import torch

from benchmarks.speed import our_step, random_batch, take_turns, transformers_step

CPU = torch.device("cpu")


def test_contestants_do_the_same_work():
    """Untrained, the loss is ln 21128 + 50 ln 2 = 44.62 for each, and updates lower it."""
    batch = random_batch(4, 64)
    for make in (our_step, transformers_step):
        step = make("tiny", batch, CPU, "fp32")
        losses = [step() for _ in range(6)]
        assert abs(losses[0] - 44.62) < 0.3
        assert losses[-1] < losses[0]


def test_contestants_take_turns_and_the_first_round_does_not_count():
    order: list[str] = []
    steps = {name: lambda name=name: order.append(name) or 0.0 for name in ("a", "b")}
    seconds = take_turns(steps, 3, CPU, lambda: None)
    assert order == ["a", "b"] * 4
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}
