"""WordPiece ids of Chinese text at many times the speed of ``tokenizers``, whose ids they equal.

Almost every token of Chinese text is one character that stands alone whatever is around it: Han, punctuation.
Its id is a table lookup. Only the runs between such characters and white space (Latin words, numbers, kana)
are left to the reference tokenizer, each distinct run once. Nothing of Unicode is known here: what each
character does is asked of the reference when it is met for the first time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from corpus.vocab import UNK, fast_tokenizer, load_vocab
from provenance import UserError

RUNS = 200_000  # distinct runs remembered, at most; then all are forgotten
_UNSEEN, _SPACE, _RUN = -3, -2, -1  # what a character that is no token by itself is


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text.

    Attributes:
        ids: uint16 (tokens,).
        offsets: int64 (tokens,): each token's first character in the text.
        ends: int64 (tokens,): the character behind its last.
    """

    ids: np.ndarray
    offsets: np.ndarray
    ends: np.ndarray

    def unknown(self, text: str) -> Counter[str]:
        """How often each character or word of ``text``, whose tokens these are, became [UNK]."""
        places = self.ids == UNK
        spans = zip(self.offsets[places].tolist(), self.ends[places].tolist(), strict=True)
        return Counter(text[start:end] for start, end in spans)


def reference_encode(reference: Tokenizer, text: str) -> Tokens:
    """The tokens that ``tokenizers`` itself gives."""
    encoding = reference.encode(text, add_special_tokens=False)
    spans = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    return Tokens(np.array(encoding.ids, dtype=np.uint16), spans[:, 0], spans[:, 1])


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """int64 (sum of sizes,): ``starts[0]``, ``starts[0] + 1``, ... for ``sizes[0]`` numbers, and so on."""
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum(), dtype=np.int64) + np.repeat(starts - before, sizes)


class WordPiece:
    """An encoder with the characters and runs it has met so far.

    Args:
        vocab: verified vocab.txt.
    """

    def __init__(self, vocab: Path) -> None:
        self.reference = fast_tokenizer(vocab)
        self._continues = np.array([entry.startswith("##") for entry in load_vocab(vocab)])
        self._table = np.full(0x110000, _UNSEEN, dtype=np.int32)  # of each code point: id, or one of three
        self._forget()

    def _forget(self) -> None:
        self._runs: dict[str, int] = {}
        self._first = np.zeros(1, dtype=np.int64)  # first of the tokens below of each run, and their number
        self._tokens = Tokens(np.empty(0, dtype=np.uint16), *np.empty((2, 0), dtype=np.int64))

    def _learn_characters(self, codes: np.ndarray) -> None:
        """Ask the reference what new characters do, each between two letters."""
        alone = self.reference.encode("a a", add_special_tokens=False).ids
        encodings = self.reference.encode_batch([f"a{chr(c)}a" for c in codes], add_special_tokens=False)
        for code, encoding in zip(codes.tolist(), encodings, strict=True):
            ids, offsets = encoding.ids, encoding.offsets
            stands_alone = offsets == [(0, 1), (1, 2), (2, 3)] and [ids[0], ids[2]] == alone
            if ids == alone:
                self._table[code] = _SPACE
            elif stands_alone and not self._continues[ids[1]]:
                self._table[code] = ids[1]
            else:
                self._table[code] = _RUN

    def _learn_runs(self, runs: set[str]) -> None:
        new = sorted(runs - self._runs.keys())
        if len(self._runs) + len(new) > RUNS:
            self._forget()
            new = sorted(runs)
        self._runs.update(zip(new, range(len(self._runs), len(self._runs) + len(new)), strict=True))
        found = reference_encode(self.reference, " ".join(new))
        ends = np.cumsum([len(run) + 1 for run in new], dtype=np.int64)
        begins = np.concatenate([[0], ends[:-1]])
        last = np.searchsorted(found.offsets, ends)
        self._first = np.concatenate([self._first, self._first[-1] + last])
        begin = np.repeat(begins, np.diff(last, prepend=0))
        old = self._tokens
        self._tokens = Tokens(
            np.concatenate([old.ids, found.ids]),
            np.concatenate([old.offsets, found.offsets - begin]),
            np.concatenate([old.ends, found.ends - begin]),
        )

    def _characters(self, text: str) -> np.ndarray:
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        kinds = self._table[codes]
        unseen = np.unique(codes[kinds == _UNSEEN])
        if len(unseen):
            self._learn_characters(unseen)
            kinds = self._table[codes]
        return kinds

    def encode(self, text: str) -> Tokens:
        """The tokens of ``text``, equal to the reference's."""
        kinds = self._characters(text)
        starts, ends = _runs(kinds)
        runs = [text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        distinct = set(runs)
        if not distinct <= self._runs.keys():
            self._learn_runs(distinct)
        index = np.fromiter(map(self._runs.__getitem__, runs), dtype=np.int64, count=len(runs))
        first = self._first[index]
        sizes = self._first[index + 1] - first

        # tokens that each character holds: one if it stands alone, all of a run where one starts
        held = (kinds >= 0).astype(np.int64)
        held[starts] = sizes
        places = np.flatnonzero(held)
        offsets = np.repeat(places, held[places])
        ends = offsets + 1
        ids = kinds[offsets]
        inside = np.flatnonzero(ids == _RUN)
        source = ranges(first, sizes)
        ids[inside] = self._tokens.ids[source]
        ends[inside] = offsets[inside] + self._tokens.ends[source]
        offsets[inside] += self._tokens.offsets[source]
        return Tokens(ids.astype(np.uint16), offsets, ends)

    def check(self, text: str) -> None:
        """Raises UserError where ``tokenizers`` gives ``text`` other tokens."""
        expected, found = reference_encode(self.reference, text), self.encode(text)
        if np.array_equal(expected.ids, found.ids) and np.array_equal(expected.offsets, found.offsets):
            return
        size = min(len(expected.ids), len(found.ids))
        same = (expected.ids[:size] == found.ids[:size]) & (expected.offsets[:size] == found.offsets[:size])
        where = int(np.argmin(same)) if not same.all() else size - 1
        place = int(expected.offsets[where]) if size else 0
        raise UserError(
            f"the fast tokenizer differs from tokenizers at {text[max(0, place - 10) : place + 20]!r}; "
            "run again with --tokenizer reference, and please report this text"
        )


def _runs(kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First character and end of every stretch of ``_RUN``."""
    edges = np.diff((kinds == _RUN).astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
