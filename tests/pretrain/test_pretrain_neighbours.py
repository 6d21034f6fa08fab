"""Heads that look at the neighbours before the first step, and the word table's own rate."""

import dataclasses

import pytest
import torch
from torch.nn import functional
from transformers import ElectraConfig, ElectraModel

from pretrain.config import PRESETS, SIZES
from pretrain.neighbours import OFFSETS, look_at_neighbours
from pretrain.objectives import build_model
from pretrain.optim import parameter_groups
from provenance import UserError


def _electra(heads, embedding, neighbours=True):
    torch.manual_seed(0)
    config = ElectraConfig(
        vocab_size=500, embedding_size=embedding, hidden_size=64 * heads, num_attention_heads=heads
    )
    config.num_hidden_layers, config.initializer_range, config._attn_implementation = 1, 0.04, "eager"
    electra = ElectraModel(config).eval()
    if neighbours:
        look_at_neighbours(electra)
    return electra


def _ids(tokens=100):
    return torch.randint(5, 500, (4, tokens), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("tokens", "least"), [(100, 0.5), (512, 0.36)])
@pytest.mark.parametrize(("heads", "embedding"), [(4, 128), (2, 128), (2, 64), (4, 256)])
def test_each_head_looks_at_its_neighbour(heads, embedding, tokens, least):
    """In 100 tokens more than half of a head's attention falls on the token it is for, and in 512, where more
    tokens share it, over a third."""
    with torch.no_grad():
        attention = _electra(heads, embedding)(_ids(tokens), output_attentions=True).attentions[0]
    for head in range(heads):
        offset = OFFSETS[head % 4]
        assert attention[:, head].diagonal(offset, dim1=-2, dim2=-1).mean() > least


@pytest.mark.parametrize("embedding", [64, 128, 768])
def test_no_two_positions_are_alike(embedding):
    """Of 512; neighbours have nothing in common but what chance gives."""
    table = functional.normalize(
        _electra(2, embedding).embeddings.position_embeddings.weight.detach(), dim=-1
    )
    alike = (table @ table.T).fill_diagonal_(0)
    assert alike.abs().max() < 0.5
    assert alike.diagonal(1).abs().max() < 0.1


def test_a_token_is_told_by_its_neighbour():
    """Another left neighbour changes a token's vector by over a fifth; with plain weights by under 2 %."""
    ids, others = _ids(), _ids()
    others[:, 49] = (others[:, 49] + 7) % 400 + 10
    changes = []
    for neighbours in (True, False):
        electra = _electra(4, 128, neighbours)
        with torch.no_grad():
            before, after = (electra(x).last_hidden_state[:, 50] for x in (ids, others))
        changes.append(((after - before).norm(dim=-1) / before.norm(dim=-1)).mean().item())
    assert changes[0] > 0.2
    assert changes[1] < 0.02


def test_option_reaches_every_encoder():
    """Both networks of ELECTRA have them, and without the option none has; the same seed gives the same."""
    for wanted in (True, False):
        config = dataclasses.replace(PRESETS["tiny"], neighbour_heads=wanted)
        torch.manual_seed(3)
        model = build_model(config)
        torch.manual_seed(3)
        again = build_model(config)
        for network in model.networks():
            value = network.electra.encoder.layer[0].attention.self.value.weight
            assert torch.allclose(value @ value.T, 2.25 * torch.eye(len(value)), atol=1e-4) == wanted
        for one, other in zip(model.parameters(), again.parameters(), strict=True):
            assert torch.equal(one, other)


def test_word_table_has_its_own_rate():
    """The table alone, shared or tied, is in the group whose rate is ten times the others'; it is decayed."""
    model = build_model(PRESETS["tiny"])
    groups = parameter_groups(model.named_parameters(), 0.01, word_rate=10.0)
    (words,) = [group for group in groups if group["scale"] == 10.0]
    assert [tuple(p.shape) for p in words["params"]] == [(21128, SIZES["tiny"].embedding)]
    assert words["weight_decay"] == 0.01
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    assert {group["scale"] for group in parameter_groups(model.named_parameters(), 0.01)} == {1.0}


def test_an_odd_embedding_is_refused():
    with pytest.raises(UserError, match="embedding is 33, and neighbour heads need an even one"):
        dataclasses.replace(PRESETS["tiny"], shape=dataclasses.replace(SIZES["tiny"], embedding=33))
