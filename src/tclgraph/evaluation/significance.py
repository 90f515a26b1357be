"""Confidence intervals for the difference between two models.

The models rank the same events, each with a few training seeds. A paired bootstrap draws events
with replacement, the same events for all models. Draws of seeds with replacement would give
intervals that are far too narrow for two or three seeds, so the mean over the seeds of a model is
drawn from Student's t distribution instead. The central 95 % of the resulting differences are the
interval.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tclgraph.arrays import FloatArray
from tclgraph.evaluation.metrics import METRIC_NAMES, contributions

_RESAMPLES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference of a metric between two models, with a 95 % interval."""

    mean: float
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def scaled(self, factor: float) -> "Difference":
        """Return the difference in another unit; the factor is positive."""
        return Difference(mean=factor * self.mean, low=factor * self.low, high=factor * self.high)


class Resamples:
    """Bootstrap samples of a metric for several models, over the same draws of events."""

    def __init__(self, ranks: Sequence[FloatArray], metric: str) -> None:
        """Draw the samples. `ranks` has an array [seeds, events] for each model."""
        column = METRIC_NAMES.index(metric)
        values = [
            contributions(model_ranks.ravel())[:, column].reshape(model_ranks.shape)
            for model_ranks in ranks
        ]
        self._means = [float(model_values.mean()) for model_values in values]
        num_events = ranks[0].shape[1]
        event_counts = _event_counts(num_events)
        random = np.random.default_rng(1)
        self._samples = []
        for model_values in values:
            means = np.stack([counts @ model_values.T for counts in event_counts]) / num_events
            samples = means.mean(axis=1)
            if (num_seeds := len(model_values)) > 1:
                error = means.std(axis=1, ddof=1) / num_seeds**0.5
                samples += error * _t_draws(num_seeds - 1, random)
            self._samples.append(samples)

    def difference(self, first: int, second: int) -> Difference:
        """Return the metric of one model minus that of another; both are given by position.

        >>> ranks = np.array([[1.0, 2.0, 4.0]])
        >>> Resamples([ranks, ranks + 1], "MR").difference(0, 1)
        Difference(mean=-1.0, low=-1.0, high=-1.0)
        """
        weights = [0.0] * len(self._means)
        weights[first] += 1.0
        weights[second] -= 1.0
        return self.contrast(weights)

    def contrast(self, weights: Sequence[float]) -> Difference:
        """Return a weighted sum of the metric over the models, in their order.

        The weights 1, -0.5 and -0.5 compare a model with the average of two others.

        >>> ranks = np.array([[1.0, 2.0, 3.0]])
        >>> Resamples([ranks, ranks + 1, ranks + 2], "MR").contrast([1.0, -0.5, -0.5])
        Difference(mean=-1.5, low=-1.5, high=-1.5)
        """
        samples = np.zeros(_RESAMPLES)
        mean = 0.0
        for weight, model_mean, model_samples in zip(
            weights, self._means, self._samples, strict=True
        ):
            if weight:
                mean += weight * model_mean
                samples += weight * model_samples
        return _central(mean, samples)

    def difference_of_ratios(self, first: tuple[int, int], second: tuple[int, int]) -> Difference:
        """Return the ratio of two models minus the ratio of two others; all given by position.

        With a model trained in two ways, the ratio says what share of its metric is left.

        >>> ranks = np.array([[1.0, 2.0, 3.0]])
        >>> Resamples([ranks, 2 * ranks, 4 * ranks], "MR").difference_of_ratios((0, 1), (0, 2))
        Difference(mean=0.25, low=0.25, high=0.25)
        """
        means, samples = self._means, self._samples
        (over, under), (other_over, other_under) = first, second
        return _central(
            means[over] / means[under] - means[other_over] / means[other_under],
            samples[over] / samples[under] - samples[other_over] / samples[other_under],
        )


def _central(mean: float, samples: FloatArray) -> Difference:
    """Return a mean with the central 95 % of its bootstrap samples."""
    # Adding 0 makes 0 of -0, which a tiny negative number is rounded to.
    low, high = (np.percentile(samples, [2.5, 97.5]).round(12) + 0.0).tolist()
    return Difference(mean=mean, low=low, high=high)


def _t_draws(degrees: int, random: np.random.Generator) -> FloatArray:
    """Return draws of Student's t distribution, in random order, with both signs.

    The tails are long for few degrees of freedom. Evenly spaced quantiles of many draws, each with
    both signs, give steadier intervals than as many independent draws.
    """
    half = _RESAMPLES // 2
    many = np.sort(np.abs(random.standard_t(degrees, 100 * half)))
    one_side = random.permutation(many[50::100])
    return np.concatenate([one_side, -one_side])


@lru_cache(maxsize=1)
def _event_counts(num_events: int) -> NDArray[np.uint8]:
    """Return how often each event occurs in each draw: [draws, events].

    The result is cached because drawing takes most of the time of a comparison, and a report
    compares many models on the same events. An event occurs once on average, so 8 bits suffice.
    """
    random = np.random.default_rng(0)
    chance = np.full(num_events, 1 / num_events)
    event_counts = np.empty((_RESAMPLES, num_events), np.uint8)
    for counts in event_counts:
        counts[:] = random.multinomial(num_events, chance)
    return event_counts


_T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % quantiles of Student's t distribution with 1 to 9 degrees of freedom."""
_NORMAL_QUANTILE = 1.959964


def mean_of_pairs(differences: Sequence[float]) -> Difference:
    """Return the mean of the differences of two or more seeds with its 95 % t-interval.

    >>> mean_of_pairs([1.0, 3.0])
    Difference(mean=2.0, low=-10.706, high=14.706)
    """
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / len(differences) ** 0.5
    reach = _t_quantile(len(differences) - 1) * error
    return Difference(mean=mean, low=round(mean - reach, 12), high=round(mean + reach, 12))


def difference_of_means(
    figures: Sequence[float], mean: float, deviation: float, count: int
) -> Difference:
    """Return the mean of figures minus that of others, of which only a summary is known.

    The interval is that of Welch's t-test, with the degrees of freedom rounded down.

    >>> difference_of_means([1.0, 3.0], mean=1.0, deviation=1.0, count=2)
    Difference(mean=1.0, low=-14.562, high=16.562)
    """
    variance = statistics.variance(figures) / len(figures)
    other_variance = deviation**2 / count
    total = variance + other_variance
    degrees = 1
    if total > 0:
        parts = variance**2 / (len(figures) - 1) + other_variance**2 / (count - 1)
        degrees = int(total**2 / parts)
    difference = statistics.fmean(figures) - mean
    reach = _t_quantile(degrees) * total**0.5
    low, high = round(difference - reach, 3), round(difference + reach, 3)
    return Difference(mean=difference, low=low, high=high)


def _t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution.

    From ten degrees of freedom on, its expansion about the normal quantile is correct to three
    decimals.

    >>> round(_t_quantile(10), 3), round(_t_quantile(30), 3)
    (2.228, 2.042)
    """
    if degrees <= len(_T_QUANTILES):
        return _T_QUANTILES[degrees - 1]
    z = _NORMAL_QUANTILE
    first = (z**3 + z) / (4 * degrees)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    return z + first + second + third
