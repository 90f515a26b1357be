"""The state and its blocks of queries: other ways to ask for the same features give the same."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.events.stream import EventStream
from tclgraph.features.block import CandidateFeatures, HistoryFeatures
from tclgraph.features.state import HistoryState
from tests.features.queries import (
    TICKS,
    all_sources,
    assert_query_near,
    log_of,
    space_of,
    spread_streams,
)


def assert_equal(first: HistoryFeatures, second: HistoryFeatures) -> None:
    for field in fields(HistoryFeatures):
        left, right = getattr(first, field.name), getattr(second, field.name)
        if isinstance(left, CandidateFeatures):
            left, right = left.to_dense(), right.to_dense()
        assert_array_equal(left, right, err_msg=field.name, strict=True)


def queries_of(stream: EventStream) -> tuple[IntArray, FloatArray]:
    """Return the query of each event."""
    return stream.source, stream.time


@given(spread_streams(), st.data(), st.integers(0, 999))
def test_a_revealing_block_equals_updates_between_queries(
    stream: EventStream, data: st.DataObject, seed: int
) -> None:
    start = data.draw(st.integers(0, len(stream) - 1))
    stop = data.draw(st.integers(start + 1, len(stream)))
    source, time = queries_of(stream[start:stop])
    # Half of the queries are of another source than the event's.
    random = np.random.default_rng(seed)
    other = random.integers(space_of(stream).num_sources, size=len(source))
    source = np.where(random.random(len(source)) < 0.5, other, source)

    block = HistoryState(log_of(stream), start).features(source, time, reveal=True)
    growing = log_of(stream[:start])
    state = HistoryState(growing)
    for query in range(stop - start):
        alone = state.features(source[query : query + 1], time[query : query + 1])
        assert_query_near(block, query, alone)
        growing.graph.append(stream[start + query : start + query + 1])
        state.update()


@given(spread_streams(), st.data())
def test_features_ignore_events_after_the_state(stream: EventStream, data: st.DataObject) -> None:
    num_events = data.draw(st.integers(0, len(stream)))
    now = stream.time[max(num_events - 1, 0)] + data.draw(st.sampled_from((0.0, *TICKS)))
    queries = all_sources(stream, now)
    assert_equal(
        HistoryState(log_of(stream), num_events).features(*queries),
        HistoryState(log_of(stream[:num_events])).features(*queries),
    )


@given(spread_streams(), st.data())
def test_a_revealing_block_ignores_events_after_it(
    stream: EventStream, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(stream) - 1))
    stop = data.draw(st.integers(start + 1, len(stream)))
    queries = queries_of(stream[start:stop])
    assert_equal(
        HistoryState(log_of(stream), start).features(*queries, reveal=True),
        HistoryState(log_of(stream[:stop]), start).features(*queries, reveal=True),
    )


@given(spread_streams(), st.data())
def test_updating_in_pieces_equals_updating_at_once(
    stream: EventStream, data: st.DataObject
) -> None:
    log = log_of(stream)
    now = stream.time[-1] + data.draw(st.sampled_from((0.0, *TICKS)))
    queries = all_sources(stream, now)
    state = HistoryState(log, 0)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
    for num_events in sorted(cuts):
        state.update(num_events)
        state.features(*queries)  # queries on the way must not matter
    state.update()
    assert_equal(state.features(*queries), HistoryState(log).features(*queries))


@given(spread_streams(), st.data())
def test_states_of_one_log_are_independent(stream: EventStream, data: st.DataObject) -> None:
    num_events = data.draw(st.integers(0, len(stream)))
    queries = all_sources(stream, stream.time[-1] + 60.0)
    log = log_of(stream)
    first = HistoryState(log, num_events)
    HistoryState(log).features(*queries)
    assert_equal(
        first.features(*queries), HistoryState(log_of(stream), num_events).features(*queries)
    )


@given(spread_streams(), st.data())
def test_chosen_columns_equal_those_of_all_targets(
    stream: EventStream, data: st.DataObject
) -> None:
    queries = all_sources(stream, stream.time[-1] + 60.0)
    state = HistoryState(log_of(stream))
    last_target = space_of(stream).num_targets - 1
    chosen = data.draw(st.lists(st.integers(0, last_target), max_size=6, unique=True))
    columns = np.array(chosen, dtype=np.int64)
    partial, full = state.features(*queries, columns), state.features(*queries)
    chosen_columns = full.candidate.to_dense()[:, :, columns]
    assert_array_equal(partial.candidate.to_dense(), chosen_columns, strict=True)
    for name in ("source", "pair_start", "pair_target", "pair", "pair_candidate"):
        assert_array_equal(getattr(partial, name), getattr(full, name), err_msg=name)


@given(spread_streams(), st.data())
def test_queries_do_not_change_the_state(stream: EventStream, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(stream) - 1))
    state = HistoryState(log_of(stream), start)
    queries = all_sources(stream, stream.time[max(start - 1, 0)])
    first = state.features(*queries)
    # Much later all windows are empty, and a revealing block goes through further events.
    state.features(*all_sources(stream, stream.time[-1] + 1e7))
    state.features(*queries_of(stream[start:]), reveal=True)
    assert_equal(state.features(*queries), first)


@given(spread_streams(), st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 999))
def test_a_block_equals_single_queries(stream: EventStream, hours: list[int], seed: int) -> None:
    state = HistoryState(log_of(stream))
    random = np.random.default_rng(seed)
    source = random.integers(space_of(stream).num_sources, size=len(hours))
    time = stream.time[-1] + 3_600.0 * np.sort(hours)
    block = state.features(source, time)
    for query in range(len(hours)):
        alone = state.features(source[query : query + 1], time[query : query + 1])
        assert_query_near(block, query, alone)


def test_queries_of_a_block_may_come_in_any_order_of_time() -> None:
    state = HistoryState(log_of(EventStream.from_columns(["a"], ["x"], [0.0])))
    later, sooner = 2 * 3_600.0, 60.0
    block = state.features(np.array([0, 0]), np.array([later, sooner]))
    assert_query_near(block, 1, state.features(np.array([0]), np.array([sooner])))


def test_a_state_does_not_go_back() -> None:
    state = HistoryState(log_of(EventStream.from_columns(["a"], ["x"], [0.0])))
    with pytest.raises(AssertionError, match="cannot go back"):
        state.update(0)


def test_a_state_does_not_go_beyond_the_log() -> None:
    state = HistoryState(log_of(EventStream.from_columns(["a"], ["x"], [0.0])))
    with pytest.raises(AssertionError, match="beyond the events"):
        state.update(2)


def test_a_block_reveals_no_more_events_than_the_log_has() -> None:
    state = HistoryState(log_of(EventStream.from_columns(["a"], ["x"], [0.0])), 0)
    with pytest.raises(AssertionError, match="an event for every query"):
        state.features(np.array([0, 0]), np.array([0.0, 0.0]), reveal=True)
