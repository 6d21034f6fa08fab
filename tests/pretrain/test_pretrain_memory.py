"""Memory: it does not grow with the shapes of batches, and the plan says how much is needed."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from pretrain.config import PRESETS, Size
from pretrain.data import Batch
from pretrain.model import Electra
from pretrain.objectives import OBJECTIVES, Objective, build_model

SHAPE = Size(layers=1, hidden=32, heads=2, embedding=16, dropout=0.0, generator_fraction=1.0)


def batch_of(rows: int, length: int, chosen: int) -> Batch:
    """Random ids, the first of them chosen."""
    ids = torch.randint(672, 7992, (rows, length))
    return Batch(
        input_ids=ids,
        masked_ids=ids,
        token_type_ids=torch.zeros_like(ids),
        positions=torch.arange(chosen),
        attention_mask=None,
        tokens=ids.numel(),
    )


class Products(TorchDispatchMode):
    """Shapes of the matrix products that are computed meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm):
            given = [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]
            if args[-1].dtype == torch.bfloat16:
                self.shapes.add((function.overloadpacket, *given))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_numbers_of_chosen_positions_make_no_new_products(objective):
    """For each shape of a bf16 product oneDNN keeps a kernel; 33 to 64 positions share theirs."""
    config = dataclasses.replace(PRESETS["tiny"], objective=objective, shape=SHAPE, sharing="none")
    trained = Objective(build_model(config), config)
    seen = []
    for chosen in (40, 33, 51, 64):
        batch = batch_of(4, 32, chosen)
        with Products() as products:
            with torch.autocast("cpu", torch.bfloat16):
                loss = trained(batch, 0).loss(chosen, batch.tokens)
            loss.backward()
        seen.append(products.shapes)
    assert seen[0]
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_filling_up_changes_no_number():
    """Loss and gradients are those of the chosen positions alone, written plainly."""
    torch.manual_seed(0)
    model, batch = Electra(SHAPE, sharing="none"), batch_of(4, 32, 37)
    total, sampled, guessed = model.fill_in("generator", batch.masked_ids, batch)
    total.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    network = model.generator
    hidden = network.electra(batch.masked_ids).last_hidden_state.flatten(0, 1)[batch.positions]
    logits = network.generator_lm_head(network.generator_predictions(hidden))
    plain = functional.cross_entropy(logits, batch.input_ids.flatten()[:37], reduction="sum")
    plain.backward()
    assert total.item() == pytest.approx(plain.item(), rel=1e-5)
    assert len(sampled) == len(guessed) == 37
    expected = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert np.allclose(found[name], gradient, rtol=1e-4, atol=1e-5), name
    logits_at = model.detect("discriminator", batch.input_ids, batch, batch.positions)
    everywhere = model.detect("discriminator", batch.input_ids, batch).flatten()
    assert torch.allclose(logits_at, everywhere[:37], atol=1e-5)
    log_probabilities = model.log_probabilities("generator", hidden)
    assert torch.allclose(log_probabilities, logits.log_softmax(-1), atol=1e-5)
