"""A pretraining step of ours against transformers written plainly, and processes against threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks.speed.turns import Contestant, Measurement, Setting, Step
from pretrain.config import PRESETS, SIZES
from pretrain.data import Batch
from pretrain.device import autocast, default_dtype, keep_freed_memory
from pretrain.flops import step_flops
from pretrain.masking import choose_tokens, hide
from pretrain.model import discriminator_config, generator_config
from pretrain.objectives import Objective, build_model
from pretrain.optim import Adam, clipping, parameter_groups

SIZE = "small"


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


def our_step(
    size: str,
    batch: Batch,
    device: torch.device,
    dtype: str,
    wrap: Callable[[Objective], nn.Module] = lambda objective: objective,
) -> Step:
    """One training step as ``pretrain.train`` does it; ``wrap`` may make it data parallel."""
    config = PRESETS[size]
    torch.manual_seed(0)
    model = build_model(config, config.cheap_dropout and device.type == "cpu").to(device).train()
    model.tie()
    objective = wrap(Objective(model, config))
    parameters = list(model.parameters())
    optimizer = Adam(parameter_groups(model.named_parameters(), config.weight_decay), lr=1e-4)
    batch = batch.to(device)

    def step() -> float:
        with autocast(device, dtype):
            outputs = objective(batch)
        loss = outputs.loss(len(batch.positions), batch.tokens)
        loss.backward()
        divide_by, skip = clipping(parameters, config.clip)
        optimizer.step(divide_by=divide_by, skip=skip)
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def transformers_step(
    size: str, batch: Batch, device: torch.device, dtype: str, chosen_only: bool = False
) -> Step:
    """The same step written plainly: transformers' two models with tied embeddings.

    Dropout and attention are the library's defaults, and the optimiser is torch's AdamW. The vocabulary is
    predicted at every position, as the library does it, or with ``chosen_only`` at the chosen ones.
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
    types = batch.token_type_ids

    def predicted() -> tuple[torch.Tensor, torch.Tensor]:
        """The generator's loss, and its logits at the chosen positions."""
        if not chosen_only:
            filled = generator(input_ids=batch.masked_ids, token_type_ids=types, labels=labels)
            return filled.loss, filled.logits[chosen]
        hidden = generator.electra(batch.masked_ids, token_type_ids=types).last_hidden_state[chosen]
        logits = generator.generator_lm_head(generator.generator_predictions(hidden))
        return functional.cross_entropy(logits.float(), batch.input_ids[chosen]), logits

    def step() -> float:
        with autocast(device, dtype):
            generator_loss, logits = predicted()
            with torch.no_grad():
                probabilities = functional.softmax(logits.float(), dim=-1)
                corrupted = batch.input_ids.clone()
                corrupted[chosen] = torch.multinomial(probabilities, 1).squeeze(1)
            replaced = (corrupted != batch.input_ids).long()
            found = discriminator(input_ids=corrupted, token_type_ids=types, labels=replaced)
            loss = generator_loss + PRESETS[size].discriminator_weight * found.loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def operations(rows: int, length: int) -> int:
    """Matrix-product operations of one step of ``small``."""
    return step_flops(replace(PRESETS[SIZE], batch_size=rows, length=length))


def step_of_128(setting: Setting) -> Measurement:
    """32 x 128 (8 x 128 if quick): ours against plain transformers in the same arithmetic."""
    rows = 8 if setting.quick else 32
    batch = random_batch(rows, 128)
    keep_freed_memory()
    device = setting.device
    contestants = (
        Contestant("transformers fp32", partial(transformers_step, SIZE, batch, device, "fp32")),
        Contestant("transformers bf16", partial(transformers_step, SIZE, batch, device, "bf16")),
        Contestant(
            "ours fp32", partial(our_step, SIZE, batch, device, "fp32"), peers={"transformers fp32": None}
        ),
        Contestant(
            "ours bf16",
            partial(our_step, SIZE, batch, device, "bf16"),
            peers={"transformers fp32": 3.5, "transformers bf16": 2.5},
        ),
    )
    what = f"Pretraining step of `{SIZE}` (both networks, update included), {rows} x 128 tokens, dropout 0.1"
    return Measurement(
        what, "tokens", batch.tokens, contestants, "first loss", operations=operations(rows, 128)
    )


def step_of_512(setting: Setting) -> Measurement:
    """8 x 512 (2 x 512 if quick): against transformers in bf16, the vocabulary at chosen positions only."""
    rows = 2 if setting.quick else 8
    batch, device = random_batch(rows, 512), setting.device
    keep_freed_memory()
    plain = "transformers bf16, chosen positions only"
    contestants = (
        Contestant(plain, partial(transformers_step, SIZE, batch, device, "bf16", chosen_only=True)),
        Contestant("ours bf16", partial(our_step, SIZE, batch, device, "bf16"), peers={plain: 1.6}),
    )
    what = f"Pretraining step of `{SIZE}` (both networks, update included), {rows} x 512 tokens, dropout 0.1"
    return Measurement(
        what, "tokens", batch.tokens, contestants, "first loss", operations=operations(rows, 512)
    )


# --- processes ------------------------------------------------------------------------------------


def _work(
    pipe: Connection, rank: int, processes: int, threads: int, rows: int, steps: int, dtype: str, store: str
) -> None:
    """One process: on every message it takes ``steps`` training steps and sends back the last loss."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    wrap: Callable[[Objective], nn.Module] = lambda objective: objective  # noqa: E731
    if processes > 1:
        torch.distributed.init_process_group("gloo", f"file://{store}", rank=rank, world_size=processes)
        wrap = nn.parallel.DistributedDataParallel
    batch = random_batch(rows // processes, 128, seed=rank)
    step = our_step(SIZE, batch, torch.device("cpu"), dtype, wrap)
    with contextlib.suppress(EOFError):  # the parent has what it wanted
        while pipe.recv():
            pipe.send([step() for _ in range(steps)][-1])


def _together(setting: Setting, processes: int, threads: int, rows: int, steps: int) -> Step:
    """Processes that wait for the word; their step is ``steps`` training steps over ``rows`` rows in all."""
    context = torch.multiprocessing.get_context("spawn")
    store = setting.scratch / f"store-{processes}-{os.getpid()}"
    ends = []
    dtype = default_dtype(setting.device)
    for rank in range(processes):
        ours, theirs = context.Pipe()
        arguments = (theirs, rank, processes, threads, rows, steps, dtype, str(store))
        context.Process(target=_work, args=arguments, daemon=True).start()
        ends.append(ours)

    def step() -> float:
        for end in ends:
            end.send(True)
        return float(np.mean([end.recv() for end in ends]))

    return step


def processes(setting: Setting) -> Measurement:
    """Two processes of one thread against one process of two threads, on the same rows."""
    rows, steps = (8, 1) if setting.quick else (32, 3)
    one = "1 process, 2 threads"
    contestants = (
        Contestant(one, partial(_together, setting, 1, 2, rows, steps)),
        Contestant(
            "2 processes, 1 thread each", partial(_together, setting, 2, 1, rows, steps), peers={one: 1.15}
        ),
    )
    what = f"{steps} pretraining steps of `{SIZE}`, {rows} x 128 tokens each, data parallel on gloo"
    return Measurement(what, "tokens", steps * rows * 128, contestants, "loss")
