"""Test the windows of a training stream, and the roots that each window encodes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.encoding.training_windows import TrainingWindows
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.sampling.last_instances import LastInstances
from tclgraph.testing.streams import splits, streams

batch_sizes = st.integers(1, 12)


@given(streams(), batch_sizes)
def test_windows_hold_all_events_in_order(stream: EventStream, batch_size: int) -> None:
    windows = TrainingWindows(stream, batch_size)
    events = [windows.events(window) for window in range(len(windows))]
    assert [len(event) for event in events[:-1]] == [batch_size] * (len(windows) - 1)
    assert 1 <= len(events[-1]) <= batch_size
    event = np.concatenate(events)
    assert event.tolist() == list(range(len(stream)))
    assert_array_equal(windows.sources(event), stream.source)
    assert_array_equal(windows.targets(event), stream.target)


@given(streams(), batch_sizes, st.data())
def test_candidates_have_their_latest_version_before_every_event(
    stream: EventStream, batch_size: int, data: st.DataObject
) -> None:
    windows = TrainingWindows(stream, batch_size)
    space, last = windows.space, LastInstances(windows.graph)
    event = windows.events(data.draw(st.integers(0, len(windows) - 1)))
    target_ids = st.integers(0, stream.num_targets - 1)
    candidates = np.array(data.draw(st.lists(target_ids, min_size=1, unique=True)))
    rows = st.lists(st.sampled_from(range(len(event))), min_size=1, unique=True).map(sorted)
    compared = data.draw(st.none() | rows.map(np.array))
    roots = windows.candidate_roots(event, candidates, space.num_nodes, compared)

    event = event if compared is None else event[compared]
    encoded = roots.pairs.ravel()
    expected = last.before(candidates + space.first_target, event[:, None])
    assert_array_equal(encoded[roots.version_position][roots.version], expected)
    assert_array_equal(encoded[roots.source_position], last.before(stream.source[event], event))
    # Nothing is encoded that no event reads.
    read = {*encoded[roots.source_position].tolist(), *expected.ravel().tolist()}
    assert all(read & set(pair) for pair in roots.pairs.tolist())


@given(streams(), batch_sizes, st.data())
def test_sampled_roots_are_the_latest_instances_before_every_event(
    stream: EventStream, batch_size: int, data: st.DataObject
) -> None:
    windows = TrainingWindows(stream, batch_size)
    space, last = windows.space, LastInstances(windows.graph)
    events = st.lists(st.integers(0, len(stream) - 1), min_size=1, max_size=6)
    event = np.array(data.draw(events))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    negatives = random.integers(stream.num_targets, size=(len(event), 3))
    roots = windows.sampled_roots(event, negatives, absent_node=space.num_nodes)

    target_ids = np.column_stack([stream.target[event], negatives])
    nodes = np.column_stack([stream.source[event], target_ids + space.first_target])
    assert_array_equal(roots.event, event)
    assert_array_equal(roots.instance, last.before(nodes, event[:, None]))
    assert_array_equal(roots.pairs.ravel()[roots.position], roots.instance)


@given(splits(), batch_sizes)
def test_candidates_are_the_targets_of_the_training_stream(split: Split, batch_size: int) -> None:
    candidates = TrainingWindows(split.train, batch_size).candidates.tolist()
    targets = sorted(set(split.train.target.tolist()))
    expected = list(range(split.events.num_targets)) if len(targets) == 1 else targets
    assert candidates == expected
