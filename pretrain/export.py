"""Write the two networks as transformers folders.

``python -m pretrain.export RUN_DIR`` exports from the last whole checkpoint of a run, finished or not.
``python -m pretrain.export --random SIZE --out DIR`` writes the same folders with untrained weights, the
baseline any pretraining must beat.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from transformers import PreTrainedModel

from corpus.vocab import save_tokenizer, tokenizer, vocab_path
from pretrain.checkpoint import last_checkpoint, load_checkpoint
from pretrain.config import PRESETS, PretrainConfig, SizeName, config_from
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
USE = {
    "discriminator": "Fine-tune it on Chinese classification or reading comprehension. Its own head says of "
    "each token how likely it was replaced.",
    "generator": "It fills in [MASK] and is what the discriminator was trained against. Fine-tune the "
    "discriminator, not this.",
}


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


def _shown(form: str, value: float | None) -> str:
    return "not finite" if value is None else form.format(value)


def curve(run: Path) -> str:
    """A dozen lines of the run's log as a Markdown table; empty where there is no log."""
    log = run / "log.jsonl"
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    entries = [json.loads(line) for line in text.split("\n") if line.endswith("}")]
    if not entries:
        return ""
    shown = [*entries[: -1 : max(1, -(-len(entries) // CURVE_ROWS))], entries[-1]]
    lines = [
        "| " + " | ".join(name.replace("_", " ") for name, _ in CURVE) + " |",
        "|---:" * len(CURVE) + "|",
    ]
    lines += ["| " + " | ".join(_shown(form, entry[name]) for name, form in CURVE) + " |" for entry in shown]
    held = {k.removeprefix("heldout_"): v for e in entries for k, v in e.items() if k.startswith("heldout_")}
    if held:
        metrics = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in held.items())
        lines += ["", f"Last held-out metrics (losses in nats, scores in percent): {metrics}."]
    return "\n".join(lines)


def card(
    name: str, part: str, network: PreTrainedModel, config: PretrainConfig, step: int | None, run: Path
) -> str:
    """The model card: what it is, from what data, how trained, what for."""
    trained, data, curves = "**The weights are random**: this is the untrained baseline.", "None.", ""
    if step is not None:
        trained = (
            f"Trained for {step:,} of {config.steps:,} steps of {config.batch_size} rows of up to "
            f"{config.length} tokens."
        )
        data = (
            "A packed corpus. `manifest.json` names the sha256 of the checkpoint's manifest as its parent, "
            "and that one the corpus manifest's."
        )
        curves = f"\n## Curves\n\n{table}\n" if (table := curve(run)) else ""
    settings = "\n".join(f"- {key}: {value}" for key, value in plain(config).items())
    return f"""---
language: zh
library_name: transformers
license: apache-2.0
tags: [electra]
---

# {name}

An ELECTRA {part} for Chinese, written by zh-electra. Parameters of the encoder with its embeddings:
{encoder_parameters(network):,}. {trained}

## Intended use

{USE[part]} Text is lower-cased; the vocabulary is BERT-Chinese's 21,128 entries. The model reflects
whatever its training text holds; it is not meant to generate text or to decide about people.

## Data

{data}

## Configuration

{settings}
{curves}"""


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
    run: Path | None = None,
) -> None:
    """Write ``out/discriminator`` and ``out/generator``.

    Args:
        name: the discriminator's name in results; the generator's gets ``-generator``.
        vocab: the vocabulary file, copied into both.
        parent: the checkpoint folder the weights are from; None for random weights.
        step: steps trained; None for random weights.
        run: folder whose log the card shows; default ``out``.
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
            readme=card(called, part, network, config, step, run or out),
            name=called,
            config=config,
            identity={"config": plain(config), "part": part, "step": step},
            parent=parent,
            step=step,
        )


def export_run(
    run: Path, out: Path | None = None, name: str | None = None, vocab: Path | None = None
) -> Path:
    """Export from the last whole checkpoint of ``run`` into ``out`` (default ``run``); returns that folder.

    Raises:
        UserError: there is no whole checkpoint.
    """
    found = last_checkpoint(run, print)
    if found is None:
        raise UserError(f"{run} holds no whole checkpoint; run pretrain.train first or give another folder")
    checkpoint, manifest = found
    config = config_from(manifest["config"])
    model = Electra(config.shape)
    step = load_checkpoint(checkpoint, model, None, torch.device("cpu"))
    name, out = name or manifest["name"], out or run
    export_model(model, config, out, name, vocab=vocab_path(vocab), parent=checkpoint, step=step, run=run)
    return out


def export_random(
    size: str, out: Path, *, name: str | None = None, seed: int = 0, vocab: Path | None = None
) -> None:
    """Write untrained networks of ``size`` into ``out``."""
    torch.manual_seed(seed)
    model, config = Electra(PRESETS[size].shape), PRESETS[size]
    called = name or f"zh-electra-{size}-random"
    export_model(model, config, out, called, vocab=vocab_path(vocab), parent=None, step=None)


@dataclass(frozen=True)
class Arguments:
    """Export a run's networks, or random ones, as transformers folders."""

    run: tyro.conf.Positional[Path | None] = None
    """Folder of a pretraining run, finished or not."""
    random: SizeName | None = None
    """Write untrained weights of this size in place of a run's."""
    out: Path | None = None
    """Folder that receives discriminator/ and generator/; default: the run's own."""
    name: str | None = None
    """Name of the model in results; default: as the run calls it, or zh-electra-SIZE-random."""
    seed: int = 0
    """Seed of random weights."""
    vocab: Path | None = None
    """vocab.txt to use; default: the cached one."""


def main() -> None:
    """Entry point of ``python -m pretrain.export``."""
    given = tyro.cli(Arguments, prog="python -m pretrain.export")
    if given.random is not None and given.out is not None and given.run is None:
        out = given.out
        export_random(given.random, out, name=given.name, seed=given.seed, vocab=given.vocab)
    elif given.run is not None and given.random is None:
        out = export_run(given.run, given.out, given.name, given.vocab)
    else:
        raise UserError("give a run folder, or --random SIZE with --out DIR")
    print(f"{out / 'discriminator'} and {out / 'generator'} are transformers folders")


if __name__ == "__main__":
    run_cli(main)
