"""The model card of an exported network."""

from __future__ import annotations

import json
from pathlib import Path

from transformers import PreTrainedModel

from pretrain.config import PretrainConfig
from provenance import plain

CURVE_ROWS = 12
CURVE = {
    "step": "{:,}",
    "tokens": "{:,}",
    "loss": "{:.2f}",
    "generator_loss": "{:.3f}",
    "encoder_loss": "{:.3f}",
    "discriminator_loss": "{:.4f}",
    "fake_entropy": "{:.4f}",
}
USE = {
    "discriminator": "Fine-tune it on Chinese classification or reading comprehension. Its own head says of "
    "each token how likely it was replaced.",
    "generator": "It fills in [MASK] and is what the discriminator was trained against. Fine-tune the "
    "discriminator, not this.",
    "encoder": "Fine-tune it on Chinese classification or reading comprehension. Its own head says "
    "which token belongs to a place.",
}
TITLE = {
    "discriminator": "An ELECTRA discriminator",
    "generator": "An ELECTRA generator",
    "encoder": "A masked language model of ELECTRA's shape",
}


def encoder_parameters(network: PreTrainedModel) -> int:
    """Parameters of the encoder with its embeddings, without the head."""
    return sum(p.numel() for p in network.base_model.parameters())


def _shown(form: str, name: str, entry: dict[str, float | None]) -> str:
    """What a table says of an entry that a stage of the run may not have."""
    value = entry.get(name)
    return form.format(value) if value is not None else "not finite" if name in entry else ""


def curve(run: Path) -> str:
    """A dozen lines of the run's log as a Markdown table; empty where there is no log."""
    log = run / "log.jsonl"
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    entries = [json.loads(line) for line in text.split("\n") if line.endswith("}")]
    if not entries:
        return ""
    columns = {name: form for name, form in CURVE.items() if name in entries[-1]}
    shown = [*entries[: -1 : max(1, -(-len(entries) // CURVE_ROWS))], entries[-1]]
    lines = [
        "| " + " | ".join(name.replace("_", " ") for name in columns) + " |",
        "|---:" * len(columns) + "|",
    ]
    lines += [
        "| " + " | ".join(_shown(form, name, entry) for name, form in columns.items()) + " |"
        for entry in shown
    ]
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

{TITLE[part]} for Chinese, written by zh-electra. Parameters of the encoder with its embeddings:
{encoder_parameters(network):,}. {trained}

## Intended use

{USE[part]} Text is lower-cased; the vocabulary is BERT-Chinese's 21,128 entries. The model reflects
whatever its training text holds; it is not meant to generate text or to decide about people.

## Data

{data}

## Configuration

{settings}
{curves}"""
