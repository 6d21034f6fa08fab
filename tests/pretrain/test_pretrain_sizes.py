"""Sizes, presets and the cost of a step as the paper and HFL publish them: cases 43, 44, 48."""

import dataclasses

import pytest
import torch
from transformers import ElectraModel

from pretrain.config import PRESETS, SIZES, Size
from pretrain.flops import paper_row
from pretrain.model import Electra, discriminator_config, generator_config

SMALL = Size(layers=2, hidden=32, heads=2, embedding=24, generator_fraction=0.5, vocab_size=1000, dropout=0.0)


def parameters(config) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in ElectraModel(config).parameters())


@pytest.mark.parametrize(
    ("size", "expected"),
    [("small", 12_280_576), ("small-ex", 24_495_104), ("base", 101_677_056), ("large", 324_472_832)],
)
def test_parameters(size, expected):
    """Case 44: encoder with embeddings, as HFL publishes them."""
    assert parameters(discriminator_config(SIZES[size])) == expected


def test_generator_shapes():
    """Cases 43 and 44: all layers, width scaled, heads of 64; small's generator has 3,378,496 parameters."""
    assert parameters(generator_config(SIZES["small"])) == 3_378_496
    third = dataclasses.replace(SIZES["base"], generator_fraction=1 / 3)
    for size, expected in (
        (SIZES["small"], (64, 1, 256, 12)),
        (third, (256, 4, 1024, 12)),
        (SIZES["base"], (192, 3, 768, 12)),
        (SIZES["large"], (256, 4, 1024, 24)),
        (SIZES["mini"], (256, 4, 1024, 4)),
    ):
        c = generator_config(size)
        assert (c.hidden_size, c.num_attention_heads, c.intermediate_size, c.num_hidden_layers) == expected


def test_heads_as_google_has_them():
    """Case 48: erf gelu, LayerNorm ε 1e-12, dense to the embedding width, then the word table."""
    model = Electra(SMALL)
    assert model.discriminator.config.hidden_act == "gelu"
    assert model.generator.generator_predictions.LayerNorm.eps == 1e-12
    assert model.generator.generator_predictions.dense.out_features == SMALL.embedding
    assert model.discriminator.discriminator_predictions.dense_prediction.out_features == 1


def test_flops_as_the_paper_counts_them():
    """Clark et al. 2020: 1.4e18 for small (1M steps of 128 · 128), 6.4e19 for base (766k of 256 · 512)."""
    small = dataclasses.replace(SIZES["small"], vocab_size=30522)
    base = dataclasses.replace(SIZES["base"], vocab_size=30522, generator_fraction=1 / 3)
    assert 1_000_000 * 128 * paper_row(small, 128) == pytest.approx(1.4e18, rel=0.1)
    assert 766_000 * 256 * paper_row(base, 512) == pytest.approx(6.4e19, rel=0.1)


def test_presets_are_the_published_recipe():
    """HFL's settings, from biases of 0; CPU presets of 1,024 tokens a step that start at the priors."""
    for name, rate, batch, steps in (
        ("small", 5e-4, 1024, 1_000_000),
        ("small-ex", 5e-4, 384, 2_000_000),
        ("base", 2e-4, 256, 1_000_000),
        ("large", 1e-4, 96, 2_000_000),
    ):
        preset = PRESETS[name]
        assert (preset.learning_rate, preset.batch_size, preset.steps) == (rate, batch, steps)
        assert (preset.length, preset.warmup) == (512, 10_000)
        assert (preset.initial_unigrams, preset.initial_fake_rate) == (False, 0.5)
    for name in ("tiny", "mini"):
        preset = PRESETS[name]
        assert preset.batch_size * preset.length == 1024
        assert (preset.initial_unigrams, preset.mask_fraction, preset.initial_fake_rate) == (True, 0.3, 0.26)
        assert 10 * preset.warmup <= preset.steps
