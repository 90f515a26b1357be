"""Test the groups of independent events, and the search for a node's latest instance."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.arrays import IntArray
from tclgraph.sampling.t_batches import LatestInstances, t_batches

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


@given(pairs, st.integers(0, 9), st.booleans())
def test_the_latest_instance_equals_a_backward_search(
    events: list[tuple[int, int]], first: int, has_earlier: bool
) -> None:
    earlier = np.array([2 * first - 1, -1, -1, -1, -1, -1]) if has_earlier and first else None
    nodes = np.array(events, dtype=np.int64).reshape(-1)
    latest = LatestInstances(nodes, 2 * first, earlier)
    numbers = np.arange(first, first + len(events) + 1)
    for node in range(6):
        expected = []
        for number in numbers.tolist():
            instance = -1 if earlier is None else int(earlier[node])
            for before, parties in enumerate(events[: number - first], start=first):
                if node in parties:
                    instance = 2 * before + parties.index(node)  # the source's of a self-loop
            expected.append(instance)
        assert_array_equal(latest.before(np.full(len(numbers), node), numbers), expected)
