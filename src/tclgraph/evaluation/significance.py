"""Whether one model does better than another, or could as well have been lucky.

Both have ranked the same events, each with a few seeds. Events are drawn with replacement, the same
for all models, and so are the seeds of each. What remains of the difference in 95 % of the draws is
its interval.
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
    """Of a metric, one model's less another's."""

    mean: float
    low: float
    high: float
    """Ends of the 95 % interval."""

    @property
    def is_clear(self) -> bool:
        """Whether 0 is outside of the interval."""
        return self.low > 0 or self.high < 0


class Resamples:
    """Figures of some models over the same draws of events."""

    def __init__(self, ranks: Sequence[FloatArray], metric: str) -> None:
        """`ranks` has for each model an array [seeds, events]."""
        column = METRIC_NAMES.index(metric)
        figures = [contributions(one.ravel())[:, column].reshape(one.shape) for one in ranks]
        self._mean = [float(one.mean()) for one in figures]
        num_events = ranks[0].shape[1]
        drawn = _event_draws(num_events)
        random = np.random.default_rng(1)
        self._drawn = []
        for one in figures:
            even = 1 / len(one)
            share = random.multinomial(len(one), [even] * len(one), size=_RESAMPLES) / len(one)
            if len(one) > 1:
                # Draws of n seeds have (n - 1) / n of the variance that their mean has, which is
                # little of it when seeds are few.
                share = even + (share - even) * (len(one) / (len(one) - 1)) ** 0.5
            means = np.stack([times @ one.T for times in drawn]) / num_events
            self._drawn.append((means * share).sum(axis=1))

    def difference(self, one: int, other: int) -> Difference:
        """Of two models, given by their places.

        >>> same = np.array([[1.0, 2.0, 4.0]])
        >>> Resamples([same, same + 1], "MR").difference(0, 1)
        Difference(mean=-1.0, low=-1.0, high=-1.0)
        """
        drawn = self._drawn[one] - self._drawn[other]
        low, high = np.percentile(drawn, [2.5, 97.5]).round(12).tolist()
        return Difference(mean=self._mean[one] - self._mean[other], low=low, high=high)


@lru_cache(maxsize=1)
def _event_draws(num_events: int) -> NDArray[np.uint8]:
    """How often each event is in each draw: [draws, events].

    Drawing takes most of the time of a comparison, and a report has many of the same events. No
    event comes up 256 times: one is expected.
    """
    random = np.random.default_rng(0)
    chance = np.full(num_events, 1 / num_events)
    drawn = np.empty((_RESAMPLES, num_events), np.uint8)
    for times in drawn:
        times[:] = random.multinomial(num_events, chance)
    return drawn
