"""What the two networks think of a sentence: ``python -m pretrain.inspect MODEL "句子"``."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text
from transformers import AutoTokenizer, ElectraForMaskedLM, ElectraForPreTraining

from pretrain.quiet import quiet
from pretrain.start import load_whole
from provenance import UserError, run_cli, write_text

NETWORKS = ("discriminator", "generator", "encoder")  # folders that an export writes
ROWS = 16  # of one forward pass that guesses as many tokens


@dataclass(frozen=True)
class Token:
    """One token: how likely it was replaced, and the best guess for its place; None where nobody says."""

    text: str
    """As the vocabulary has it."""
    replaced: float | None
    guess: str | None
    guess_probability: float | None
    written: str
    """As the sentence has it."""
    start: int
    """Where in the sentence, in characters."""


@dataclass(frozen=True)
class Arguments:
    """Show per token what the networks of a run think: how likely each token was replaced, and what would
    stand there if it were masked. Long text is read in windows of as many tokens as the networks take."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a run, or a folder that it exported."""
    sentence: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TEXT")]
    """Chinese text, simplified or traditional; a [MASK] in it is one."""
    html: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Also write this HTML file."""


def _kind(folder: Path) -> str | None:
    """The class of an exported network, None where ``folder`` holds none."""
    config = folder / "config.json"
    if not config.is_file():
        return None
    try:
        (kind,) = json.loads(config.read_text(encoding="utf-8"))["architectures"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{config} names no network ({error!r}); export again") from None
    return str(kind)


def find_networks(folder: Path) -> tuple[Path | None, Path | None]:
    """Folders of a discriminator and of a network that fills in, below a run or beside an exported one.

    Raises:
        UserError: there is neither.
    """
    places = [folder / name for name in NETWORKS]
    if own := _kind(folder):
        places = [folder] + [folder.parent / name for name in NETWORKS if folder.name in NETWORKS]
    kinds = {_kind(place): place for place in reversed(places)}  # of two of a kind the first one stays
    discriminator, filler = (kinds.get(kind.__name__) for kind in (ElectraForPreTraining, ElectraForMaskedLM))
    if discriminator is None and filler is None:
        if own:
            raise UserError(f"{folder} holds {own}; give an ELECTRA discriminator or generator")
        if (folder / "checkpoints").is_dir():
            raise UserError(
                f"{folder} is a run without an export; run python -m pretrain.export {folder} first"
            )
        raise UserError(
            f"{folder} holds no config.json and model.safetensors of a network; "
            "give a folder that pretrain.train or export wrote"
        )
    return discriminator, filler


def _fill_in(filler: Any, ids: torch.Tensor, at: Sequence[int], mask: int) -> list[tuple[int, float]]:
    """Likeliest id, and its probability, at each position of ``at`` of the row ``ids`` (tokens,) with that
    one masked. The output over the vocabulary is computed there alone."""
    found: list[tuple[int, float]] = []
    for first in range(0, len(at), ROWS):
        places = torch.tensor(at[first : first + ROWS])
        masked = ids.repeat(len(places), 1).scatter_(1, places.unsqueeze(1), mask)
        hidden = filler.electra(masked).last_hidden_state[torch.arange(len(places)), places]
        logits = filler.generator_lm_head(filler.generator_predictions(hidden))
        best = logits.softmax(-1).max(-1)
        found += zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return found


@torch.no_grad()
def inspect(folder: Path, sentence: str) -> list[Token]:
    """Tokens of ``sentence`` with the discriminator's probability of "replaced" (0 to 1).

    A generator, or the encoder of ``mlm``, guesses each token with that one masked. Windows of long text
    know nothing of each other.

    Raises:
        UserError: ``folder`` holds no exported network, one is damaged, or there is no text.
    """
    places = find_networks(folder)
    discriminator, filler = (
        None if place is None else load_whole(kind, str(place)).eval()
        for kind, place in zip((ElectraForPreTraining, ElectraForMaskedLM), places, strict=True)
    )
    some: Any = discriminator or filler
    with quiet():
        tokenizer: Any = AutoTokenizer.from_pretrained(some.name_or_path)
    if len(tokenizer) != some.config.vocab_size:
        raise UserError(
            f"{some.name_or_path} has no tokenizer of its {some.config.vocab_size} tokens; export again"
        )
    encoded = tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    ids, spans = encoded["input_ids"], encoded["offset_mapping"]
    if not ids:
        raise UserError("the text holds no token; give a sentence")
    room = some.config.max_position_embeddings - 2
    tokens: list[Token] = []
    windows = range(0, len(ids), room)
    for first in track(windows, "reading", transient=True, disable=len(ids) < room):
        window = ids[first : first + room]
        row = torch.tensor([tokenizer.cls_token_id, *window, tokenizer.sep_token_id])
        replaced: list[float | None] = [None] * len(window)
        if discriminator is not None:
            replaced = discriminator(row.unsqueeze(0)).logits[0, 1:-1].sigmoid().tolist()
        guesses: list[tuple[str | None, float | None]] = [(None, None)] * len(window)
        if filler is not None:
            found = _fill_in(filler, row, range(1, len(window) + 1), tokenizer.mask_token_id)
            guesses = [(str(tokenizer.convert_ids_to_tokens(best)), share) for best, share in found]
        texts = tokenizer.convert_ids_to_tokens(window)
        for text, probability, guess, (start, end) in zip(
            texts, replaced, guesses, spans[first : first + room], strict=True
        ):
            tokens.append(Token(text, probability, *guess, sentence[start:end], start))
    return tokens


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _colour(token: Token) -> str:
    """The redder, the more likely replaced."""
    if token.replaced is None:
        return ""
    red = round(255 * token.replaced)
    return f"rgb({red},{255 - red},60)"


def _pieces(sentence: str, tokens: Sequence[Token]) -> Iterator[tuple[str, Token | None]]:
    """The whole sentence in pieces: tokens, and what stands between them (None)."""
    at = 0
    for token in tokens:
        yield sentence[at : token.start], None
        yield token.written, token
        at = token.start + len(token.written)
    yield sentence[at:], None


def as_text(sentence: str, tokens: Sequence[Token]) -> Text:
    """The sentence in colours of doubt."""
    return Text.assemble(*((piece, _colour(t) if t else "") for piece, t in _pieces(sentence, tokens)))


def as_table(tokens: Sequence[Token]) -> Table:
    """A table for the terminal, a line a token; columns that nobody filled are left out."""
    judged, guessed = (
        any(getattr(token, name) is not None for token in tokens) for name in ("replaced", "guess")
    )
    table = Table()
    for name in ["token", *["replaced"] * judged, *["guess", "probability"] * guessed]:
        table.add_column(name, no_wrap=True)
    for token in tokens:
        unknown = f" {token.written}" * (token.text == "[UNK]")
        cells = [Text(token.text + unknown)]
        cells += [Text(_percent(token.replaced), _colour(token))] * judged
        cells += [Text(token.guess or ""), Text(_percent(token.guess_probability))] * guessed
        table.add_row(*cells)
    return table


def as_html(sentence: str, tokens: Sequence[Token]) -> str:
    """One page: the sentence on a red ground as strong as the discriminator's doubt, and the guess above a
    token where it is another; numbers when one points at it."""
    parts = []
    for piece, token in _pieces(sentence, tokens):
        text = html.escape(piece)
        if token is not None:
            notes = [] if token.replaced is None else [f"replaced {_percent(token.replaced)}"]
            if token.guess is not None:
                notes.append(f"guess {token.guess} {_percent(token.guess_probability)}")
            title = html.escape("; ".join(notes), quote=True)
            style = f"background: rgba(220, 40, 40, {token.replaced or 0:.3f})"
            text = f'<span title="{title}" style="{style}">{text}</span>'
            if token.guess not in (None, token.text):
                text = f"<ruby>{text}<rt>{html.escape(str(token.guess))}</rt></ruby>"
        parts.append(text)
    return (
        '<!doctype html>\n<html lang="zh">\n<meta charset="utf-8">\n<title>ELECTRA</title>\n'
        "<style>body { font: 1.5em/2 sans-serif; margin: 2em } p { white-space: pre-wrap } "
        "rt { color: gray }</style>\n"
        f"<p>{''.join(parts)}</p>\n</html>\n"
    )


def main() -> None:
    """Entry point of ``python -m pretrain.inspect``."""
    given = tyro.cli(Arguments, prog="python -m pretrain.inspect")
    if given.html is not None and given.html.is_dir():
        raise UserError(f"{given.html} is a folder; give a file with --html")
    sentence = given.sentence.encode("utf-8", "ignore").decode("utf-8")  # without bytes that are no character
    tokens = inspect(given.model, sentence)
    console = Console(highlight=False)
    console.print(as_text(sentence, tokens), soft_wrap=True)
    console.print(as_table(tokens))
    if given.html is not None:
        write_text(given.html, as_html(sentence, tokens))
        console.print(f"written to {given.html}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    run_cli(main)
