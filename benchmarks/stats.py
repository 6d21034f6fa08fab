"""Statistics over seeds: summaries, intervals, paired tests. All scores are in percent.

The maximum over n seeds grows with n (it lies 1.54 standard deviations over the mean for 10 normal scores),
and a maximum on test is chosen on test. So a summary always carries mean, standard deviation and n beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 9999  # enough that a paired test of up to 13 seeds visits every sign pattern
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
    """Scores of A against B on the same seeds.

    Attributes:
        seeds: the seeds both have.
        difference: mean of A - B, in points.
        interval: 95 % t interval of ``difference``; None for one seed.
        p_permutation: two-sided sign-flip permutation test on the differences (exact up to 13 seeds;
            it cannot be below 2 / 2^n, so that 0.05 needs 6 seeds).
        p_t: two-sided paired t-test; None for one seed or where all differences are equal.
        effect: ``difference`` in standard deviations of the differences (Cohen's d_z); None likewise.
    """

    seeds: tuple[int, ...]
    difference: float
    interval: tuple[float, float] | None
    p_permutation: float
    p_t: float | None
    effect: float | None


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
    """Percentile bootstrap interval of the mean over seeds; None for fewer than two different values.

    With few seeds it is too narrow (it cannot know scores it has not seen); read it beside n.
    """
    if len(set(values)) < 2:
        return None
    from scipy import stats  # here: it takes a second, and a run that only summarises needs none of it

    result = stats.bootstrap(
        (np.asarray(values),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def compare(a: Mapping[int, float], b: Mapping[int, float]) -> Comparison:
    """Paired comparison of ``{seed: score}`` of two models over the seeds both have.

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
    return Comparison(seeds, mean, interval, p_permutation, p_t, effect)
