import numpy as np
import pytest

from tclgraph.evaluation.significance import Resamples


def test_a_difference_is_the_difference_of_means() -> None:
    random = np.random.default_rng(0)
    one, other = random.integers(1, 50, (2, 3, 400)).astype(float)
    found = Resamples([one, other], "MR").difference(0, 1)
    assert found.mean == pytest.approx(one.mean() - other.mean())
    assert found.low < found.mean < found.high
    back = Resamples([one, other], "MR").difference(1, 0)
    assert (back.mean, back.low, back.high) == pytest.approx((-found.mean, -found.high, -found.low))


def test_intervals_are_as_wide_as_theory_says() -> None:
    """For one seed and many events: 1.96 standard errors of the paired difference each way."""
    random = np.random.default_rng(1)
    one = random.integers(100, 1_000, (1, 3_000)).astype(float)
    other = one + random.normal(2.0, 10.0, one.shape)
    found = Resamples([one, other], "MR").difference(0, 1)
    error = (one - other).std() / np.sqrt(one.size)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    # Not paired it would be a hundred times as wide.
    assert found.is_clear


def test_seeds_that_differ_widen_the_interval() -> None:
    events = np.arange(1.0, 201.0)
    steady = np.stack([events, events])
    shaky = np.stack([events - 0.5, events + 4.5])
    assert Resamples([steady + 1, steady], "MR").difference(0, 1).is_clear
    found = Resamples([shaky, steady], "MR").difference(0, 1)
    assert found.mean == 2.0
    # The seeds' deviation is 2.5 √2 each way; a half of all draws has one of them twice.
    assert (found.low, found.high) == pytest.approx((2 - 2.5 * 2**0.5, 2 + 2.5 * 2**0.5))
    assert not found.is_clear


@pytest.mark.parametrize("num_seeds", [5, 20])
def test_seeds_widen_the_interval_as_theory_says(num_seeds: int) -> None:
    """For many equal events: 1.96 standard errors of the mean over seeds each way."""
    figures = np.random.default_rng(2).normal(100.0, 5.0, num_seeds)
    seeds = np.repeat(figures[:, None], 50, axis=1)
    found = Resamples([seeds, np.full((1, 50), 90.0)], "MR").difference(0, 1)
    error = figures.std(ddof=1) / np.sqrt(num_seeds)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_of_hits_more_is_more() -> None:
    near, far = np.full((1, 50), 3.0), np.full((1, 50), 30.0)
    found = Resamples([near, far], "Hit@10").difference(0, 1)
    assert (found.mean, found.low, found.high) == (100.0, 100.0, 100.0)
