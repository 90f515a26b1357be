"""Confidence intervals for the difference between two models.

The models rank the same events, each with a few training seeds. A paired bootstrap draws events
with replacement, the same events for all models, and draws the seeds of each model with
replacement. The central 95 % of the resulting differences are the interval.
"""

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
            num_seeds = len(model_values)
            even = 1 / num_seeds
            share = random.multinomial(num_seeds, [even] * num_seeds, size=_RESAMPLES) / num_seeds
            if num_seeds > 1:
                # The variance of a bootstrap mean of n values is too small by the factor
                # (n - 1) / n, which matters for few seeds. Widen the shares to correct it.
                share = even + (share - even) * (num_seeds / (num_seeds - 1)) ** 0.5
            means = np.stack([counts @ model_values.T for counts in event_counts]) / num_events
            self._samples.append((means * share).sum(axis=1))

    def difference(self, first: int, second: int) -> Difference:
        """Return the metric of one model minus that of another; both are given by position.

        >>> ranks = np.array([[1.0, 2.0, 4.0]])
        >>> Resamples([ranks, ranks + 1], "MR").difference(0, 1)
        Difference(mean=-1.0, low=-1.0, high=-1.0)
        """
        differences = self._samples[first] - self._samples[second]
        low, high = np.percentile(differences, [2.5, 97.5]).round(12).tolist()
        return Difference(mean=self._means[first] - self._means[second], low=low, high=high)


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
