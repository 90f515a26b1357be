"""What a log looks like: the row of the paper's Table 1, and a little more."""

from dataclasses import dataclass

import numpy as np

from tclgraph.events.intervals import intervals
from tclgraph.events.split import Split

_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Counts of the whole log, train to test."""

    interactions: int
    sources: int
    targets: int
    nodes: int
    """Distinct nodes; in a one-mode graph those on both sides count once."""
    days: float
    repetition_density: float
    """Percent of interactions whose (source, target) came before. What the paper's table prints."""
    repetition_density_in_text: float
    """Percent of test interactions whose (source, target) occurs in train: what its text says."""
    median_interval: float
    """Seconds between consecutive events of a node, in the middle."""
    first_time: float
    last_time: float


def describe(split: Split) -> Description:
    """Describe the events of a split; its two cuts matter to the text's density only."""
    events = split.events
    # Ordered pairs in both kinds of graph: the paper counts sender→receiver.
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
        first_time=float(events.time[0]),
        last_time=float(events.time[-1]),
    )
