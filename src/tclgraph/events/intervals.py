"""Time since a node's previous event (Δ in the paper).

Differences are taken in float64. Only the result may be cast to float32: near today's Unix
seconds, float32 values are 128 apart, which would destroy every short interval.
"""

import numpy as np

from tclgraph.arrays import FloatArray
from tclgraph.events.stream import EventStream


def intervals(stream: EventStream) -> FloatArray:
    """Return the seconds since the previous event of the source (column 0) and target (column 1).

    A value is NaN if the node has no earlier event. "Earlier" refers to the position in the
    stream, so simultaneous events are 0 seconds apart. An event is never its own predecessor.

    >>> stream = EventStream.from_columns(["a", "a"], ["x", "y"], [1082040961, 1082155839])
    >>> intervals(stream).tolist()
    [[nan, nan], [114878.0, nan]]
    """
    offset = 0 if stream.kind == "one-mode" else stream.num_sources
    node = np.stack([stream.source, stream.target + offset], axis=1).ravel()
    order = np.argsort(node, kind="stable")
    event = order // 2
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = node[order[1:]] != node[order[:-1]]

    previous = np.arange(len(order)) - 1
    # A self-loop has the same node on both sides, so its second side must skip its first side.
    is_same_event = ~is_first & (event == event[previous])
    previous -= is_same_event
    is_first |= is_same_event & is_first[previous + 1]

    gap = np.full(len(order), np.nan)
    known = ~is_first
    gap[order[known]] = stream.time[event[known]] - stream.time[event[previous[known]]]
    return gap.reshape(-1, 2)
