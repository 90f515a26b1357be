"""Scaling of time intervals (Δ in the paper) before a network reads them.

Paper: intervals are used in seconds. Here: they are divided by a figure measured on the training
stream. Because: seconds make training explode.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tclgraph.arrays import FloatArray
from tclgraph.dependency_graph.graph import DependencyGraph

_MIN_DEVIATION = 1e-9

Scaling: TypeAlias = Literal["linear", "log"]


@dataclass(frozen=True, slots=True)
class IntervalScale:
    """Statistics of the intervals between consecutive events of a node, from training events only.

    >>> scale = IntervalScale(mean=60.0, log_deviation=2.0)
    >>> scale.scaled(np.array([0.0, 120.0]), "linear").tolist()
    [0.0, 2.0]
    """

    mean: float
    """Mean interval, in seconds."""
    log_deviation: float
    """Standard deviation of log(1 + seconds)."""

    @classmethod
    def measure(cls, graph: DependencyGraph) -> "IntervalScale":
        """Measure the intervals of a graph that holds the training events."""
        intervals = graph.interval[graph.previous >= 0]
        if not len(intervals):
            return cls(1.0, 1.0)
        deviation = float(np.log1p(intervals).std())
        # If all intervals are zero or equal, there is nothing to scale; rounding leaves equal ones
        # a deviation of about 1e-16.
        return cls(float(intervals.mean()) or 1.0, deviation if deviation > _MIN_DEVIATION else 1.0)

    def scaled(self, seconds: FloatArray, scaling: Scaling) -> FloatArray:
        """Return Δ / mean ("linear") or log(1 + Δ) / deviation ("log")."""
        if scaling == "log":
            logarithm: FloatArray = np.log1p(seconds) / self.log_deviation
            return logarithm
        return seconds / self.mean
