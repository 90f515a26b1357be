"""Features split by repeat: every query has either its pairs or its candidate features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.state import HistoryState
from tclgraph.testing.streams import KINDS
from tests.features.queries import log_of, long_stream, pairs_of, spread_streams


def assert_split(full: HistoryFeatures, split: HistoryFeatures, stream: EventStream) -> None:
    """Assert that `split` has the features of `full` that the events of the stream need."""
    assert_array_equal(split.source, full.source)
    assert_array_equal(split.neighbor_start, full.neighbor_start)
    assert_array_equal(split.neighbor_target, full.neighbor_target)
    explored = split.candidate_query.tolist()
    dense, all_dense = split.candidate.to_dense(), full.candidate.to_dense()
    for query, target in enumerate(stream.target.tolist()):
        ours, all_pairs = pairs_of(split, query), pairs_of(full, query)
        if target in full.pair_target[all_pairs]:
            assert query not in explored
            assert_array_equal(split.pair_target[ours], full.pair_target[all_pairs])
            # Walks add up in another order if other targets are counted with them.
            assert_allclose(split.pair_inputs[ours], full.pair_inputs[all_pairs], atol=2e-6)
        else:
            assert ours.start == ours.stop
            row = explored.index(query)
            assert_allclose(dense[row], all_dense[query], rtol=0, atol=2e-6)


@given(spread_streams(), st.data())
def test_a_split_block_has_what_the_events_need(stream: EventStream, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(stream) - 1))
    columns = np.array(
        data.draw(st.lists(st.integers(0, stream.num_targets - 1), min_size=1, unique=True))
    )
    events = stream[start:]
    state = HistoryState(log_of(stream), start)
    full, split = (
        state.features(events.source, events.time, columns, reveal=True, split_by_repeat=is_split)
        for is_split in (False, True)
    )
    assert_split(full, split, events)


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_block_of_busy_sources_with_sampled_pairs(kind: GraphKind) -> None:
    stream = long_stream(kind)
    start, stop = 600, 700  # source 0 has more neighbors than pairs are sampled; others gain some
    events = stream[start:stop]
    state = HistoryState(log_of(stream), start)
    offsets = np.random.default_rng(0).random(len(events))
    full, split = (
        state.features(
            events.source,
            events.time,
            reveal=True,
            sample_offset=offsets,
            split_by_repeat=is_split,
        )
        for is_split in (False, True)
    )
    assert 0 < len(split.candidate_query) < len(events)
    assert len(split.pair_log_weight) == len(split.pair_target) < len(full.pair_target)
    assert_split(full, split, events)


def test_splitting_needs_the_true_targets() -> None:
    state = HistoryState(log_of(long_stream("bipartite")))
    with pytest.raises(AssertionError, match="set reveal"):
        state.features(np.array([0]), np.array([0.0]), split_by_repeat=True)
