"""Scaling of time intervals (Δ in the paper) before a network reads them.

Paper: intervals are used in seconds. Here: they are divided by a figure measured on the training
stream. Because: seconds make training explode, and a log may count time in any unit.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tclgraph.arrays import FloatArray
from tclgraph.dependency_graph.graph import DependencyGraph

_LOG_UNIT_SHARE = 1e-5
_MIN_DEVIATION = 1e-9

Scaling: TypeAlias = Literal["linear", "log"]


def in_units(interval: FloatArray, unit: float) -> FloatArray:
    """Return intervals as multiples of a unit.

    A unit of 0 says that no training interval was longer than 0. All intervals are then 0, because
    any other length would depend on how the log counts time.

    >>> intervals = np.array([0.0, 6.0])
    >>> in_units(intervals, 3.0).tolist(), in_units(intervals, 0.0).tolist()
    ([0.0, 2.0], [0.0, 0.0])
    """
    return interval / unit if unit else np.zeros_like(interval)


@dataclass(frozen=True, slots=True)
class IntervalScale:
    """Statistics of the intervals between consecutive events of a node, from training events only.

    >>> scale = IntervalScale(mean=60.0, log_deviation=2.0)
    >>> scale.scaled(np.array([0.0, 120.0]), "linear").tolist()
    [0.0, 2.0]
    """

    mean: float
    """Mean interval; 0 if there is no interval longer than 0."""
    log_deviation: float
    """Standard deviation of log(1 + Δ / unit)."""

    @classmethod
    def measure(cls, graph: DependencyGraph) -> "IntervalScale":
        """Measure the intervals of a graph that holds the training events."""
        intervals = graph.interval[graph.previous >= 0]
        if not len(intervals):
            return cls(0.0, 1.0)
        scale = cls(float(intervals.mean()), 1.0)
        deviation = float(scale.scaled(intervals, "log").std())
        # If all intervals are zero or equal, there is nothing to scale; rounding leaves equal ones
        # a deviation of about 1e-16.
        return cls(scale.mean, deviation if deviation > _MIN_DEVIATION else 1.0)

    @property
    def log_unit(self) -> float:
        """Unit of intervals in logarithms, a hundred-thousandth of the mean interval.

        It is so short that the 1 in log(1 + Δ / unit) matters only for almost simultaneous events.
        """
        return _LOG_UNIT_SHARE * self.mean

    def scaled(self, interval: FloatArray, scaling: Scaling) -> FloatArray:
        """Return Δ / mean ("linear") or log(1 + Δ / unit) / deviation ("log")."""
        if scaling == "log":
            logarithm: FloatArray = np.log1p(in_units(interval, self.log_unit)) / self.log_deviation
            return logarithm
        return in_units(interval, self.mean)
