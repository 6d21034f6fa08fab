"""Statistics over seeds: summaries, intervals, paired tests. All scores are in percent.

The maximum over n seeds grows with n (it lies 1.54 standard deviations over the mean for 10 normal scores),
and a maximum on test is chosen on test. So a summary always carries mean, standard deviation and n beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 9999  # enough that a paired test of up to 13 seeds visits every sign pattern
BATCH = 100  # resamples at once: bounds the memory of many items
SEED = 0  # of resampling, so that tables are equal byte for byte


@dataclass(frozen=True)
class Summary:
    """Scores of one model on one split over seeds; ``std`` divides by n - 1 and is None for one seed."""

    n: int
    max: float
    mean: float
    median: float
    min: float
    std: float | None
    seeds: tuple[int, ...]
    values: tuple[float, ...]

    @property
    def text(self) -> str:
        """``max (mean) ± std`` with two decimals, without the last for one seed."""
        deviation = "" if self.std is None else f" ± {self.std:.2f}"
        return f"{self.max:.2f} ({self.mean:.2f}){deviation}"


@dataclass(frozen=True)
class Comparison:
    """Scores of A against B on the same seeds, and where the predictions are at hand on the same items.

    Attributes:
        seeds: the seeds both have.
        difference: mean of A - B, in points.
        interval: 95 % t interval of ``difference`` over seeds; None for one seed.
        p_permutation: two-sided sign-flip permutation test on the differences (exact up to 13 seeds;
            it cannot be below 2 / 2^n, so that 0.05 needs 6 seeds).
        p_t: two-sided paired t-test; None for one seed or where all differences are equal.
        effect: ``difference`` in standard deviations of the differences (Cohen's d_z); None likewise.
        items: number of items; None without predictions, as are the next two.
        p_items: two-sided approximate randomisation over items (:func:`p_over_items`).
        interval_both: 95 % bootstrap interval over seeds and items at once (:func:`interval_over_both`).
    """

    seeds: tuple[int, ...]
    difference: float
    interval: tuple[float, float] | None
    p_permutation: float
    p_t: float | None
    effect: float | None
    items: int | None = None
    p_items: float | None = None
    interval_both: tuple[float, float] | None = None

    @property
    def p(self) -> float | None:
        """The larger of the p over seeds and over items; None without items.

        A difference that is to hold for other seeds and for other items must show in both tests: an
        intersection-union test, whose level is that of each (Berger 1982).
        """
        return None if self.p_items is None else max(self.p_permutation, self.p_items)


def summarise(scores: Mapping[int, float]) -> Summary:
    """Summary of ``{seed: score}``, which must not be empty; values are in the order of the seeds."""
    seeds = tuple(sorted(scores))
    values = tuple(float(scores[seed]) for seed in seeds)
    return Summary(
        n=len(values),
        max=max(values),
        mean=float(np.mean(values)),
        median=float(np.median(values)),
        min=min(values),
        std=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        seeds=seeds,
        values=values,
    )


def bootstrap_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the mean over seeds or items; None where all values are equal.

    With few seeds it is too narrow (it cannot know scores it has not seen); read it beside n. Of values that
    are 0 or 1, a resample has a binomial number of ones, so that it need not be drawn item by item.
    """
    found = set(values)
    if len(found) < 2:
        return None
    if found == {0.0, 1.0}:
        n, rng = len(values), np.random.default_rng(SEED)
        shares = rng.binomial(n, sum(values) / n, size=RESAMPLES) / n
        low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)
    from scipy import stats  # here: it takes a second, and a run that only summarises needs none of it

    result = stats.bootstrap(
        (np.asarray(values),),
        np.mean,
        n_resamples=RESAMPLES,
        batch=BATCH,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def p_over_items(differences: np.ndarray) -> float:
    """Two-sided p of approximate randomisation over items, from A - B of each (seeds, items).

    Were A and B the same, their outputs for an item (of all seeds together) could be swapped: the sign of the
    item's mean difference is random. Items without a difference change nothing and are left out.
    The observed assignment counts as one of the resamples (Noreen 1989), so that p is never 0.
    """
    means = np.round(differences.mean(axis=0), 9)
    means = means[means != 0]
    if not means.size:
        return 1.0
    rng = np.random.default_rng(SEED)
    reached = abs(means.sum()) - 1e-6
    extreme, left = 0, RESAMPLES
    while left:
        flips = rng.integers(0, 2, size=(min(BATCH, left), means.size), dtype=np.int8).astype(np.float64)
        extreme += int((np.abs(2 * (flips @ means) - means.sum()) >= reached).sum())
        left -= len(flips)
    return (extreme + 1) / (RESAMPLES + 1)


def interval_over_both(differences: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of (seeds, items), both drawn anew each time.

    Rows and columns are drawn independently, so that the noise of either is in the interval (the pigeonhole
    bootstrap, Owen 2007; it errs on the wide side). One seed leaves the noise of items alone.
    """
    rng = np.random.default_rng(SEED)
    seeds, items = differences.shape
    means = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        of_items = differences[rng.integers(seeds, size=seeds)].mean(axis=0)
        means[i] = of_items[rng.integers(items, size=items)].mean()
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def holm(values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number by Holm's step-down method, in the order given (Holm 1979)."""
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=lambda index: values[index])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = highest
    return adjusted


def compare(
    a: Mapping[int, float],
    b: Mapping[int, float],
    items: tuple[Mapping[int, Sequence[float]], Mapping[int, Sequence[float]]] | None = None,
) -> Comparison:
    """Paired comparison of ``{seed: score}`` of two models over the seeds both have.

    Args:
        a: scores of A in percent.
        b: scores of B.
        items: ``{seed: score of each item, 0 to 1}`` of A and of B, items in one order.

    Raises:
        ValueError: no seed in common.
    """
    from scipy import stats

    seeds = tuple(sorted(set(a) & set(b)))
    if not seeds:
        raise ValueError("no seed in common")
    # Scores carry float noise in their last digits; without rounding equal differences would not be equal.
    differences = np.round([a[seed] - b[seed] for seed in seeds], 9)
    mean = float(np.mean(differences))
    p_permutation, interval, p_t, effect = 1.0, None, None, None
    if len(seeds) > 1:
        permutation = stats.permutation_test(
            (differences,),  # of one sample, "samples" flips signs: which model made a score is exchangeable
            np.mean,
            permutation_type="samples",
            n_resamples=RESAMPLES,
            rng=np.random.default_rng(SEED),
        )
        p_permutation = float(permutation.pvalue)
    if len(set(differences)) > 1:
        test = stats.ttest_1samp(differences, 0.0)
        bounds = test.confidence_interval(0.95)
        interval = (float(bounds.low), float(bounds.high))
        p_t = float(test.pvalue)
        effect = mean / float(np.std(differences, ddof=1))
    over_seeds = Comparison(seeds, mean, interval, p_permutation, p_t, effect)
    if items is None:
        return over_seeds
    matrix = 100 * np.array([np.subtract(items[0][seed], items[1][seed]) for seed in seeds])
    return dataclasses.replace(
        over_seeds,
        items=matrix.shape[1],
        p_items=p_over_items(matrix),
        interval_both=interval_over_both(matrix),
    )
