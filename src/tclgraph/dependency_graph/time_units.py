"""What intervals are counted in."""

from dataclasses import dataclass

import numpy as np

from tclgraph.dependency_graph.graph import DependencyGraph


@dataclass(frozen=True, slots=True)
class TimeUnits:
    """Learned from the training stream, never from later."""

    mean: float
    """Seconds between events of a node."""
    log_deviation: float
    """Of log(1 + those seconds)."""

    @classmethod
    def of(cls, graph: DependencyGraph) -> "TimeUnits":
        gaps = graph.interval[graph.previous >= 0]
        if not len(gaps):
            return cls(1.0, 1.0)
        # One where all gaps are zero, or equal: there is nothing to scale then.
        return cls(float(gaps.mean()) or 1.0, float(np.log1p(gaps).std()) or 1.0)
