"""Compare recent neighbors and timed batches with searches through all events."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.sampling.recent_neighbors import TimedBatches, recent_neighbors
from tests.streams import streams


def graph_of(stream: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return graph


def reference_neighbors(graph: DependencyGraph, node: int, time: float, count: int) -> list[int]:
    """Return the instances of a node's neighbors strictly before a time, latest first."""
    neighbors = []
    for event in reversed(range(len(graph))):
        sides = [side for side in (0, 1) if graph.node[2 * event + side] == node]
        if sides and graph.time[event] < time:
            neighbors.append(2 * event + 1 - sides[0])
    return (neighbors + count * [NONE])[:count]


@given(streams(), st.integers(1, 5))
def test_neighbors_are_the_latest_strictly_before_the_time(stream: EventStream, count: int) -> None:
    graph = graph_of(stream)
    for time in (*np.unique(stream.time), stream.time[-1] + 1):
        nodes = np.arange(graph.space.num_nodes)
        neighbors = recent_neighbors(graph, graph.last_instance, np.full(len(nodes), time), count)
        expected = np.array(
            [reference_neighbors(graph, node, time, count) for node in nodes.tolist()]
        )
        assert_array_equal(neighbors.instance, expected)
        is_real = expected != NONE
        assert_array_equal(neighbors.is_real, is_real)
        assert_array_equal(neighbors.count, is_real.sum(axis=1))
        assert_array_equal(neighbors.node, np.where(is_real, graph.node[expected], 0))
        assert_array_equal(neighbors.time, np.where(is_real, graph.time[expected // 2], time))


@given(streams())
def test_neighbors_can_be_searched_from_any_instance(stream: EventStream) -> None:
    graph = graph_of(stream)
    instance = np.arange(2 * len(graph))
    time = graph.time[instance // 2]
    neighbors = recent_neighbors(graph, instance, time, 3).instance
    expected = [reference_neighbors(graph, graph.node[start], time[start], 3) for start in instance]
    assert_array_equal(neighbors, expected)


def test_selected_rows_keep_their_latest_neighbors() -> None:
    stream = EventStream.from_columns(list("aab"), list("xyx"), [1.0, 2.0, 3.0])
    graph = graph_of(stream)
    neighbors = recent_neighbors(graph, graph.last_instance, np.full(4, 9.0), 3)
    selected = neighbors.of(np.array([0, 2]), 2)
    assert_array_equal(selected.instance, [[3, 1], [4, 0]])
    assert_array_equal(selected.time, [[2.0, 1.0], [3.0, 1.0]])


def test_an_empty_graph_has_no_neighbors() -> None:
    empty = DependencyGraph(NodeSpace(kind="bipartite", num_sources=1, num_targets=2))
    neighbors = recent_neighbors(empty, empty.last_instance, np.zeros(3), 2)
    assert not neighbors.is_real.any()


@given(streams(), st.integers(1, 9))
def test_a_batch_holds_its_parties_and_negatives(stream: EventStream, size: int) -> None:
    batches = TimedBatches(stream, size, num_negatives=2)
    graph = batches.graph
    seen: list[int] = []
    for batch in range(len(batches)):
        events = batches.events(batch)
        seen += events.tolist()
        drawn = batches.draw(batch, np.random.default_rng(batch))
        node: IntArray = drawn.node[drawn.position]
        assert_array_equal(node[:, :2], graph.node.reshape(-1, 2)[events])
        assert (drawn.time[drawn.position] == graph.time[events][:, None]).all()
        assert (node[:, 2:] != node[:, 1:2]).all()
        assert (node[:, 2:] >= graph.space.first_target).all()
        assert len(set(zip(drawn.node.tolist(), drawn.time.tolist(), strict=True))) == len(
            drawn.node
        )
        neighbors = recent_neighbors(graph, drawn.latest, drawn.time, 4).instance
        expected = [
            reference_neighbors(graph, timed_node, time, 4)
            for timed_node, time in zip(drawn.node, drawn.time, strict=True)
        ]
        assert_array_equal(neighbors, np.array(expected).reshape(-1, 4))
    assert seen == list(range(len(stream)))


def test_negatives_come_from_all_targets_if_training_has_one_target() -> None:
    kind: GraphKind = "one-mode"
    stream = EventStream.from_columns(list("aab"), list("bbb"), range(3), kind=kind)
    drawn = TimedBatches(stream, 3, num_negatives=1).draw(0, np.random.default_rng(0))
    assert_array_equal(drawn.node[drawn.position][:, 2], [0, 0, 0])
