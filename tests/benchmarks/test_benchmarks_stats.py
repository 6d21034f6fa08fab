"""Statistics over seeds."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.stats import bootstrap_interval, compare, summarise

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
