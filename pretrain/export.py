"""Write the two networks as transformers folders.

``python -m pretrain.export RUN_DIR`` exports from the last whole checkpoint of a run, finished or not.
``python -m pretrain.export --random SIZE --out DIR`` writes the same folders with untrained weights, the
baseline any pretraining must beat.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from transformers import PreTrainedModel

from corpus.vocab import save_tokenizer, tokenizer, vocab_path
from pretrain.card import card, encoder_parameters
from pretrain.checkpoint import last_checkpoint, load_checkpoint
from pretrain.config import PRESETS, PretrainConfig, SizeName, config_from
from pretrain.graph import write_onnx
from pretrain.model import Electra
from pretrain.objectives import OBJECTIVES, build_model
from pretrain.quiet import quiet
from provenance import UserError, atomic_folder, plain, run_cli, sha256_file, write_manifest, write_text

STAGE = "pretrain.export"
FINE_TUNING_DROPOUT = 0.1  # what an exported configuration says, however the network was pretrained


def export_network(
    network: PreTrainedModel, folder: Path, *, vocab: Path, readme: str, onnx: bool = False, **manifest: Any
) -> None:
    """Write one network as a transformers folder with tokenizer, card and manifest, atomically.

    With ``onnx`` also as ``model.onnx`` (:func:`pretrain.graph.write_onnx`).

    Tied weights are stored once; transformers ties them again on loading. ``network`` is left in fp32 on the
    CPU.
    """
    network = network.cpu().float().eval()
    network.tie_weights()
    network.config.hidden_dropout_prob = network.config.attention_probs_dropout_prob = FINE_TUNING_DROPOUT
    with atomic_folder(folder) as partial, quiet():
        network.save_pretrained(partial)
        save_tokenizer(tokenizer(vocab), vocab, partial)
        write_text(partial / "README.md", readme)
        if onnx:
            write_onnx(network, partial / "model.onnx")
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
    corpus: Any,
    run: Path | None = None,
    onnx: bool = False,
) -> list[Path]:
    """Write ``out/<network>`` for every network of ``model`` that ``config`` trains; returns these folders.

    Args:
        name: in results, of the network that users fine-tune; the others get ``-<network>``.
        vocab: the vocabulary file, copied into each.
        parent: the checkpoint folder the weights are from; None for random weights.
        step: steps trained; None for random weights.
        corpus: what identifies the corpus; None for random weights.
        run: folder whose log the card shows; default ``out``.
        onnx: write ``model.onnx`` too.
    """
    folders = []
    for number, part in enumerate(OBJECTIVES[config.objective].trained(config)):
        network, called = model.standalone(part), f"{name}-{part}" if number else name
        export_network(
            network,
            out / part,
            vocab=vocab,
            readme=card(called, part, network, config, step, run or out),
            onnx=onnx,
            name=called,
            config=config,
            identity={"config": plain(config), "part": part, "step": step, "corpus": corpus},
            corpus=corpus,
            parent=parent,
            step=step,
        )
        folders.append(out / part)
    return folders


def export_run(
    run: Path, out: Path | None = None, name: str | None = None, vocab: Path | None = None, onnx: bool = False
) -> list[Path]:
    """Export from the last whole checkpoint of ``run`` into ``out`` (default ``run``); returns the folders.

    Raises:
        UserError: there is no whole checkpoint.
    """
    found = last_checkpoint(run, print)
    if found is None:
        raise UserError(f"{run} holds no whole checkpoint; run pretrain.train first or give another folder")
    checkpoint, manifest = found
    config = config_from(manifest["config"])
    model = build_model(config)
    return export_model(
        model,
        config,
        out or run,
        name or manifest["name"],
        vocab=vocab_path(vocab),
        parent=checkpoint,
        step=load_checkpoint(checkpoint, model),
        corpus=manifest["corpus"],
        run=run,
        onnx=onnx,
    )


def export_random(
    size: str,
    out: Path,
    *,
    name: str | None = None,
    seed: int = 0,
    vocab: Path | None = None,
    onnx: bool = False,
) -> list[Path]:
    """Write untrained networks of ``size`` into ``out``; returns the folders."""
    torch.manual_seed(seed)
    config = PRESETS[size]
    return export_model(
        build_model(config),
        config,
        out,
        name or f"zh-electra-{size}-random",
        vocab=vocab_path(vocab),
        parent=None,
        step=None,
        corpus=None,
        onnx=onnx,
    )


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
    onnx: bool = False
    """Write model.onnx too; needs the extra: pip install -e '.[onnx]'."""


def main() -> None:
    """Entry point of ``python -m pretrain.export``."""
    given = tyro.cli(Arguments, prog="python -m pretrain.export")
    shared: Any = {"name": given.name, "vocab": given.vocab, "onnx": given.onnx}
    if given.random is not None and given.out is not None and given.run is None:
        folders = export_random(given.random, given.out, seed=given.seed, **shared)
    elif given.run is not None and given.random is None:
        folders = export_run(given.run, given.out, **shared)
    else:
        raise UserError("give a run folder, or --random SIZE with --out DIR")
    print(f"for transformers: {' and '.join(map(str, folders))}")


if __name__ == "__main__":
    run_cli(main)
