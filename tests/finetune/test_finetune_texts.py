"""Rows of one or two texts: token types, truncation, the same as the tokenizer makes."""

from __future__ import annotations

from collections import Counter

import pytest

from finetune import classify
from finetune.batches import model_inputs
from finetune.examples import TextExample
from finetune.tokens import Encoder


def test_token_types(encoder: Encoder) -> None:
    """1 for the second text and its [SEP], 0 on padding."""
    row = classify.encode([TextExample("1", "甲乙", "丙")], encoder, 10)[0]
    other = classify.encode([TextExample("2", "甲乙甲乙甲乙甲乙", None)], encoder, 10)[0]
    inputs = model_inputs([row, other], encoder.pad, 10, with_types=True)
    ids = dict(zip("甲乙丙", encoder.encode(["甲乙丙"])[0].ids, strict=True))
    expected = [101, ids["甲"], ids["乙"], 102, ids["丙"], 102, 0, 0, 0, 0]
    assert inputs["input_ids"][0].tolist() == expected
    assert inputs["token_type_ids"][0].tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert inputs["attention_mask"][0].tolist() == [1] * 6 + [0] * 4


def test_rows_equal_the_tokenizers_own(encoder: Encoder) -> None:
    """Ids and types of single texts and pairs as the transformers tokenizer gives them."""
    examples = [TextExample("1", "今天天气好", None), TextExample("2", "去吗？", "iPhone 好用吗")]
    rows = classify.encode(examples, encoder, 64)
    for example, (ids, types) in zip(examples, rows, strict=True):
        own = encoder.tokenizer(example.text_a, example.text_b)
        assert ids.tolist() == own["input_ids"]
        assert types.tolist() == own["token_type_ids"]


@pytest.mark.parametrize(
    ("a", "b", "budget", "kept"),
    [(10, 10, 5, (3, 2)), (2, 10, 6, (2, 4)), (10, 1, 6, (5, 1)), (3, 2, 9, (3, 2)), (5, 4, 8, (4, 4))],
)
def test_longest_text_is_cut_first(a: int, b: int, budget: int, kept: tuple[int, int]) -> None:
    """One token at a time from the longer, from B where they are equal (hand computed)."""
    assert classify.cut_pair(a, b, budget) == kept


def test_truncation_is_counted(encoder: Encoder) -> None:
    counts: Counter[str] = Counter()
    examples = [TextExample("1", "甲" * 30), TextExample("2", "甲" * 30, "乙" * 30), TextExample("3", "甲")]
    rows = classify.encode(examples, encoder, 20, counts)
    assert [len(ids) for ids, _ in rows] == [20, 20, 3]
    assert counts["truncated"] == 2
