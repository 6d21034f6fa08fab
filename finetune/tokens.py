"""Texts into input rows: a model's own tokenizer and the special tokens that it puts around them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import transformers

from finetune.cache import cached, content_key
from finetune.folder import locate, quiet, read_config
from provenance import UserError

# One character for one, so that offsets stay; the ellipsis has no such counterpart.
QUOTES = str.maketrans("“”‘’—", "\"\"''-")
PADDED_VOCABULARY = 128  # some models round their embedding table up to a multiple of this


@dataclass(frozen=True)
class Tokens:
    """The tokens of one text: ids, and the character positions (start, end) of each; all int64, (tokens,)."""

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


@dataclass(frozen=True)
class Encoder:
    """A model's tokenizer with the special tokens it puts around one text (A) and around two (A, B).

    ``single`` holds the ids before and after A; ``pair`` those before A, between A and B, and after B.
    ``types`` are the token types of those three places and of A and B: before, A, between, B, after.
    ``map_quotes``: read a text through :data:`QUOTES`. ``cache``: folder where tokens are kept, or None.
    """

    tokenizer: Any
    single: tuple[tuple[int, ...], tuple[int, ...]]
    pair: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    types: tuple[int, int, int, int, int]
    pad: int
    map_quotes: bool = False
    cache: Path | None = None

    def encode(self, texts: list[str]) -> list[Any]:
        """Encodings without special tokens; their ``offsets`` are character positions in the text."""
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = True  # a written [SEP] is text, and divides nothing
        backend.no_truncation()
        backend.no_padding()
        if self.map_quotes:
            texts = [text.translate(QUOTES) for text in texts]
        return backend.encode_batch(texts, add_special_tokens=False)

    def tokens(self, texts: list[str]) -> list[Tokens]:
        """What :meth:`encode` finds, as arrays, without special tokens; from the cache where it has them.

        They are kept as the tokenizer gave them, uncut: no length or window takes part in the key, which is
        over the texts, the tokenizer with all its settings and the library's version.
        """

        def make() -> dict[str, np.ndarray]:
            encodings = self.encode(texts)
            ids = [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]
            offsets = [np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2) for encoding in encodings]
            return {
                "ids": np.concatenate([np.empty(0, np.int32), *ids]),
                "offsets": np.concatenate([np.empty((0, 2), np.int32), *offsets]),
                "bounds": np.cumsum([0, *map(len, ids)]),
            }

        key = ""
        if self.cache is not None:
            backend = self.tokenizer.backend_tokenizer
            backend.no_truncation()
            backend.no_padding()
            key = content_key([tokenizers.__version__, backend.to_str(), str(self.map_quotes), *texts])
        kept = cached(self.cache, key, make)
        ids, offsets, bounds = kept["ids"].astype(np.int64), kept["offsets"].astype(np.int64), kept["bounds"]
        return [
            Tokens(ids[first:last], offsets[first:last, 0], offsets[first:last, 1])
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]

    def join(self, a: np.ndarray, b: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Ids and token types of one input row, special tokens put in; both int64 of the same length."""
        before, in_a, between, in_b, after = self.types
        if b is None:
            parts: list[tuple[Any, int]] = [(self.single[0], before), (a, in_a), (self.single[1], in_a)]
        else:
            parts = [
                (self.pair[0], before),
                (a, in_a),
                (self.pair[1], between),
                (b, in_b),
                (self.pair[2], after),
            ]
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part, _ in parts])
        types = np.repeat([kind for _, kind in parts], [len(part) for part, _ in parts])
        return ids, types.astype(np.int64)


def _frame(backend: Any) -> dict[str, Any]:
    """Which special tokens the tokenizer adds and where, read off two encodings of its own."""

    def runs(encoding: Any) -> list[tuple[bool, list[int], list[int]]]:
        found: list[tuple[bool, list[int], list[int]]] = []
        for token, kind, special in zip(
            encoding.ids, encoding.type_ids, encoding.special_tokens_mask, strict=True
        ):
            if not found or found[-1][0] != bool(special):
                found.append((bool(special), [], []))
            found[-1][1].append(token)
            found[-1][2].append(kind)
        return found

    backend.no_truncation()
    backend.no_padding()
    one, two = runs(backend.encode("1")), runs(backend.encode("1", "1"))
    if [special for special, *_ in one] != [True, False, True] or len(two) != 5:
        raise ValueError("it does not put special tokens around and between texts")
    return {
        "single": (tuple(one[0][1]), tuple(one[2][1])),
        "pair": (tuple(two[0][1]), tuple(two[2][1]), tuple(two[4][1])),
        "types": tuple(kinds[0] for _, _, kinds in two),
    }


def load_encoder(model: str | Path, *, map_quotes: bool = False, cache: Path | None = None) -> Encoder:
    """The model's own tokenizer (``tokenizer.json`` or ``vocab.txt``).

    ``cache`` is a folder where the tokens of texts are kept.

    Raises:
        UserError: there is none, or its vocabulary does not fit the embedding table.
    """
    folder = locate(model)
    size = read_config(folder).vocab_size
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # each tokenizer class fails in its own way
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"{folder} has no usable tokenizer ({reason}); put its vocab.txt there") from None
    if not size - PADDED_VOCABULARY < len(tokenizer) <= size:
        raise UserError(
            f"the tokenizer in {folder} has {len(tokenizer)} entries but the model {size}; "
            "put the vocabulary there that the model was trained with"
        )
    try:
        frame = _frame(tokenizer.backend_tokenizer)
    except (AttributeError, ValueError) as error:
        raise UserError(f"the tokenizer in {folder} cannot be used ({error}); choose another model") from None
    return Encoder(tokenizer, pad=tokenizer.pad_token_id or 0, map_quotes=map_quotes, cache=cache, **frame)
