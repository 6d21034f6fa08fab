"""What the two networks think of a sentence: ``python -m pretrain.inspect MODEL "句子"``."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text
from transformers import AutoTokenizer, ElectraForMaskedLM, ElectraForPreTraining

from pretrain.quiet import quiet
from provenance import UserError, run_cli, write_text


@dataclass(frozen=True)
class Token:
    """One token: how likely it was replaced, and the best guess for its place; None where nobody says."""

    text: str
    replaced: float | None
    guess: str | None
    guess_probability: float | None


@dataclass(frozen=True)
class Arguments:
    """Show per token what the networks of a run think."""

    model: tyro.conf.Positional[Path]
    """Folder of a run, or a folder that it exported."""
    sentence: tyro.conf.Positional[str]
    """Chinese text."""
    html: Path | None = None
    """Also write this HTML file."""


def _network(folder: Path, names: tuple[str, ...], kind: Any) -> Any:
    """The first of ``names`` that lies in ``folder`` or beside it, or None."""
    places = (
        (folder / name for name in names) if not _exported(folder) else (folder.parent / n for n in names)
    )
    found = next((place for place in places if _exported(place)), None)
    return None if found is None else kind.from_pretrained(found).eval()


def _exported(folder: Path) -> bool:
    return (folder / "model.safetensors").is_file()


@torch.no_grad()
def inspect(folder: Path, sentence: str) -> list[Token]:
    """Tokens of ``sentence`` with the discriminator's probability of "replaced" (0 to 1).

    A generator, or the encoder of ``mlm``, guesses each token with that one masked.

    Raises:
        UserError: ``folder`` holds no exported network.
    """
    with quiet():
        discriminator = _network(folder, ("discriminator",), ElectraForPreTraining)
        filler = _network(folder, ("generator", "encoder"), ElectraForMaskedLM)
        some = discriminator or filler
        if some is None:
            raise UserError(
                f"{folder} holds no model.safetensors; give a folder that pretrain.train or export wrote"
            )
        tokenizer = AutoTokenizer.from_pretrained(some.name_or_path)
    ids = tokenizer(sentence, return_tensors="pt", truncation=True)["input_ids"]
    texts = tokenizer.convert_ids_to_tokens(ids[0].tolist())
    replaced: list[float | None] = [None] * len(texts)
    if discriminator is not None:
        replaced = discriminator(ids).logits[0].sigmoid().tolist()
    guesses: list[tuple[str | None, float | None]] = [(None, None)] * len(texts)
    if filler is not None:
        masked = ids.repeat(len(texts), 1).fill_diagonal_(tokenizer.mask_token_id)
        for at in range(1, len(texts) - 1):
            best = filler(masked[at : at + 1]).logits[0, at].softmax(-1).max(-1)
            guesses[at] = (str(tokenizer.convert_ids_to_tokens(int(best.indices))), float(best.values))
    return [
        Token(text, probability, *guess)
        for text, probability, guess in zip(texts, replaced, guesses, strict=True)
    ][1:-1]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def as_table(tokens: list[Token]) -> Table:
    """A table for the terminal; the redder, the more likely replaced."""
    table = Table("token", "replaced", "guess", "its probability")
    for token in tokens:
        red = round(255 * (token.replaced or 0))
        doubt = Text(_percent(token.replaced), f"rgb({red},{255 - red},60)")
        table.add_row(token.text, doubt, token.guess or "", _percent(token.guess_probability))
    return table


def as_html(sentence: str, tokens: list[Token]) -> str:
    """One page: tokens on a red ground as strong as the discriminator's doubt, the guess as a tooltip."""
    spans = []
    for token in tokens:
        notes = [] if token.replaced is None else [f"replaced {_percent(token.replaced)}"]
        if token.guess is not None:
            notes.append(f"guess {token.guess} {_percent(token.guess_probability)}")
        title = html.escape("; ".join(notes), quote=True)
        style = f"background: rgba(220, 40, 40, {token.replaced or 0:.3f})"
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
