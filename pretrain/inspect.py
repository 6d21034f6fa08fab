"""What the two networks think of a sentence: ``python -m pretrain.inspect MODEL "句子"``."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text
from transformers import AutoTokenizer, ElectraForMaskedLM, ElectraForPreTraining

from pretrain.export import quiet_transformers
from provenance import UserError, run_cli, write_text


@dataclass(frozen=True)
class Token:
    """One token: how likely it was replaced, and the generator's guess for its place, if there is one."""

    text: str
    replaced: float
    guess: str | None
    guess_probability: float | None


@dataclass(frozen=True)
class Arguments:
    """Show per token what the discriminator and the generator think."""

    model: tyro.conf.Positional[Path]
    """Folder of a run, or the discriminator folder in it."""
    sentence: tyro.conf.Positional[str]
    """Chinese text."""
    html: Path | None = None
    """Also write this HTML file."""


@torch.no_grad()
def inspect(folder: Path, sentence: str) -> list[Token]:
    """Tokens of ``sentence`` with the discriminator's probability of "replaced" (0 to 1).

    Where a generator lies beside the discriminator, it guesses each token with that one masked.

    Raises:
        UserError: ``folder`` holds no discriminator.
    """
    folder = folder / "discriminator" if (folder / "discriminator").is_dir() else folder
    if not (folder / "model.safetensors").is_file():
        raise UserError(
            f"{folder} holds no model.safetensors; give a folder that pretrain.train or export wrote"
        )
    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        discriminator = ElectraForPreTraining.from_pretrained(folder).eval()
        other = folder.parent / "generator"
        generator = ElectraForMaskedLM.from_pretrained(other).eval() if other.is_dir() else None
    ids = tokenizer(sentence, return_tensors="pt", truncation=True)["input_ids"]
    probabilities = discriminator(ids).logits[0].sigmoid().tolist()
    texts = tokenizer.convert_ids_to_tokens(ids[0].tolist())
    guesses: list[tuple[str | None, float | None]] = [(None, None)] * len(texts)
    if generator is not None:
        masked = ids.repeat(len(texts), 1).fill_diagonal_(tokenizer.mask_token_id)
        for at in range(1, len(texts) - 1):
            best = generator(masked[at : at + 1]).logits[0, at].softmax(-1).max(-1)
            guesses[at] = (str(tokenizer.convert_ids_to_tokens(int(best.indices))), float(best.values))
    return [
        Token(text, probability, *guess)
        for text, probability, guess in zip(texts, probabilities, guesses, strict=True)
    ][1:-1]


def as_table(tokens: list[Token]) -> Table:
    """A table for the terminal; the redder, the more likely replaced."""
    table = Table("token", "replaced", "generator's guess", "its probability")
    for token in tokens:
        red = round(255 * token.replaced)
        colour = f"rgb({red},{255 - red},60)"
        guess = "" if token.guess is None else token.guess
        share = "" if token.guess_probability is None else f"{100 * token.guess_probability:.1f} %"
        table.add_row(token.text, Text(f"{100 * token.replaced:.1f} %", colour), guess, share)
    return table


def as_html(sentence: str, tokens: list[Token]) -> str:
    """One page: tokens on a red ground as strong as the discriminator's doubt, the guess as a tooltip."""
    spans = []
    for token in tokens:
        share = 100 * (token.guess_probability or 0)
        guess = "" if token.guess is None else f"; guess {token.guess} {share:.1f} %"
        title = html.escape(f"replaced {100 * token.replaced:.1f} %{guess}", quote=True)
        style = f"background: rgba(220, 40, 40, {token.replaced:.3f})"
        spans.append(f'<span title="{title}" style="{style}">{html.escape(token.text)}</span>')
    return (
        '<!doctype html>\n<html lang="zh"><meta charset="utf-8"><title>ELECTRA</title>\n'
        "<style>body { font: 1.5em/2 sans-serif; margin: 2em } span { padding: .1em }</style>\n"
        f"<p>{html.escape(sentence)}</p>\n<p>{''.join(spans)}</p>\n</html>\n"
    )


def main() -> None:
    """Entry point of ``python -m pretrain.inspect``."""
    given = tyro.cli(Arguments, prog="python -m pretrain.inspect")
    tokens = inspect(given.model, given.sentence)
    Console().print(as_table(tokens))
    if given.html is not None:
        write_text(given.html, as_html(given.sentence, tokens))
        print(f"written to {given.html}")


if __name__ == "__main__":
    run_cli(main)
