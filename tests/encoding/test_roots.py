"""Test which pairs of roots are encoded for given instances."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.encoding.roots import or_singleton, root_pairs

ABSENT_NODE = 9
ABSENT_ROOT = -10
NUM_EVENTS = 6


@given(st.lists(st.integers(-ABSENT_NODE, 2 * NUM_EVENTS - 1)))
def test_each_needed_event_and_singleton_is_encoded_once(instances: list[int]) -> None:
    pairs, _ = root_pairs(np.array(instances, dtype=np.int64), ABSENT_NODE)
    expected = {
        (instance, ABSENT_ROOT) if instance < 0 else (instance // 2 * 2, instance // 2 * 2 + 1)
        for instance in instances
    }
    assert pairs.shape == (len(expected), 2)
    assert set(map(tuple, pairs.tolist())) == expected


@given(st.lists(st.integers(-ABSENT_NODE, 2 * NUM_EVENTS - 1)))
def test_positions_point_to_the_instances(instances: list[int]) -> None:
    pairs, position = root_pairs(np.array(instances, dtype=np.int64), ABSENT_NODE)
    assert pairs.ravel()[position].tolist() == instances


def test_a_missing_instance_is_replaced_by_the_singleton_of_its_node() -> None:
    assert or_singleton(np.array([-1, 6, -1, 0]), np.array([0, 1, 4, 2])).tolist() == [-1, 6, -5, 0]
