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


def slow(graph: DependencyGraph, node: int, time: float, count: int) -> list[int]:
    """Instances of whom a node met strictly before a time, latest first."""
    met = []
    for event in reversed(range(len(graph))):
        sides = [side for side in (0, 1) if graph.node[2 * event + side] == node]
        if sides and graph.time[event] < time:
            met.append(2 * event + 1 - sides[0])
    return (met + count * [NONE])[:count]


@given(streams(), st.integers(1, 5))
def test_they_are_the_latest_that_are_strictly_earlier(stream: EventStream, count: int) -> None:
    graph = graph_of(stream)
    for time in (*np.unique(stream.time), stream.time[-1] + 1):
        nodes = np.arange(graph.space.num_nodes)
        found = recent_neighbors(graph, graph.last_instance, np.full(len(nodes), time), count)
        expected = np.array([slow(graph, node, time, count) for node in nodes.tolist()])
        assert_array_equal(found.instance, expected)
        is_real = expected != NONE
        assert_array_equal(found.is_real, is_real)
        assert_array_equal(found.count, is_real.sum(axis=1))
        assert_array_equal(found.node, np.where(is_real, graph.node[expected], 0))
        assert_array_equal(found.time, np.where(is_real, graph.time[expected // 2], time))


@given(streams())
def test_a_past_can_be_followed_from_any_instance(stream: EventStream) -> None:
    graph = graph_of(stream)
    instance = np.arange(2 * len(graph))
    time = graph.time[instance // 2]
    found = recent_neighbors(graph, instance, time, 3).instance
    expected = [slow(graph, graph.node[one], time[one], 3) for one in instance]
    assert_array_equal(found, expected)


def test_some_rows_keep_their_latest() -> None:
    stream = EventStream.from_columns(list("aab"), list("xyx"), [1.0, 2.0, 3.0])
    graph = graph_of(stream)
    found = recent_neighbors(graph, graph.last_instance, np.full(4, 9.0), 3)
    some = found.of(np.array([0, 2]), 2)
    assert_array_equal(some.instance, [[3, 1], [4, 0]])
    assert_array_equal(some.time, [[2.0, 1.0], [3.0, 1.0]])


def test_nobody_has_neighbours_before_the_first_event() -> None:
    empty = DependencyGraph(NodeSpace(kind="bipartite", num_sources=1, num_targets=2))
    found = recent_neighbors(empty, empty.last_instance, np.zeros(3), 2)
    assert not found.is_real.any()


@given(streams(), st.integers(1, 9))
def test_a_batch_asks_for_its_parties_and_for_others(stream: EventStream, size: int) -> None:
    batches = TimedBatches(stream, size, num_negatives=2)
    graph = batches.graph
    seen: list[int] = []
    for batch in range(len(batches)):
        events = batches.events(batch)
        seen += events.tolist()
        asked = batches.draw(batch, np.random.default_rng(batch))
        node: IntArray = asked.node[asked.position]
        assert_array_equal(node[:, :2], graph.node.reshape(-1, 2)[events])
        assert (asked.time[asked.position] == graph.time[events][:, None]).all()
        assert (node[:, 2:] != node[:, 1:2]).all()
        assert (node[:, 2:] >= graph.space.first_target).all()
        assert len(set(zip(asked.node.tolist(), asked.time.tolist(), strict=True))) == len(
            asked.node
        )
        met = recent_neighbors(graph, asked.latest, asked.time, 4).instance
        expected = [slow(graph, one, at, 4) for one, at in zip(asked.node, asked.time, strict=True)]
        assert_array_equal(met, np.array(expected).reshape(-1, 4))
    assert seen == list(range(len(stream)))


def test_who_met_one_target_only_is_asked_for_any_other() -> None:
    kind: GraphKind = "one-mode"
    stream = EventStream.from_columns(list("aab"), list("bbb"), range(3), kind=kind)
    asked = TimedBatches(stream, 3, num_negatives=1).draw(0, np.random.default_rng(0))
    assert_array_equal(asked.node[asked.position][:, 2], [0, 0, 0])
