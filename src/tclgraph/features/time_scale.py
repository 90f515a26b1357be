"""The unit of ages and the lengths of time windows, measured on the training events."""

from dataclasses import dataclass
from typing import TypeAlias

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale

Windows: TypeAlias = tuple[float, float, float]

# Lengths of the windows in mean intervals between consecutive events of a node. They are shorter by
# a billionth, so that an event exactly at the start of a window is left out even if times were
# rounded.
_SHORT, _MEDIUM, _LONG = (factor * (1 - 1e-9) for factor in (0.1, 3.0, 30.0))


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Unit and windows of the history features, in the unit of the log's times.

    The windows are a tenth of the mean interval between consecutive events of a node, three times
    and thirty times this interval.
    """

    unit: float
    """Unit of ages and gaps in log(1 + Δ / unit). 0: all ages and gaps count as 0."""
    windows: Windows
    """Lengths of the short, the medium and the long window."""

    @classmethod
    def measure(cls, graph: DependencyGraph) -> "TimeScale":
        """Measure a graph that holds the training events."""
        scale = IntervalScale.measure(graph)
        return cls(scale.log_unit, (_SHORT * scale.mean, _MEDIUM * scale.mean, _LONG * scale.mean))
