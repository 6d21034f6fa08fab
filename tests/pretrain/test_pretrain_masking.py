"""Masking: cases 36 to 39 and 54."""

import numpy as np
import pytest

from corpus.vocab import CLS, MASK, PAD, SEP, UNK
from pretrain.masking import (
    BERT_HIDING,
    candidates,
    choose_ngrams,
    choose_tokens,
    choose_words,
    hide,
    masked_count,
)


def rows(count: int, tokens: int, length: int = 128) -> np.ndarray:
    out = np.full((count, length), PAD)
    out[:, :tokens] = np.arange(1000, 1000 + tokens)
    out[:, 0], out[:, tokens - 1] = CLS, SEP
    return out


def test_hidden_share_is_85_percent_and_nothing_is_random():
    """Case 36: over 100,000 chosen positions 0.85 ± 0.005 are [MASK], the rest unchanged, no third kind."""
    original = np.arange(1000, 101_000)[None]
    hidden = hide(original, np.ones_like(original, bool), np.random.default_rng(0).random((1, 100_000)))
    masked = hidden == MASK
    assert masked.mean() == pytest.approx(0.85, abs=0.005)
    assert (hidden[~masked] == original[~masked]).all()


def test_hiding_as_bert_has_it():
    """Devlin et al. 2019: of the chosen 80 % [MASK], 10 % any id of the vocabulary, 10 % as they are."""
    original = np.full((1, 200_000), 700)
    scores = np.random.default_rng(0).random(original.shape, dtype=np.float32)
    hidden = hide(original, np.ones_like(original, bool), scores, BERT_HIDING)
    assert (hidden == MASK).mean() == pytest.approx(0.8, abs=0.005)
    assert (hidden == 700).mean() == pytest.approx(0.1, abs=0.005)
    drawn = hidden[(hidden != MASK) & (hidden != 700)]
    assert drawn.min() < 100 < 21_000 < drawn.max() < 21_128
    assert drawn.mean() == pytest.approx(21_127 / 2, rel=0.02)
    assert len(np.unique(drawn)) > 0.55 * 21_128  # 20,000 uniform draws meet 1 - exp(-20/21.1) = 61 %


@pytest.mark.parametrize(
    ("tokens", "length", "expected"),
    [(5, 128, 1), (10, 128, 2), (100, 128, 15), (110, 128, 16), (128, 128, 19), (512, 512, 77)],
)
def test_how_many(tokens, length, expected):
    """Case 37: round half to even, at most int(0.155 · length)."""
    assert masked_count(tokens, length) == expected


@pytest.mark.parametrize(("length", "fraction", "cap"), [(128, 0.15, 19), (256, 0.15, 39), (512, 0.25, 130)])
def test_cap(length, fraction, cap):
    """Case 37: the cap itself."""
    assert masked_count(10 * length, length, fraction) == cap


def test_candidates_leave_out_special_tokens_only():
    """Case 38: [UNK] may be chosen; [CLS], [SEP], [MASK] and padding may not."""
    ids = np.array([[CLS, UNK, 700, MASK, SEP, PAD]])
    assert candidates(ids).tolist() == [[False, True, True, False, False, False]]


def test_without_replacement_and_exact_counts():
    """Case 39: 19 distinct positions of a full row, 16 of 110 tokens, all of them candidates."""
    random = np.random.default_rng(1)
    for tokens, expected in ((128, 19), (110, 16), (10, 2), (3, 1)):
        ids = rows(50, tokens)
        chosen = choose_tokens(ids, random.random(ids.shape), 128, 0.15)
        assert (chosen.sum(axis=1) == expected).all()
        assert not (chosen & ~candidates(ids)).any()


def test_every_candidate_is_equally_likely():
    """Case 39: over many draws each of 20 candidates is chosen 3/20 of the time."""
    ids = rows(20_000, 22, 24)
    chosen = choose_tokens(ids, np.random.default_rng(2).random(ids.shape), 128, 0.15)
    assert chosen[:, 1:21].mean(axis=0) == pytest.approx(np.full(20, 3 / 20), abs=0.012)


def test_whole_words():
    """Case 37 for words: no word is cut, the count is never exceeded, and nearly always reached."""
    random = np.random.default_rng(3)
    ids = rows(50, 128)
    starts = random.random(ids.shape) < 0.6
    chosen = choose_words(ids, random.random(ids.shape), 128, 0.15, starts)
    assert (chosen.sum(axis=1) <= 19).all()
    assert chosen.sum(axis=1).mean() > 18.5
    inside = ~starts[:, 2:127]  # a token that continues the word before it shares its fate
    assert (chosen[:, 2:127] == chosen[:, 1:126])[inside].all()


def test_ngrams_are_spans_of_whole_words():
    """40, 30, 20 and 10 % of 1 to 4 words, in rows so long that spans hardly touch; no word is cut."""
    random = np.random.default_rng(4)
    ids = rows(40, 20_000, 20_000)
    starts = random.random(ids.shape) < 0.6
    chosen = choose_ngrams(ids, random.random(ids.shape, dtype=np.float32), 20_000, 0.02, starts)
    inside = ~starts[:, 2:19_999]
    assert (chosen[:, 2:19_999] == chosen[:, 1:19_998])[inside].all()
    assert (chosen.sum(axis=1) <= 400).all()
    assert chosen.sum(axis=1).mean() > 399
    sizes = []
    for row, begins in zip(chosen, starts, strict=True):
        edges = np.flatnonzero(np.diff(row.astype(int)))
        sizes += [1 + begins[a + 2 : b + 1].sum() for a, b in zip(edges[::2], edges[1::2], strict=True)]
    share = np.bincount(sizes, minlength=9)[1:] / len(sizes)
    assert share[:4] == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.03)
    assert share[4:].sum() < 0.04  # two that touch


def test_ngrams_stop_at_special_tokens():
    """No span reaches over [SEP] into the next text, and every word is as likely to be the first."""
    ids = np.tile([CLS, 700, 701, SEP, 702, 703, SEP], (4000, 1))
    starts = np.ones(ids.shape, dtype=bool)
    scores = np.random.default_rng(5).random(ids.shape, dtype=np.float32)
    chosen = choose_ngrams(ids, scores, 7, 0.3, starts)
    assert (chosen.sum(axis=1) == 2).all()
    both = chosen[:, 2] & chosen[:, 4]
    # 701 and 702 together only as two spans: 701 first, then 702, or the other way round.
    assert both.mean() == pytest.approx(0.25 * (1 / 3 + 0.4 / 3), abs=0.02)
    assert not chosen[:, [0, 3, 6]].any()


def test_one_long_word_is_still_masked():
    """A row that is one word longer than the count is masked whole rather than not at all."""
    ids = rows(1, 20)
    chosen = choose_words(
        ids, np.random.default_rng(0).random(ids.shape), 128, 0.15, np.zeros(ids.shape, bool)
    )
    assert chosen.sum() == 18


def test_row_without_candidates():
    """Case 54: [CLS][SEP] alone has nothing to choose and breaks nothing."""
    ids = np.array([[CLS, SEP, PAD]])
    scores = np.zeros(ids.shape)
    assert not choose_tokens(ids, scores, 128, 0.15).any()
    assert not choose_words(ids, scores, 128, 0.15, ids > 0).any()
    assert not choose_ngrams(ids, scores, 128, 0.15, ids > 0).any()
