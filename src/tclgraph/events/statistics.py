"""Statistics of a log: the columns of the paper's Table 1 and a few more."""

from dataclasses import dataclass

import numpy as np

from tclgraph.events.intervals import intervals
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream

_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Statistics of all events of a log, from train to test."""

    interactions: int
    sources: int
    targets: int
    nodes: int
    """Number of distinct nodes. A node on both sides of a one-mode graph counts once."""
    days: float
    repetition_density: float
    """Percentage of interactions whose (source, target) occurred before. The paper's Table 1
    prints this figure."""
    repetition_density_in_text: float
    """Percentage of test interactions whose (source, target) occurs in train. The paper's text
    defines repetition density this way."""
    median_interval: float
    """Median of the seconds between consecutive events of a node."""
    simultaneous: float
    """Percentage of interactions with the source and the time of the interaction before."""
    first_time: float
    last_time: float


def describe(split: Split) -> Description:
    """Return the statistics of a split; only `repetition_density_in_text` depends on its cuts."""
    events = split.events
    # Pairs are ordered in both kinds of graph, because the paper counts sender→receiver.
    pair = events.source * events.num_targets + events.target
    gaps = intervals(events)
    known_gaps = gaps[~np.isnan(gaps)]
    sources, targets = len(np.unique(events.source)), len(np.unique(events.target))
    return Description(
        interactions=len(events),
        sources=sources,
        targets=targets,
        nodes=events.num_sources if events.kind == "one-mode" else sources + targets,
        days=events.duration / _DAY,
        repetition_density=100 * (1 - len(np.unique(pair)) / len(events)),
        repetition_density_in_text=100
        * float(np.isin(pair[split.valid_end :], pair[: split.train_end]).mean()),
        median_interval=float(np.median(known_gaps)) if len(known_gaps) else 0.0,
        simultaneous=simultaneous_share(events),
        first_time=float(events.time[0]),
        last_time=float(events.time[-1]),
    )


def simultaneous_share(events: EventStream) -> float:
    """Return the percentage of events that share source and time with the event before.

    >>> simultaneous_share(EventStream.from_columns(list("aaba"), list("xyxx"), [1, 1, 1, 1]))
    25.0
    """
    is_shared = (np.diff(events.source) == 0) & (np.diff(events.time) == 0)
    return 100 * int(is_shared.sum()) / len(events)
