"""Test the groups of independent events, and the search for a node's latest event."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.arrays import IntArray
from tclgraph.sampling.t_batches import LatestEvents, t_batches

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40)


def columns(events: list[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    parties = np.array(events, dtype=np.int64).reshape(-1, 2)
    return parties[:, 0].copy(), parties[:, 1].copy()


@given(pairs)
def test_a_node_is_in_a_group_once_and_its_events_stay_in_order(
    events: list[tuple[int, int]],
) -> None:
    order, start = t_batches(*columns(events))
    assert sorted(order.tolist()) == list(range(len(events)))
    groups = [order[a:b].tolist() for a, b in pairwise(start.tolist())]
    group_of = {event: number for number, group in enumerate(groups) for event in group}
    for group in groups:
        assert group == sorted(group)
        assert group, "no group is empty"
        parties = [node for event in group for node in set(events[event])]
        assert len(parties) == len(set(parties))
    for later in range(len(events)):
        for earlier in range(later):
            if set(events[earlier]) & set(events[later]):
                assert group_of[earlier] < group_of[later]


@given(pairs)
def test_every_event_is_in_the_earliest_possible_group(events: list[tuple[int, int]]) -> None:
    order, start = t_batches(*columns(events))
    group = np.empty(len(events), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    for event in range(len(events)):
        required = [
            group[before] for before in range(event) if set(events[before]) & set(events[event])
        ]
        assert group[event] == max(required, default=-1) + 1


@given(
    st.lists(st.integers(0, 5), max_size=30),
    st.integers(0, 9),
    st.booleans(),
)
def test_the_latest_event_equals_a_backward_search(
    nodes: list[int], first: int, has_earlier: bool
) -> None:
    earlier = np.array([first - 1, -1, -1, -1, -1, -1]) if has_earlier and first else None
    latest = LatestEvents(np.array(nodes, dtype=np.int64), first, earlier)
    events = np.arange(first, first + len(nodes) + 1)
    for node in range(6):
        expected = []
        for event in events.tolist():
            latest_event = -1 if earlier is None else int(earlier[node])
            for before in range(first, event):
                if nodes[before - first] == node:
                    latest_event = before
            expected.append(latest_event)
        assert_array_equal(latest.before(np.full(len(events), node), events), expected)
