"""Write the two networks as transformers folders.

``python -m pretrain.export RUN_DIR`` exports from the last whole checkpoint of a run, finished or not.
``python -m pretrain.export --random SIZE --out DIR`` writes the same folders with untrained weights, the baseline
any pretraining must beat.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from transformers import PreTrainedModel

from corpus.vocab import save_tokenizer, tokenizer, vocab_path
from pretrain.checkpoint import last_checkpoint, load_checkpoint
from pretrain.config import PRESETS, PretrainConfig, config_from
from pretrain.model import Electra
from provenance import UserError, atomic_folder, plain, run_cli, sha256_file, write_manifest, write_text

STAGE = "pretrain.export"
CURVE_ROWS = 12
CURVE = (
    ("step", "{:,}"),
    ("tokens", "{:,}"),
    ("loss", "{:.2f}"),
    ("generator_loss", "{:.3f}"),
    ("discriminator_loss", "{:.4f}"),
    ("fake_entropy", "{:.4f}"),
)


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and no advice of transformers on the console."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def encoder_parameters(network: PreTrainedModel) -> int:
    """Parameters of the encoder with its embeddings, without the head."""
    return sum(p.numel() for p in network.base_model.parameters())


def curve(run: Path) -> str:
    """A dozen lines of the run's log as a Markdown table; empty where there is no log."""
    log = run / "log.jsonl"
    entries = (
        [json.loads(line) for line in log.read_text(encoding="utf-8").split("\n") if line]
        if log.exists()
        else []
    )
    if not entries:
        return ""
    stride = max(1, -(-len(entries) // CURVE_ROWS))
    shown = [*entries[:-1:stride], entries[-1]]
    lines = [
        "| " + " | ".join(name.replace("_", " ") for name, _ in CURVE) + " |",
        "|---:" * len(CURVE) + "|",
    ]
    lines += ["| " + " | ".join(form.format(e[name]) for name, form in CURVE) + " |" for e in shown]
    held = {k.removeprefix("heldout_"): v for e in entries for k, v in e.items() if k.startswith("heldout_")}
    text = "\n".join(lines)
    if held:
        text += "\n\nLast held-out metrics: " + ", ".join(
            f"{k.replace('_', ' ')} {v:.4g}" for k, v in held.items()
        )
        text += " (losses in nats, accuracies, precision, recall and AUC in percent)."
    return text


def card(
    name: str, part: str, network: PreTrainedModel, config: PretrainConfig, step: int | None, run: Path
) -> str:
    """The model card: what it is, from what, how trained, what for."""
    trained = (
        "**The weights are random**: this is the untrained baseline."
        if step is None
        else f"Trained for {step:,} of {config.steps:,} steps of {config.batch_size} rows of up to {config.length} tokens."
    )
    use = (
        "Fine-tune it on Chinese classification or reading comprehension. It says per token how likely it was replaced."
        if part == "discriminator"
        else "It fills in [MASK]; it is what trained the discriminator. Fine-tune the discriminator, not this."
    )
    data = (
        "none"
        if step is None
        else f"a packed corpus; `manifest.json` names its checkpoint, which names the corpus manifest (sha256), run `{run.name}`"
    )
    settings = "\n".join(f"- {k}: {v}" for k, v in plain(config).items())
    curves = "" if step is None else curve(run)
    return f"""---
language: zh
library_name: transformers
license: apache-2.0
tags: [electra]
---

# {name}

An ELECTRA {part} for Chinese with {encoder_parameters(network):,} parameters in the encoder (embeddings included),
written by zh-electra. {trained}

## Intended use

{use} Text is lower-cased; the vocabulary is BERT-Chinese's 21,128 entries. It reflects whatever its training text holds
and is not meant to generate text or to decide about people.

## Data

{data}.

## Configuration

{settings}
{f"{chr(10)}## Curves{chr(10)}{chr(10)}{curves}{chr(10)}" if curves else ""}"""


def export_network(
    network: PreTrainedModel, folder: Path, *, vocab: Path, readme: str, **manifest: Any
) -> None:
    """Write one network as a transformers folder with tokenizer, card and manifest, atomically.

    Tied weights are stored once; transformers ties them again on loading.
    """
    network = copy.deepcopy(network).cpu().float().eval()
    network.tie_weights()
    with atomic_folder(folder) as partial, quiet_transformers():
        network.save_pretrained(partial)
        save_tokenizer(tokenizer(vocab), vocab, partial)
        write_text(partial / "README.md", readme)
        write_manifest(
            partial,
            stage=STAGE,
            parameters=encoder_parameters(network),
            weights_sha256=sha256_file(partial / "model.safetensors"),
            **manifest,
        )


def export_model(
    model: Electra,
    config: PretrainConfig,
    out: Path,
    name: str,
    *,
    vocab: Path,
    parent: Path | None,
    step: int | None,
) -> None:
    """Write ``out/discriminator`` and ``out/generator``.

    Args:
        name: the discriminator's name in results; the generator's gets ``-generator``.
        vocab: the vocabulary file, copied into both.
        parent: the checkpoint folder the weights are from; None for random weights.
        step: steps trained; None for random weights.
    """
    parts = {
        "discriminator": (model.discriminator, name),
        "generator": (model.generator, f"{name}-generator"),
    }
    for part, (network, called) in parts.items():
        export_network(
            network,
            out / part,
            vocab=vocab,
            readme=card(called, part, network, config, step, out),
            name=called,
            config=config,
            identity={"config": plain(config), "part": part, "step": step},
            parent=parent,
            step=step,
        )


@dataclass(frozen=True)
class Arguments:
    """Export a run's networks, or random ones, as transformers folders."""

    run: tyro.conf.Positional[Path | None] = None
    """Folder of a pretraining run, finished or not."""
    random: Literal[tuple(PRESETS)] | None = None  # type: ignore[valid-type]
    """Write untrained weights of this size in place of a run's."""
    out: Path | None = None
    """Folder that receives discriminator/ and generator/; default: the run's own."""
    name: str | None = None
    """Name of the model in results; default: zh-electra-SIZE[-random], or as the run calls it."""
    seed: int = 0
    """Seed of random weights."""
    vocab: Path | None = None
    """vocab.txt to use; default: the cached one."""


def main() -> None:
    """Entry point of ``python -m pretrain.export``."""
    given = tyro.cli(Arguments, prog="python -m pretrain.export")
    if (given.run is None) == (given.random is None):
        raise UserError("give a run folder, or --random SIZE with --out DIR")
    if given.random is not None:
        if given.out is None:
            raise UserError("--random needs --out DIR for the folders it writes")
        config = PRESETS[given.random]
        torch.manual_seed(given.seed)
        name, step, parent, out = given.name or f"zh-electra-{given.random}-random", None, None, given.out
        model = Electra(config.shape)
    else:
        run = given.run
        found = last_checkpoint(run, print)
        if found is None:
            raise UserError(
                f"{run} holds no whole checkpoint; run pretrain.train first or give another folder"
            )
        parent, manifest = found
        config = config_from(manifest["config"])
        model = Electra(config.shape)
        step, out = load_checkpoint(parent, model, None, torch.device("cpu")), given.out or run
        name = given.name or manifest["name"]
    export_model(model, config, out, name, vocab=vocab_path(given.vocab), parent=parent, step=step)
    print(f"{out / 'discriminator'} and {out / 'generator'} are transformers folders")


if __name__ == "__main__":
    run_cli(main)
