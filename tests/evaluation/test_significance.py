import numpy as np
import pytest

from tclgraph.evaluation.significance import Resamples, mean_of_pairs


def test_a_difference_is_the_difference_of_means() -> None:
    random = np.random.default_rng(0)
    first, second = random.integers(1, 50, (2, 3, 400)).astype(float)
    difference = Resamples([first, second], "MR").difference(0, 1)
    assert difference.mean == pytest.approx(first.mean() - second.mean())
    assert difference.low < difference.mean < difference.high
    reverse = Resamples([first, second], "MR").difference(1, 0)
    assert (reverse.mean, reverse.low, reverse.high) == pytest.approx(
        (-difference.mean, -difference.high, -difference.low)
    )


def test_the_interval_over_events_has_the_theoretical_width() -> None:
    """With one seed and many events: ± 1.96 standard errors of the paired difference."""
    random = np.random.default_rng(1)
    first = random.integers(100, 1_000, (1, 3_000)).astype(float)
    second = first + random.normal(2.0, 10.0, first.shape)
    difference = Resamples([first, second], "MR").difference(0, 1)
    error = (first - second).std() / np.sqrt(first.size)
    assert difference.high - difference.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    # Without pairing, the interval would be a hundred times as wide.
    assert difference.is_clear


def test_different_seeds_widen_the_interval() -> None:
    events = np.arange(1.0, 201.0)
    steady = np.stack([events, events])
    shaky = np.stack([events - 0.5, events + 4.5])
    assert Resamples([steady + 1, steady], "MR").difference(0, 1).is_clear
    difference = Resamples([shaky, steady], "MR").difference(0, 1)
    assert difference.mean == 2.0
    # The standard error over two seeds is 2.5, and the t quantile of one degree of freedom 12.7.
    assert difference.high - difference.low == pytest.approx(2 * 12.7 * 2.5, rel=0.05)
    assert not difference.is_clear


@pytest.mark.parametrize(("num_seeds", "quantile"), [(3, 4.303), (5, 2.776), (20, 2.093)])
def test_the_interval_over_seeds_has_the_theoretical_width(num_seeds: int, quantile: float) -> None:
    """With equal events: the t-interval of the mean over seeds."""
    figures = np.random.default_rng(2).normal(100.0, 5.0, num_seeds)
    seeds = np.repeat(figures[:, None], 50, axis=1)
    difference = Resamples([seeds, np.full((1, 50), 90.0)], "MR").difference(0, 1)
    error = figures.std(ddof=1) / np.sqrt(num_seeds)
    assert difference.high - difference.low == pytest.approx(2 * quantile * error, rel=0.05)


@pytest.mark.parametrize("num_seeds", [2, 3, 5])
def test_the_interval_over_seeds_covers_the_mean_in_95_of_100_cases(num_seeds: int) -> None:
    random = np.random.default_rng(5)
    covered = 0
    for figures in random.normal(100.0, 5.0, (400, num_seeds)):
        seeds = np.repeat(figures[:, None], 4, axis=1)
        difference = Resamples([seeds, np.full((1, 4), 90.0)], "MR").difference(0, 1)
        covered += difference.low <= 10.0 <= difference.high
    assert covered / 400 == pytest.approx(0.95, abs=0.03)


def test_the_difference_of_hits_is_in_percentage_points() -> None:
    near, far = np.full((1, 50), 3.0), np.full((1, 50), 30.0)
    difference = Resamples([near, far], "Hit@10").difference(0, 1)
    assert (difference.mean, difference.low, difference.high) == (100.0, 100.0, 100.0)


def test_a_contrast_is_a_weighted_sum_over_the_same_draws() -> None:
    random = np.random.default_rng(3)
    models = [random.integers(1, 50, (2, 300)).astype(float) for _ in range(3)]
    drawn = Resamples(models, "MRR")
    contrast = drawn.contrast([1.0, -0.25, -0.75])
    first, second, third = ((1 / ranks).mean() for ranks in models)
    assert contrast.mean == pytest.approx(first - 0.25 * second - 0.75 * third)
    assert drawn.contrast([0.0, 1.0, -1.0]) == drawn.difference(1, 2)


def test_the_t_interval_covers_the_mean_in_95_of_100_cases() -> None:
    random = np.random.default_rng(4)
    for num_seeds in (2, 5, 12):
        samples = random.normal(1.0, 2.0, (2_000, num_seeds)).tolist()
        intervals = [mean_of_pairs(differences) for differences in samples]
        covered = sum(interval.low <= 1.0 <= interval.high for interval in intervals)
        assert covered / 2_000 == pytest.approx(0.95, abs=0.015)
