import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.intervals import intervals
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tests.streams import streams


def graph_of(stream: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return graph


def previous_by_search(stream: EventStream) -> list[int]:
    """Search the earlier events for the last one of each instance's node."""
    offset = 0 if stream.kind == "one-mode" else stream.num_sources
    nodes = [
        (int(source), int(target) + offset)
        for source, target in zip(stream.source, stream.target, strict=True)
    ]
    previous = []
    for event, pair in enumerate(nodes):
        for node in pair:
            earlier = [other for other in range(event) if node in nodes[other]]
            previous.append(earlier[-1] if earlier else NONE)
    return previous


@given(streams())
def test_an_instance_depends_on_the_previous_event_of_its_node(stream: EventStream) -> None:
    graph = graph_of(stream)
    assert graph.previous.tolist() == previous_by_search(stream)
    assert_array_equal(graph.interval.reshape(-1, 2), np.nan_to_num(intervals(stream)))


@given(streams(), st.data())
def test_appending_in_pieces_equals_appending_at_once(
    stream: EventStream, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
    grown = DependencyGraph(NodeSpace.of(stream))
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), len(stream)], strict=True):
        grown.append(stream[start:stop])
    at_once = graph_of(stream)
    assert len(grown) == len(at_once) == len(stream)
    for name in ("node", "previous", "interval", "time", "last_instance"):
        assert_array_equal(getattr(grown, name), getattr(at_once, name), err_msg=name)


@given(streams())
def test_the_last_instance_belongs_to_the_last_event_of_its_node(stream: EventStream) -> None:
    graph = graph_of(stream)
    for node, instance in enumerate(graph.last_instance.tolist()):
        instances = np.flatnonzero(graph.node == node)
        if instance == NONE:
            assert not len(instances)
        else:
            assert graph.node[instance] == node
            assert instance // 2 == instances[-1] // 2


def test_a_self_loop_is_one_event_of_one_node() -> None:
    # event     0     1     2
    #         a → b a → a a → b   at times 0, 5, 5
    stream = EventStream.from_columns(list("aaa"), list("bab"), [0, 5, 5], kind="one-mode")
    graph = graph_of(stream)
    # Both instances of event 1 depend on event 0. In event 2, a depends on event 1 and b on 0.
    assert graph.previous.tolist() == [NONE, NONE, 0, 0, 1, 0]
    assert graph.interval.tolist() == [0, 0, 5, 5, 0, 5]
    assert graph.last_instance.tolist() == [4, 5]
    after_loop = graph_of(stream[:2])
    assert after_loop.last_instance.tolist() == [2, 1]


def test_memory_is_linear() -> None:
    stream = EventStream.from_columns([0] * 1000, [0] * 1000, range(1000))
    graph = DependencyGraph(NodeSpace.of(stream))
    for event in range(1000):
        graph.append(stream[event : event + 1])
    assert len(graph._time) <= 2 * len(graph)
