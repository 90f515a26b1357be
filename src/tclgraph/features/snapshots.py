"""History states at regular points of a log, so that any state needs only a short replay."""

from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState

MIN_EVENTS_APART = 4_096
MAX_BYTES = 128 * 2**20
"""Maximum memory of all snapshots; larger states are stored further apart."""


class HistorySnapshots:
    """Finds the state before any event of a log without replaying the log from its beginning."""

    def __init__(self, log: InteractionLog) -> None:
        num_events = len(log.graph)
        state = HistoryState(log, 0)
        max_snapshots = max(MAX_BYTES // state.num_bytes, 1)
        self._events_apart = max(MIN_EVENTS_APART, -(-num_events // max_snapshots))
        self._states = []
        for event in range(0, max(num_events, 1), self._events_apart):
            state.update(event)
            self._states.append(state.copy())

    def before(self, event: int) -> HistoryState:
        """Return the state that knows all events before this one."""
        state = self._states[event // self._events_apart].copy()
        state.update(event)
        return state
