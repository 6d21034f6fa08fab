"""How well do counts of neighbours predict a hidden token? ``bigrams.py CORPUS [TOKENS ...]``.

A peer for a young generator: the mean of p(token | left) and p(token | right), each smoothed with the
unigrams, counted over rows of a corpus and scored on 200 held-out rows, in nats a token.
"""

import itertools
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from corpus.vocab import CLS, SEP, VOCAB_SIZE
from pretrain.data import open_corpus

SMOOTHING = 20  # weight of the unigrams, in occurrences
SEEN = 0.3  # share of the pairs that is counted, as many as are predicted where 30 % of the tokens are hidden


def main(corpus: Path, budgets: list[int]) -> None:
    rows, heldout, _ = open_corpus(corpus, 128, verify=False)
    rng = np.random.default_rng(0)
    unigrams = np.full(VOCAB_SIZE, 1e-3)
    after, before = defaultdict(Counter), defaultdict(Counter)
    order, read = iter(rng.permutation(len(rows))), 0
    for budget in sorted(budgets):
        while read < budget:
            row = rows.column("input_ids", int(next(order)))
            read += len(row)
            np.add.at(unigrams, row, 1)
            for left, right in itertools.pairwise(row):
                if rng.random() < SEEN:
                    after[left][right] += 1
                if rng.random() < SEEN:
                    before[right][left] += 1
        shares = unigrams / unigrams.sum()
        alone, both = [], []
        for index in range(200):
            row = heldout.column("input_ids", index)
            for left, token, right in zip(row[:-2], row[1:-1], row[2:], strict=True):
                if token in (CLS, SEP):
                    continue
                sides = [
                    (counts[token] + SMOOTHING * shares[token]) / (counts.total() + SMOOTHING)
                    for counts in (after[left], before[right])
                ]
                alone.append(-np.log(shares[token]))
                both.append(-np.log(np.mean(sides)))
        print(f"{read:,} tokens: unigrams {np.mean(alone):.2f} nats, neighbours {np.mean(both):.2f} nats")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(word) for word in sys.argv[2:]] or [400_000, 2_500_000])
