"""Pretrain an ELECTRA: ``python -m pretrain.train SIZE --corpus DIR --out DIR``.

One loop, read from top to bottom in :func:`train`. On several processes ``torchrun --nproc-per-node n -m
pretrain.train ...``: gloo on CPUs, nccl on GPUs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from pretrain.checkpoint import last_checkpoint, load_checkpoint, prune_checkpoints, save_checkpoint
from pretrain.command import STAGE, Arguments, claim, corpus_folder, parse
from pretrain.config import VOCAB_SIZE, every, micro_batch
from pretrain.data import heldout_batches, open_corpus, train_batches
from pretrain.device import autocast, default_dtype, keep_freed_memory, pick_device
from pretrain.evaluate import entropy, evaluate
from pretrain.export import export_model
from pretrain.flops import step_flops
from pretrain.model import Electra
from pretrain.objectives import Objective
from pretrain.optim import Adam, clipping, learning_rate, parameter_groups
from pretrain.report import Report
from provenance import UserError, config_id, hold, plain, run_cli, write_manifest

_DROPOUT = 3  # first word of a random stream's key; 0 to 2 are those of pretrain.data


@contextlib.contextmanager
def stop_on_sigterm() -> Iterator[list[int]]:
    """Yield a list that is no longer empty once SIGTERM came."""
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)


def seed_dropout(seed: int, step: int, rank: int) -> None:
    """Start the step's own stream for dropout and sampling, so that nothing random outlives a step."""
    torch.manual_seed(
        int(np.random.SeedSequence([_DROPOUT, seed, step, rank]).generate_state(1, np.uint64)[0]) >> 1
    )


def train(arguments: Arguments) -> None:
    """Run the whole of a pretraining: plan, loop, evaluate, save, export.

    Raises:
        UserError: the settings, the corpus or the output folder do not fit.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs

    runtime, out = arguments.runtime, arguments.out
    keep_freed_memory()
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    ddp = DistributedDataParallelKwargs(broadcast_buffers=False, gradient_as_bucket_view=True)
    accelerator = Accelerator(cpu=pick_device().type == "cpu", kwargs_handlers=[ddp])
    device, rank, processes = accelerator.device, accelerator.process_index, accelerator.num_processes
    config = arguments.config
    if config.dtype == "auto":
        config = dataclasses.replace(config, dtype=default_dtype(device))  # type: ignore[arg-type]
    micro = micro_batch(config, runtime, processes)

    corpus = corpus_folder(arguments.corpus)
    rows, heldout, manifest = open_corpus(corpus, config.length)
    if config.shape.vocab_size != VOCAB_SIZE:
        raise UserError(f"vocab_size {config.shape.vocab_size} is not that of the corpus ({VOCAB_SIZE})")
    identity = {"config": plain(config), "corpus": [manifest["config_id"], config_id(manifest["files"])]}
    run = {"config_id": config_id(identity), "config": plain(config), "corpus": identity["corpus"]}
    steps, name = config.steps, runtime.name or f"zh-electra-{arguments.size}"

    with contextlib.ExitStack() as stack:
        if rank == 0:
            stack.enter_context(hold(out))
        report = stack.enter_context(Report(out, steps, quiet=rank != 0))
        ready = not accelerator.is_main_process or claim(
            out, run, resume=arguments.resume, overwrite=arguments.overwrite
        )
        if processes > 1:
            ready = bool(accelerator.reduce(torch.tensor(float(ready), device=device)) == processes)
        if not ready:
            report.say(f"{out} already holds this run (config {run['config_id']}), finished: nothing to do")
            return

        # --- model and optimiser, new or as the last whole checkpoint has them
        torch.manual_seed(config.seed)
        model = Electra(config.shape, config.cheap_dropout and device.type == "cpu").to(device).train()
        model.tie()
        optimizer = Adam(
            parameter_groups(model.named_parameters(), config.weight_decay),
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.eps,
        )
        parameters = list(model.parameters())
        first, total_tokens, skipped = 0, 0, torch.zeros((), device=device)
        if found := last_checkpoint(out, report.say):
            first = load_checkpoint(found[0], model, optimizer, device)
            total_tokens = found[1]["counts"]["tokens"]
            skipped += found[1]["counts"]["skipped"]
            report.say(f"resumed from {found[0].name}")
        with warnings.catch_warnings(action="ignore"):  # accelerate passes an option that torch renamed
            objective = accelerator.prepare_model(Objective(model, config.objective))
        flops = step_flops(config)

        # --- the plan, before the first step
        save_every, eval_every = every(runtime.save_every, steps, 20), every(runtime.eval_every, steps, 20)
        epochs = steps * config.batch_size / len(rows)
        report.say(
            f"{arguments.size} (config {run['config_id']}): {len(rows):,} rows of up to {config.length} "
            f"tokens, {steps:,} steps of {config.batch_size} rows ({epochs:.2f} epochs);\n"
            f"{processes} process(es) on {device.type}, {config.dtype}, {torch.get_num_threads()} thread(s) "
            f"each, {config.batch_size // processes // micro} micro-batch(es) of {micro} rows; "
            f"checkpoint every {save_every:,} steps, held-out metrics every {eval_every:,}"
        )
        held = heldout_batches(heldout, config, runtime.eval_rows, micro) if rank == 0 else []
        report.start(first, runtime.tensorboard)

        def batches(step: int) -> Any:
            return train_batches(rows, config, step, rank=rank, processes=processes, micro=micro)

        def save(step: int) -> None:
            if rank == 0:
                save_checkpoint(
                    out,
                    step,
                    model,
                    optimizer,
                    config=config,
                    identity=identity,
                    corpus=corpus,
                    name=name,
                    counts={"tokens": total_tokens, "skipped": round(skipped.item())},
                )
                prune_checkpoints(out, 2, runtime.milestone_every)

        # --- the loop
        stop = stack.enter_context(stop_on_sigterm())
        pool = stack.enter_context(ThreadPoolExecutor(1))
        upcoming = pool.submit(batches, first)
        # since the last log line: generator and discriminator sums and fakes; masked and all tokens
        window, counted = torch.zeros(3, device=device), torch.zeros(2, dtype=torch.float64)
        clock, step = time.perf_counter(), first
        while step < steps:
            micro_batches = upcoming.result()
            if step + 1 < steps:
                upcoming = pool.submit(batches, step + 1)
            # Divide by the counts of all processes, so that n processes compute what one would.
            counts = torch.tensor(
                [
                    sum(len(b.positions) for b in micro_batches),
                    sum(b.tokens for b in micro_batches),
                    len(stop),
                ],
                dtype=torch.float64,
            )
            if processes > 1:
                counts = accelerator.reduce(counts.to(device)).cpu()
            masked, tokens, stopping = counts.tolist()
            if stopping:
                save(step)
                report.say(f"SIGTERM: saved step-{step}; go on with --resume")
                return

            seed_dropout(config.seed, step, rank)
            rate = learning_rate(step, peak=config.learning_rate, total=steps, warmup=config.warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate
            for number, batch in enumerate(micro_batches, 1):
                last = number == len(micro_batches)
                with contextlib.nullcontext() if last else accelerator.no_sync(objective):
                    with autocast(device, config.dtype):
                        result = objective(batch.to(device))
                    generator = result.generator_sum / max(1.0, masked)
                    discriminator = result.discriminator_sum / tokens
                    # Data parallelism averages gradients over processes; the sums must be added.
                    loss = processes * (generator + config.discriminator_weight * discriminator)
                    loss.backward()
                fakes = result.replaced.sum()
                window += torch.stack([result.generator_sum, result.discriminator_sum, fakes]).detach()
            divide_by, skip = clipping(parameters, config.clip)
            optimizer.step(divide_by=divide_by, skip=skip)
            optimizer.zero_grad(set_to_none=True)
            skipped += skip  # the same on every process: gradients are
            counted += counts[:2]
            total_tokens += round(tokens)
            step += 1
            report.advance(step)

            if step % runtime.log_every == 0 or step == steps or step % eval_every == 0:
                sums = accelerator.reduce(window) if processes > 1 else window
                generator_sum, discriminator_sum, fake_sum = sums.tolist()
                seconds = time.perf_counter() - clock
                masked_sum, token_sum = counted.tolist()
                generator_loss = generator_sum / max(1.0, masked_sum)
                discriminator_loss = discriminator_sum / token_sum
                entry = {
                    "step": step,
                    "tokens": total_tokens,
                    "flops": flops * step,
                    "lr": rate,
                    "loss": generator_loss + config.discriminator_weight * discriminator_loss,
                    "generator_loss": generator_loss,
                    "discriminator_loss": discriminator_loss,
                    "fake_rate": fake_sum / token_sum,
                    "fake_entropy": entropy(fake_sum / token_sum),
                    "tokens_per_second": token_sum / seconds,
                    "skipped": round(skipped.item()),
                }
                if held and (step % eval_every == 0 or step == steps):
                    entry |= evaluate(model, held, config, device)
                report.log(entry)
                window.zero_()
                counted.zero_()
                clock = time.perf_counter()
            if step % save_every == 0 and step < steps:
                began = time.perf_counter()
                save(step)
                clock += time.perf_counter() - began

        # --- the end: checkpoint, export, manifest
        save(steps)
        if rank == 0:
            export_model(
                model,
                config,
                out,
                name,
                vocab=corpus / "vocab.txt",
                parent=out / "checkpoints" / f"step-{steps}",
                step=steps,
            )
            write_manifest(
                out,
                stage=STAGE,
                config=config,
                identity=identity,
                parent=corpus,
                counts={"tokens": total_tokens, "skipped": round(skipped.item())},
                name=name,
                runtime={**plain(runtime), "processes": processes, "threads": torch.get_num_threads()},
            )
            report.say(
                f"{steps:,} steps done: {out / 'discriminator'} and {out / 'generator'} "
                "are transformers folders"
            )
        accelerator.wait_for_everyone()


def main() -> None:
    """Entry point of ``python -m pretrain.train``."""
    train(parse(sys.argv[1:]))


if __name__ == "__main__":
    run_cli(main)
