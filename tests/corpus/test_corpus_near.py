"""Hashes of letters, MinHash: case 17, and planted near duplicates."""

import itertools
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corpus.duplicates import minhash
from corpus.hashing import code_points, letters_of, segment_hashes, slices, window_hashes

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "corpus" / "sample" / "zhwiki-sample.xml"
GRAM = 5


def shingle_set(text: str) -> set[str]:
    """Character 5-grams, written again without the code under test."""
    letters = re.sub(r"[\W_]+", "", text)
    return {letters[i : i + GRAM] for i in range(len(letters) - GRAM + 1)} or {letters}


def jaccard(one: str, other: str) -> float:
    a, b = shingle_set(one), shingle_set(other)
    return len(a & b) / len(a | b)


def edited(text: str, share: float, coin: random.Random, source: str) -> str:
    """``text`` with that share of its characters left out, replaced or followed by another."""
    out = []
    for character in text:
        if coin.random() >= share:
            out.append(character)
        else:
            new = coin.choice(source)
            out.append(coin.choice(["", new, character + new]))
    return "".join(out)


@pytest.fixture(scope="module")
def planted() -> list[tuple[str, str, float]]:
    """1,500 texts of 20 to 1,500 characters, each with an edited copy and their exact similarity."""
    source = "".join(re.findall("[\u4e00-\u9fff，。]", SAMPLE.read_text(encoding="utf-8")))
    coin = random.Random(17)
    pairs = []
    for share in itertools.islice(itertools.cycle([0.002, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.15]), 1500):
        size = coin.choice([20, 60, 150, 400, 1500])
        sentences = [
            source[(at := coin.randrange(len(source) - 15)) : at + 15] for _ in range(size // 15 + 1)
        ]
        text = "".join(sentences)[:size]
        copy = edited(text, share, coin, source)
        pairs.append((text, copy, jaccard(text, copy)))
    return pairs


def found(one: list[str], other: list[str], least: float = 0.7) -> np.ndarray:
    """Whether a band brings each pair together and its estimated similarity is high enough."""
    a, b = minhash.signatures(letters_of(one)), minhash.signatures(letters_of(other))
    bands = [slice(i * minhash.ROWS, (i + 1) * minhash.ROWS) for i in range(minhash.BANDS)]
    together = np.any([minhash.band_keys(a[band]) == minhash.band_keys(b[band]) for band in bands], axis=0)
    return together & (minhash.similarity(a, b) >= least)


def test_recall_and_false_merges(planted: list[tuple[str, str, float]]) -> None:
    """Of near duplicates planted at similarity 0.8 or more 95 % are found, at 0.5 or less 1 % at most."""
    hits = found([p[0] for p in planted], [p[1] for p in planted])
    exact = np.array([p[2] for p in planted])
    close, edge, far = exact >= 0.8, (exact >= 0.8) & (exact < 0.85), exact <= 0.5
    assert min(close.sum(), far.sum()) > 300
    assert edge.sum() > 30
    assert hits[close].mean() >= 0.95
    assert hits[edge].mean() >= 0.95
    assert hits[far].mean() <= 0.01


def test_estimate_is_unbiased(planted: list[tuple[str, str, float]]) -> None:
    """The error is that of the share of 80 independent draws: sqrt(J (1 - J) / 80)."""
    a, b = (minhash.signatures(letters_of([p[i] for p in planted])) for i in (0, 1))
    exact = np.array([p[2] for p in planted])
    error = minhash.similarity(a, b) - exact
    expected = np.sqrt((exact * (1 - exact) / minhash.HASHES).mean())
    assert abs(error.mean()) < 0.005
    assert 0.9 * expected < error.std() < 1.1 * expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("我喜欢健身", "我喜欢普洱茶", False),
        ("今天下雨。明天晴。", "今天下雨，明天晴", True),
        ("好", "坏", False),
        ("好", "好！", True),
        ("第①条", "第1条", False),  # no NFKC (case 13)
    ],
)
def test_short_texts(one: str, other: str, same: bool) -> None:
    """Case 17: a short text is one shingle."""
    assert found([one], [other])[0] == same
    hashes = segment_hashes(letters_of([one, other]))
    assert (hashes[0] == hashes[1]) == same


def test_a_text_hashes_alike_wherever_it_stands() -> None:
    texts = ["今天天气很好，我们去公园。", "", "好", "今天天气很好我们去公园"]
    hashes = segment_hashes(letters_of(texts))
    assert hashes[0] == hashes[3]
    assert len(set(hashes.tolist())) == 3
    assert hashes.tolist() == [int(segment_hashes(letters_of([text]))[0]) for text in texts]
    signed = minhash.signatures(letters_of(texts))
    for i, text in enumerate(texts):
        assert (signed[:, i] == minhash.signatures(letters_of([text]))[:, 0]).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_windows_equal_where_their_characters_are(size: int) -> None:
    text = "甲乙丙甲乙丙丁" * 5 + "戊甲乙"
    hashes = window_hashes(code_points(text), size).tolist()
    runs = [text[i : i + size] for i in range(len(text) - size + 1)]
    assert len(hashes) == len(runs)
    assert len(set(zip(runs, hashes, strict=True))) == len(set(runs)) == len(set(hashes))


def test_slices_cover_all() -> None:
    texts = ["甲" * n for n in (3, 5, 1, 1, 9)]
    assert list(slices(texts, 5)) == [slice(0, 2), slice(2, 5)]
    assert list(slices([], 5)) == [slice(0, 0)]


def test_another_process_gives_the_same() -> None:
    code = (
        "from corpus import hashing\n"
        "from corpus.duplicates import minhash\n"
        "letters = hashing.letters_of(['今天天气很好，我们去公园。', '好'])\n"
        "sums = minhash.signatures(letters).sum(axis=0, dtype='u8').tolist()\n"
        "print(sums, hashing.segment_hashes(letters).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    letters = letters_of(["今天天气很好，我们去公园。", "好"])
    sums = minhash.signatures(letters).sum(axis=0, dtype="u8").tolist()
    assert done.stdout.strip() == f"{sums} {segment_hashes(letters).tolist()}"
