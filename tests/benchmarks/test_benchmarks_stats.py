"""Statistics over seeds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.stats import bootstrap_interval, compare, holm, interval_over_both, p_over_items, summarise

TEN = [62.1, 62.4, 62.6, 62.7, 62.8, 62.9, 63.0, 63.1, 63.2, 63.4]


def test_summary_of_ten_seeds():
    """Max, mean, standard deviation with n - 1, median, min and all values."""
    summary = summarise(dict(enumerate(TEN)))
    assert summary.max == 63.4
    assert round(summary.mean, 2) == 62.82
    assert round(summary.std, 3) == 0.388
    assert round(summary.median, 2) == 62.85
    assert summary.min == 62.1
    assert summary.n == 10
    assert summary.text == "63.40 (62.82) ± 0.39"
    assert summary.values == tuple(TEN)
    assert summary.seeds == tuple(range(10))


def test_summary_is_in_the_order_of_seeds_whatever_the_order_of_records():
    assert summarise({5: 1.0, 3: 2.0}) == summarise({3: 2.0, 5: 1.0})
    assert summarise({5: 1.0, 3: 2.0}).values == (2.0, 1.0)


def test_one_seed_has_no_deviation():
    summary = summarise({7: 50.0})
    assert (summary.n, summary.std, summary.mean) == (1, None, 50.0)
    assert summary.text == "50.00 (50.00)"
    assert bootstrap_interval([50.0]) is None


def test_bootstrap_interval_holds_the_mean_and_is_the_same_each_time():
    low, high = bootstrap_interval(TEN)
    # The bootstrap's standard error is s (n) / sqrt(n) = 0.3682 / 3.162; 1.96 of them, by hand: +- 0.228.
    assert math.isclose(low, 62.82 - 0.228, abs_tol=0.03)
    assert math.isclose(high, 62.82 + 0.228, abs_tol=0.03)
    assert bootstrap_interval(TEN) == (low, high)
    assert bootstrap_interval([1.0, 1.0, 1.0]) is None


def test_paired_comparison_by_hand():
    """Differences 1, 2, 3: mean 2, sd 1, t = 2 sqrt(3), p = 0.0742; two of eight sign patterns."""
    result = compare({0: 1.0, 1: 3.0, 2: 5.0, 9: 0.0}, {0: 0.0, 1: 1.0, 2: 2.0, 8: 0.0})
    assert result.seeds == (0, 1, 2)
    assert result.difference == 2.0
    assert math.isclose(result.p_t, 0.0741799, abs_tol=1e-6)
    assert result.p_permutation == 0.25
    assert result.effect == 2.0
    # t(0.975, 2) = 4.302653, over sqrt(3)
    assert math.isclose(result.interval[0], 2 - 4.302653 / math.sqrt(3), abs_tol=1e-5)


def test_equal_differences_have_no_t_test():
    """Ten differences of one point: no variance to test against, 2 of 1024 sign patterns as extreme."""
    result = compare(dict(enumerate(TEN)), {seed: value - 1 for seed, value in enumerate(TEN)})
    assert result.p_t is result.effect is result.interval is None
    assert result.p_permutation == 2 / 1024


def test_one_common_seed_and_none():
    assert compare({0: 2.0}, {0: 1.0}).p_permutation == 1.0
    with pytest.raises(ValueError, match="no seed in common"):
        compare({0: 2.0}, {1: 1.0})


@settings(max_examples=20, deadline=None)
@given(
    st.dictionaries(
        st.integers(0, 20), st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=6
    )
)
def test_comparison_is_antisymmetric(pairs):
    a, b = ({seed: pair[side] for seed, pair in pairs.items()} for side in (0, 1))
    forth, back = compare(a, b), compare(b, a)
    assert forth.difference == -back.difference
    assert math.isclose(forth.p_permutation, back.p_permutation)
    assert 0 < forth.p_permutation <= 1


# --- items ----------------------------------------------------------------------------------------


def test_randomisation_over_items_equals_the_exact_sign_test():
    """Ten items differ, eight for A: P(|X - 5| >= 3) of ten coins is 112 / 1024."""
    differences = np.array([[100.0] * 8 + [-100.0] * 2 + [0.0] * 40])
    assert p_over_items(differences) == pytest.approx(112 / 1024, abs=0.01)
    assert p_over_items(differences) == p_over_items(differences[:, :10])
    assert p_over_items(-differences) == p_over_items(differences)
    assert p_over_items(np.zeros((3, 5))) == 1.0
    assert p_over_items(np.full((1, 40), 100.0)) == 1 / 10_000  # none of the resamples, and the observed one


def test_items_are_the_mean_over_seeds():
    """A wins an item with one seed and loses it with the other: no difference."""
    assert p_over_items(np.array([[100.0, -100.0], [-100.0, 100.0]])) == 1.0


def test_interval_over_seeds_and_items():
    """One seed, half of 400 items differ by 100: sd 50 / 20 = 2.5 points, 1.96 of them: 45.1 to 54.9."""
    one_seed = np.array([[100.0, 0.0] * 200])
    low, high = interval_over_both(one_seed)
    assert (low, high) == (pytest.approx(45.1, abs=0.5), pytest.approx(54.9, abs=0.5))
    # Two seeds that differ by 20 points over all items: means 40, 50, 60 with 1/4, 1/2, 1/4.
    seeds = interval_over_both(np.array([[40.0] * 10, [60.0] * 10]))
    assert seeds == (40.0, 60.0)
    assert interval_over_both(np.full((3, 7), 5.0)) == (5.0, 5.0)


def test_the_larger_p_counts():
    """Two seeds cannot show a difference, however clear it is over the items."""
    items = {0: [1.0] * 30, 1: [1.0] * 30}, {0: [0.0] * 30, 1: [0.0] * 30}
    result = compare({0: 100.0, 1: 100.0}, {0: 0.0, 1: 0.0}, items)
    assert (result.items, result.p_permutation) == (30, 0.5)
    assert result.p_items < 0.001
    assert result.p == 0.5
    assert compare({0: 1.0}, {0: 2.0}).p is None


def test_holm():
    """By hand: 3 x .01; 2 x .03; .04, but no less than the one before."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_noise_of_items_by_bootstrap():
    """CMRC 2018 dev at 62.9 % EM: a standard error of .85 points, so an interval of 3.3."""
    right = round(0.629 * 3219)
    low, high = bootstrap_interval([1.0] * right + [0.0] * (3219 - right))
    assert 100 * (high - low) == pytest.approx(2 * 1.96 * 0.851, abs=0.15)
