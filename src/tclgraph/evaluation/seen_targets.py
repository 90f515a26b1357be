"""The targets that a source has interacted with, which `mask_seen` removes from a ranking."""

import numpy as np

from tclgraph.arrays import BoolArray, IntArray
from tclgraph.events.pair_history import PairHistory
from tclgraph.events.stream import EventStream


class SeenTargets:
    """Follows the events of a log, and says which targets each source has interacted with."""

    def __init__(self, events: EventStream, num_revealed: IntArray, start: int) -> None:
        """Start with the event `start`; `num_revealed` says how many events are before each."""
        self._events = events
        self._num_revealed = num_revealed
        self._next = start
        self._pairs = PairHistory()
        self._num_observed = 0

    def of_next(self, block: EventStream) -> BoolArray:
        """Return for each of the next events (row) which targets (columns) its source has seen."""
        is_seen = np.zeros((len(block), block.num_targets), dtype=bool)
        for row in range(len(block)):
            self._observe(int(self._num_revealed[self._next]))
            self._next += 1
            is_seen[row, self._pairs.neighbors_of(block.source[row]).target] = True
        return is_seen

    def _observe(self, num_events: int) -> None:
        """Observe the next events until there are so many."""
        events = self._events[self._num_observed : num_events]
        number = np.zeros(len(events), dtype=np.int64)
        self._pairs.observe(events.source, events.target, events.time, number)
        if events.kind == "one-mode":
            self._pairs.observe(events.target, events.source, events.time, number)
        self._num_observed = num_events
