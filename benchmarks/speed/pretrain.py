"""One pretraining step of ours against transformers written plainly, and processes against threads."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch.nn import functional

from benchmarks.speed.turns import Contestant, Measurement, Setting, Step
from pretrain.config import PRESETS, SIZES
from pretrain.data import Batch
from pretrain.device import autocast
from pretrain.masking import choose_tokens, hide
from pretrain.model import discriminator_config, generator_config
from pretrain.objectives import Objective, build_model
from pretrain.optim import Adam, clipping, parameter_groups


def random_batch(rows: int, length: int, seed: int = 0) -> Batch:
    """Full rows of random ids, 15 % chosen; time does not depend on which ids."""
    rng = np.random.default_rng(seed)
    input_ids = rng.integers(672, 7992, (rows, length))  # Chinese characters of the vocabulary
    input_ids[:, 0], input_ids[:, -1] = 101, 102
    chosen = choose_tokens(input_ids, rng.random((rows, length)), length, 0.15)
    masked = hide(input_ids, chosen, rng.random((rows, length)))
    return Batch(
        input_ids=torch.from_numpy(input_ids),
        masked_ids=torch.from_numpy(masked),
        token_type_ids=torch.zeros(rows, length, dtype=torch.int64),
        positions=torch.from_numpy(np.flatnonzero(chosen)),
        attention_mask=None,
        tokens=rows * length,
    )


def our_step(size: str, batch: Batch, device: torch.device, dtype: str) -> Step:
    """One training step as ``pretrain.train`` does it."""
    config = PRESETS[size]
    torch.manual_seed(0)
    model = build_model(config, config.cheap_dropout and device.type == "cpu").to(device).train()
    model.tie()
    objective = Objective(model, config)
    parameters = list(model.parameters())
    optimizer = Adam(parameter_groups(model.named_parameters(), config.weight_decay), lr=1e-4)
    batch = batch.to(device)

    def step() -> float:
        with autocast(device, dtype):
            result = objective(batch)
        loss = result.loss(len(batch.positions), batch.tokens)
        loss.backward()
        divide_by, skip = clipping(parameters, config.clip)
        optimizer.step(divide_by=divide_by, skip=skip)
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def transformers_step(size: str, batch: Batch, device: torch.device, dtype: str) -> Step:
    """The same step written plainly: transformers' two models with tied embeddings and their own losses.

    The vocabulary is predicted at every position, dropout and attention are the library's defaults, and
    the optimiser is torch's AdamW.
    """
    from transformers import ElectraForMaskedLM, ElectraForPreTraining

    shape = SIZES[size]
    torch.manual_seed(0)
    discriminator = ElectraForPreTraining(discriminator_config(shape)).train()
    generator = ElectraForMaskedLM(generator_config(shape)).train()
    for model in (discriminator, generator):
        torch.nn.Module.to(model, device)
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight
    parameters = list({id(p): p for m in (generator, discriminator) for p in m.parameters()}.values())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01)
    batch = batch.to(device)
    chosen = torch.zeros(batch.input_ids.numel(), dtype=torch.bool, device=device)
    chosen[batch.positions] = True
    chosen = chosen.view_as(batch.input_ids)
    labels = batch.input_ids.masked_fill(~chosen, -100)

    def step() -> float:
        with autocast(device, dtype):
            filled = generator(input_ids=batch.masked_ids, token_type_ids=batch.token_type_ids, labels=labels)
            with torch.no_grad():
                probabilities = functional.softmax(filled.logits[chosen].float(), dim=-1)
                corrupted = batch.input_ids.clone()
                corrupted[chosen] = torch.multinomial(probabilities, 1).squeeze(1)
            replaced = (corrupted != batch.input_ids).long()
            found = discriminator(input_ids=corrupted, token_type_ids=batch.token_type_ids, labels=replaced)
            loss = filled.loss + 50.0 * found.loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def pretrain_step(setting: Setting) -> Measurement:
    """A pretraining step of ``small``, 32 x 128 (8 x 128 if quick): ours against plain transformers."""
    rows = 8 if setting.quick else 32
    batch = random_batch(rows, 128)
    asked = {"fp32": 3.5, "bf16": 2.5}

    def contestant(name: str, dtype: str) -> Contestant:
        make = partial({"transformers": transformers_step, "ours": our_step}[name], "small", batch)
        return Contestant(
            f"{name} {dtype}",
            partial(make, setting.device, dtype),
            peer="" if name == "transformers" else f"transformers {dtype}",
            least=None if name == "transformers" else asked[dtype],
        )

    what = f"Pretraining step of `small` (generator and discriminator, update included), {rows} x 128 tokens"
    contestants = [contestant(name, dtype) for dtype in asked for name in ("transformers", "ours")]
    return Measurement(what, "tokens", batch.tokens, tuple(contestants), value="first loss")
