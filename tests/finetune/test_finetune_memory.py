"""Memory of a run, known before it starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from finetune.batches import PASS_COST, PassCost
from finetune.config import FinetuneConfig
from finetune.memory import TEXTS, memory_of_a_run
from finetune.models import load_model
from pretrain.memory import PROGRAM

CONFIG = FinetuneConfig(1e-3, batch_size=8, max_length=64)


def test_what_a_run_needs(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four numbers a parameter; a pass keeps more with more rows, and parts are no larger than allowed."""
    parameters = sum(p.numel() for p in load_model(tiny_model, "text", 2).parameters())

    def kept(batch: int) -> int:
        need = memory_of_a_run(tiny_model, "text", replace(CONFIG, batch_size=batch), 2)
        return need - TEXTS - PROGRAM - 16 * parameters

    # at least input and output of two layers of width 32, in float32
    assert kept(8) > 8 * 64 * 2 * 2 * 32 * 4
    assert kept(16) == pytest.approx(2 * kept(8), rel=0.05)
    monkeypatch.setitem(PASS_COST, "cpu", PassCost(1, 4 * 64))
    assert kept(8) == kept(16) == kept(4)


def test_heads_of_both_kinds(tiny_model: Path) -> None:
    assert memory_of_a_run(tiny_model, "span", CONFIG) > TEXTS + PROGRAM
