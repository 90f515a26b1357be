from hypothesis import given
from hypothesis import strategies as st

from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.log_arrays import Events, Hop
from tclgraph.testing.streams import streams
from tests.features.queries import TIME_SCALE


def log_of(stream: EventStream) -> InteractionLog:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return InteractionLog(graph, TIME_SCALE)


def following_of(events: Events) -> list[int]:
    following: list[int] = events.hops[:, Hop.NEXT].tolist()
    return following


def nodes_by_event(stream: EventStream) -> list[tuple[int, int]]:
    offset = 0 if stream.kind == "one-mode" else stream.num_sources
    columns = zip(stream.source.tolist(), stream.target.tolist(), strict=True)
    return [(source, target + offset) for source, target in columns]


def following_by_search(stream: EventStream) -> list[int]:
    """Search the later events for the next one of each instance's node."""
    nodes = nodes_by_event(stream)
    following = []
    for event, pair in enumerate(nodes):
        for side, node in enumerate(pair):
            # A self-loop counts as its source's, both as the earlier and as the later event.
            is_twin = side == 1 and pair[0] == node
            later = [other for other in range(event + 1, len(nodes)) if node in nodes[other]]
            has_next = later and not is_twin
            following.append(2 * later[0] + nodes[later[0]].index(node) if has_next else NONE)
    return following


def neighbors_by_search(stream: EventStream, node: int) -> list[int]:
    """Return the neighbors of a node but itself, in the order of the first event with each."""
    others = [
        pair[1 - side]
        for pair in nodes_by_event(stream)
        for side in (0, 1)
        if pair[side] == node and pair[1 - side] != node
    ]
    return list(dict.fromkeys(others))


def neighbors_of(log: InteractionLog, node: int) -> list[int]:
    events = log.events()
    start = int(events.neighbor_start[node])
    neighbors: list[int] = events.neighbors[start:][: log._links.num_neighbors[node]].tolist()
    return neighbors


@given(streams())
def test_following_is_the_next_instance_of_the_node(stream: EventStream) -> None:
    assert following_of(log_of(stream).events()) == following_by_search(stream)


@given(streams())
def test_neighbors_are_listed_in_the_order_of_the_first_event(stream: EventStream) -> None:
    log = log_of(stream)
    for node in range(log.graph.space.num_nodes):
        assert neighbors_of(log, node) == neighbors_by_search(stream, node)


def test_a_node_may_have_any_number_of_neighbors() -> None:
    source, target = [0] * 300 + [1] * 300, [*range(2, 302), *range(301, 1, -1)]
    stream = EventStream.from_columns(source, target, range(600), kind="one-mode")
    log = log_of(stream)
    for node in range(log.graph.space.num_nodes):
        assert neighbors_of(log, node) == neighbors_by_search(stream, node)


@given(streams(), st.data())
def test_a_growing_log_equals_one_of_the_same_events(
    stream: EventStream, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    log = InteractionLog(DependencyGraph(NodeSpace.of(stream)), TIME_SCALE)
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        log.graph.append(stream[start:stop])
        events, expected = log.events(), log_of(stream[:stop]).events()
        for name in ("hops", "pairs", "totals", "is_new", "earlier_targets"):
            assert getattr(events, name).tolist() == getattr(expected, name).tolist(), name
        for node in range(log.graph.space.num_nodes):
            assert neighbors_of(log, node) == neighbors_by_search(stream[:stop], node)


def test_a_self_loop_is_followed_once() -> None:
    # event     0     1     2     3
    #         b → a a → a a → a b → a
    stream = EventStream.from_columns(list("baab"), list("aaaa"), range(4), kind="one-mode")
    assert following_of(log_of(stream).events()) == [6, 2, 4, NONE, 7, NONE, NONE, NONE]


def test_memory_is_linear() -> None:
    stream = EventStream.from_columns([0] * 1000, [0] * 1000, range(1000))
    log = InteractionLog(DependencyGraph(NodeSpace.of(stream)), TIME_SCALE)
    for event in range(1000):
        log.graph.append(stream[event : event + 1])
        log.events()
    assert len(log._arrays.hops) <= 4 * len(log.graph)
