"""Test which rows each query attends to, against the reference and against drawings."""

import numpy as np
import pytest

from tclgraph.events.stream import EventStream
from tclgraph.sampling.dependency_subgraphs import pack
from tests.reference.tcl import Past
from tests.sampling.test_dependency_subgraphs import (
    HAND_DRAWN,
    assert_equals_reference,
    by_numbers,
    graph_of,
)


@pytest.mark.parametrize("num_levels", [5, 8, 13])
def test_a_shortcut_past_many_events(num_levels: int) -> None:
    """Events of a with b, ten times with c, and again with b.

    From the last event, b leads to the first event in one step, and a in eleven. The difference
    does not fit into a signature.
    """
    events = EventStream.from_columns(["a"] * 12, list("b" + 10 * "c" + "b"), list(range(12)))
    roots = list(range(2 * len(events)))
    packed = pack(graph_of(events), np.array(roots), num_levels)
    assert_equals_reference(packed, Past(events), roots, num_levels)


def test_a_shortcut_changes_the_keys_of_a_shared_row() -> None:
    """Four levels of a at event 4, and of b at event 5.

    Both sub-graphs contain a's instance 2 at depth 2, which depends on event 0. In a's sub-graph
    event 0 is at depth 2, because x leads to it as well; in b's sub-graph it is at depth 3.
    """
    packed = pack(graph_of(HAND_DRAWN), np.array([8, 10]), 4)
    from_a, from_b = by_numbers(packed)
    assert from_a == {
        8: (0, [(8, 0), (4, 1), (5, 1), (2, 2), (3, 2), (1, 2), (0, 2)]),
        4: (1, [(4, 1), (2, 2), (3, 2), (1, 2), (0, 2)]),
        5: (1, [(5, 1), (1, 2), (0, 2)]),
        2: (2, [(2, 2), (1, 2), (0, 2)]),
        3: (2, [(3, 2)]),
        1: (2, [(1, 2)]),
        0: (2, [(0, 2)]),
    }
    assert list(from_a) == [8, 4, 5, 2, 3, 1, 0]
    assert from_b == {
        10: (0, [(10, 0), (6, 1), (7, 1), (3, 2), (2, 2), (0, 3), (1, 3)]),
        6: (1, [(6, 1)]),
        7: (1, [(7, 1), (3, 2), (2, 2), (0, 3), (1, 3)]),
        3: (2, [(3, 2)]),
        2: (2, [(2, 2), (0, 3), (1, 3)]),
        0: (3, [(0, 3)]),
        1: (3, [(1, 3)]),
    }
    assert list(from_b) == [10, 6, 7, 3, 2, 0, 1]
    # There are 14 members. Both sub-graphs contain the instances 2 and 3 at depth 2, which leaves
    # 12 rows. Instance 3 has the same keys in both, instance 2 has not, which makes 13 queries.
    assert (len(packed.row_instance), len(packed.query_row)) == (12, 13)


def test_both_instances_of_a_self_loop_attend_to_the_previous_event() -> None:
    """The events are a→b, b→b and b→a; instances 2 and 3 are both b."""
    events = EventStream.from_columns(list("abb"), list("bba"), [0.0, 1.0, 5.0], kind="one-mode")
    from_b, from_a = by_numbers(pack(graph_of(events), np.array([4, 5]), 3))
    assert from_b == {
        4: (0, [(4, 0), (2, 1), (3, 1), (1, 2), (0, 2)]),
        2: (1, [(2, 1), (1, 2), (0, 2)]),
        3: (1, [(3, 1), (1, 2), (0, 2)]),
        1: (2, [(1, 2)]),
        0: (2, [(0, 2)]),
    }
    assert list(from_b) == [4, 2, 3, 1, 0]
    assert list(from_a) == [5, 0, 1]
