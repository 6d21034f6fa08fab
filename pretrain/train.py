"""Pretrain an ELECTRA: ``python -m pretrain.train SIZE --corpus DIR --out DIR``.

One loop, read from top to bottom in :func:`train`. On several processes ``python -m pretrain.launch n SIZE
...`` or any of torchrun, accelerate and srun: gloo on CPUs, nccl on GPUs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from pretrain.checkpoint import STAGE as CHECKPOINT_STAGE
from pretrain.checkpoint import last_checkpoint, load_checkpoint, prune_checkpoints, save_checkpoint
from pretrain.command import STAGE, Arguments, claim, corpus_folder, parse
from pretrain.config import VOCAB_SIZE, every, micro_batch
from pretrain.data import heldout_batches, open_corpus, train_batches
from pretrain.device import autocast, default_dtype, keep_freed_memory, pick_device
from pretrain.evaluate import entropy, evaluate
from pretrain.export import export_model
from pretrain.flops import run_flops, step_flops
from pretrain.launch import name_lost_process, stop_on_sigterm
from pretrain.memory import kept_by_a_pass
from pretrain.objectives import OBJECTIVES, Objective, build_model
from pretrain.optim import Adam, LossScale, clipping, parameter_groups
from pretrain.plan import plan
from pretrain.report import Report
from pretrain.start import parse_sources, start_from, start_from_counts
from pretrain.system import Loss, add_losses, mean_losses
from provenance import UserError, config_id, hold, plain, run_cli, verify_manifest, write_manifest

_DROPOUT = 3  # first word of a random stream's key; 0 to 2 are those of pretrain.data
MAX_SKIPPED = 50  # updates in a row that may be left out; fp16 needs some 20 to find its scale


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
    system = OBJECTIVES[arguments.config.objective]
    stages = system.stages(arguments.config)
    ddp = DistributedDataParallelKwargs(
        broadcast_buffers=False, gradient_as_bucket_view=True, find_unused_parameters=len(stages) > 1
    )
    accelerator = Accelerator(cpu=pick_device().type == "cpu", kwargs_handlers=[ddp])
    device, rank, processes = accelerator.device, accelerator.process_index, accelerator.num_processes
    config = arguments.config
    if config.dtype == "auto":
        config = dataclasses.replace(config, dtype=default_dtype(device))  # type: ignore[arg-type]
    micro = micro_batch(config, runtime, processes)

    corpus = corpus_folder(arguments.corpus)
    rows, heldout, manifest = open_corpus(corpus, config.length, verify=rank == 0)
    if config.shape.vocab_size != VOCAB_SIZE:
        raise UserError(f"vocab_size {config.shape.vocab_size} is not that of the corpus ({VOCAB_SIZE})")
    identity = {"config": plain(config), "corpus": [manifest["config_id"], config_id(manifest["files"])]}
    torch.manual_seed(config.seed)
    model = build_model(config, config.cheap_dropout and device.type == "cpu")
    if sources := parse_sources(arguments.continue_from, list(model.parts), system.given):
        identity["start"] = start_from(model, sources, corpus / "vocab.txt")
    run = {"config_id": config_id(identity), **identity}
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

        # --- model and optimiser: new, as the last whole checkpoint has them, or as another run's
        model.to(device).train()
        model.tie()
        optimizer = Adam(
            parameter_groups(model.named_parameters(), config.weight_decay, config.word_rate),
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.eps,
        )
        scale = LossScale(config.dtype == "fp16", device)
        parameters = list(model.parameters())
        first, total_tokens, skipped = 0, 0, torch.zeros((), device=device)
        found = last_checkpoint(out, report.say)
        if found is None and arguments.decay_from is not None:
            found = arguments.decay_from, verify_manifest(arguments.decay_from, CHECKPOINT_STAGE)
            if found[1]["corpus"] != identity["corpus"]:
                raise UserError(f"{found[0]} was trained on another corpus than {corpus}; give that one")
        if config.replacements == "unigrams" or (found is None and config.initial_unigrams):
            ids = rows.token_counts(config.shape.vocab_size)
            start_from_counts(model, ids, config, new=found is None, given=sources)
        if found is not None:
            first = load_checkpoint(found[0], model, optimizer, scale, device)
            total_tokens = found[1]["counts"]["tokens"]
            skipped += found[1]["counts"]["skipped"]
            report.say(f"going on from {found[0].name}")
        trained = Objective(model, config)
        kept = kept_by_a_pass(trained, micro, device) if rank == 0 else 0
        if runtime.compile:
            for encoder in {network.electra.encoder for network in model.networks()}:
                encoder.compile()
        with warnings.catch_warnings(action="ignore"):  # accelerate passes an option that torch renamed
            objective = accelerator.prepare_model(trained)
        operations = run_flops(config, first)

        # --- the plan, before the first step
        save_every, eval_every = every(runtime.save_every, steps, 20), every(runtime.eval_every, steps, 20)
        report.say(
            plan(
                f"{arguments.size}, {config.objective} (config {run['config_id']})",
                config,
                runtime,
                rows=len(rows),
                micro=micro,
                processes=processes,
                device=device,
                parameters=sum(p.numel() for p in parameters),
                kept=kept,
                out=out,
            )
        )
        held = heldout_batches(heldout, config, runtime.eval_rows, micro, system.hiding) if rank == 0 else []
        report.start(first, runtime.tensorboard)

        def batches(step: int) -> Any:
            return train_batches(
                rows, config, step, rank=rank, processes=processes, micro=micro, hiding=system.hiding
            )

        def save(step: int) -> None:
            if rank == 0:
                save_checkpoint(
                    out,
                    step,
                    model,
                    optimizer,
                    scale,
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
        # Since the last log line: summed losses; replaced tokens; masked and all tokens.
        window: dict[str, Loss] = {}
        fakes, counted = torch.zeros((), device=device), torch.zeros(2, dtype=torch.float64)
        skipped_in_row = torch.zeros((), device=device)
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
            stage = system.stage(config, step)
            if step == stage.first and stage.begin is not None:
                stage.begin(model)
            rate = stage.rate(config, step)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["scale"]
            for number, batch in enumerate(micro_batches, 1):
                last = number == len(micro_batches)
                with contextlib.nullcontext() if last else accelerator.no_sync(objective):
                    with autocast(device, config.dtype):
                        result = objective(batch.to(device), step)
                    # Data parallelism averages gradients over processes; the sums must be added.
                    (processes * scale.factor * result.loss(masked, tokens)).backward()
                add_losses(window, result.losses)
                if result.replaced is not None:
                    fakes += result.replaced.sum()
            divide_by, skip = clipping(parameters, config.clip, scale.factor)
            optimizer.step(divide_by=divide_by, skip=skip)
            optimizer.zero_grad(set_to_none=True)
            scale.update(skip)
            skipped += skip  # the same on every process: gradients are
            skipped_in_row = (skipped_in_row + skip) * skip
            counted += counts[:2]
            total_tokens += round(tokens)
            operations += step_flops(config, step=step)
            step += 1
            report.advance(step)

            if step % runtime.log_every == 0 or step == stage.end or step % eval_every == 0:
                sums = torch.stack([*(term.total for term in window.values()), fakes])
                *totals, fake_sum = (accelerator.reduce(sums) if processes > 1 else sums).tolist()
                terms = {
                    name: term._replace(total=t)
                    for (name, term), t in zip(window.items(), totals, strict=True)
                }
                masked_sum, token_sum = counted.tolist()
                entry = {
                    "step": step,
                    "tokens": total_tokens,
                    "flops": operations,
                    "lr": rate,
                    **mean_losses(terms, masked_sum, token_sum),
                    "tokens_per_second": token_sum / (time.perf_counter() - clock),
                    "skipped": round(skipped.item()),
                }
                if result.replaced is not None:
                    rate_of_fakes = fake_sum / (masked_sum if system.judged == "chosen" else token_sum)
                    entry |= {"fake_rate": rate_of_fakes, "fake_entropy": entropy(rate_of_fakes)}
                if held and (step % eval_every == 0 or step == steps):
                    entry |= evaluate(trained, held, config, device, step - 1)
                report.log(entry)
                window.clear()
                fakes.zero_()
                counted.zero_()
                clock = time.perf_counter()
                if skipped_in_row >= MAX_SKIPPED:
                    raise UserError(
                        f"the last {skipped_in_row:.0f} updates before step {step} were not finite; "
                        "start again with a lower --learning-rate, or with --dtype fp32"
                    )
            milestone = runtime.milestone_every and step % runtime.milestone_every == 0
            if (step % save_every == 0 or milestone) and step < steps:
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
                corpus=identity["corpus"],
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
            folders = " and ".join(str(out / part) for part in system.trained(config))
            report.say(f"{steps:,} steps done; for transformers: {folders}")
        accelerator.wait_for_everyone()


def main() -> None:
    """Entry point of ``python -m pretrain.train``."""
    with name_lost_process():
        train(parse(sys.argv[1:]))


if __name__ == "__main__":
    run_cli(main)
