"""Tokens that are kept: never stale, never a damaged one, and the same features as without."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from finetune import classify, span
from finetune.cache import cached, content_key
from finetune.config import FinetuneConfig
from finetune.examples import SpanExample, TextExample
from finetune.tokens import load_encoder

CONFIG = FinetuneConfig(1e-3, max_length=24, window_step=6, max_question_length=8)
PAIRS = [TextExample("1", "云山云山云山云山云山", "好好好好好好好好"), TextExample("2", "ab1年", None)]
QUESTION = SpanExample("q", "几年？", "云山2008年雨水好云山云山云山好雨水", ("2008",), 2)


def features(model: Path, cache: Path | None, config: FinetuneConfig, **options: bool) -> list:
    """Input rows of both kinds, and what belongs to the windows."""
    encoder = load_encoder(model, cache=cache, **options)
    rows = classify.encode(PAIRS, encoder, config.max_length)
    found = span.encode([QUESTION], encoder, config, training=True, counts=Counter())
    rows += [window.row for window in found.windows]
    context = found.contexts[0]
    rows += [(context.starts, context.ends)]
    targets = [window.target for window in found.windows]
    return [[part.tolist() for part in row] for row in rows] + [targets]


def test_kept_tokens_give_the_same_features_at_every_length(tiny_model: Path, tmp_path: Path) -> None:
    """Case 67: another length, stride, tokenizer setting or text never meets what was kept for the first."""
    other = [CONFIG, replace(CONFIG, max_length=16), replace(CONFIG, window_step=3)]
    for config in other + other:  # the second time all is in the cache
        for mapped in (False, True):
            kept = features(tiny_model, tmp_path, config, map_quotes=mapped)
            assert kept == features(tiny_model, None, config, map_quotes=mapped)
    assert features(tiny_model, tmp_path, other[0]) != features(tiny_model, tmp_path, other[1])


def test_what_is_kept_is_read(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time no text is tokenized; other texts are."""
    first = features(tiny_model, tmp_path, CONFIG)
    calls: list[list[str]] = []
    make = type(load_encoder(tiny_model)).encode
    monkeypatch.setattr(
        "finetune.tokens.Encoder.encode", lambda self, texts: calls.append(texts) or make(self, texts)
    )
    assert features(tiny_model, tmp_path, CONFIG) == first
    assert calls == []
    load_encoder(tiny_model, cache=tmp_path).tokens(["云", "山"])
    load_encoder(tiny_model, cache=tmp_path).tokens(["云山"])
    assert calls == [["云", "山"], ["云山"]]


def test_the_tokenizer_is_part_of_the_key(tiny_model: Path, tmp_path: Path) -> None:
    encoder = load_encoder(tiny_model, cache=tmp_path)
    before = encoder.tokens(["山水"])[0].ids.tolist()
    encoder.tokenizer.add_tokens(["山水"])
    assert len(encoder.tokens(["山水"])[0].ids) == 1 != len(before)


def test_damaged_and_unwritable_caches_cost_time_only(tmp_path: Path) -> None:
    arrays = {"ids": np.arange(5)}
    for damage in (b"", b"no archive", None):
        made = cached(tmp_path / "a", "key", lambda: arrays)
        file = tmp_path / "a" / "key.npz"
        content = bytearray(file.read_bytes())
        content[content.index(np.arange(5).tobytes())] ^= 1  # one bit of an array
        file.write_bytes(content if damage is None else damage)
        assert made["ids"].tolist() == cached(tmp_path / "a", "key", lambda: arrays)["ids"].tolist()
        assert cached(tmp_path / "a", "key", dict)["ids"].tolist() == [0, 1, 2, 3, 4]  # mended
    (tmp_path / "file").write_text("")
    assert cached(tmp_path / "file" / "b", "key", lambda: arrays) is arrays


def test_texts_of_a_key_are_told_apart() -> None:
    """“ab”, “c” is not “a”, “bc”; the sha256 is that of `1:a2:bc` by sha256sum."""
    assert content_key(["ab", "c"]) != content_key(["a", "bc"])
    assert content_key(["a", "bc"]) == "5310a58788781ab25d5ad7c3f85035824b4eb7bdfa394e0ac2186271472b5492"
    assert content_key(["\ud800"]) != content_key(["?"])
