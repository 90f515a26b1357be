import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.events.stream import EventStream
from tclgraph.features import snapshots
from tclgraph.features.snapshots import HistorySnapshots
from tclgraph.features.state import HistoryState
from tests.features.queries import all_sources, log_of, space_of, spread_streams


@given(spread_streams(), st.integers(1, 5), st.integers(1, 3))
def test_the_state_before_every_event_is_that_of_a_replay(
    stream: EventStream, events_apart: int, max_snapshots: int
) -> None:
    log = log_of(stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "MIN_EVENTS_APART", events_apart)
        patch.setattr(snapshots, "MAX_BYTES", max_snapshots * HistoryState(log, 0).num_bytes)
        states = HistorySnapshots(log)
    assert len(states._states) <= max_snapshots
    for event in range(len(stream)):
        queries = all_sources(stream, stream.time[event])
        ours = states.before(event).features(*queries)
        expected = HistoryState(log, event).features(*queries)
        assert_array_equal(ours.source, expected.source)
        assert_array_equal(ours.candidate.to_dense(), expected.candidate.to_dense())
        assert_array_equal(ours.pair_inputs, expected.pair_inputs)


def test_a_snapshot_has_all_nodes() -> None:
    stream = EventStream.from_columns(["a"], ["x"], [0.0])
    assert HistoryState(log_of(stream)).num_bytes >= 4 * space_of(stream).num_nodes
