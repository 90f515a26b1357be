from hypothesis import given
from hypothesis import strategies as st

from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.log_arrays import NOT_NEW, Events, Hop
from tclgraph.testing.streams import streams


def log_of(stream: EventStream) -> InteractionLog:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return InteractionLog(graph)


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


def previous_neighbor_by_search(stream: EventStream) -> list[int]:
    """Search the earlier events for the same pair, and for other new pairs of its nodes."""
    nodes = nodes_by_event(stream)
    is_new = [
        pair[0] != pair[1] and all(set(pair) != set(other) for other in nodes[:event])
        for event, pair in enumerate(nodes)
    ]
    links = []
    for event, pair in enumerate(nodes):
        for node in pair:
            earlier = [
                2 * other + nodes[other].index(node)
                for other in range(event)
                if is_new[other] and node in nodes[other]
            ]
            links.append((earlier[-1] if earlier else NONE) if is_new[event] else NOT_NEW)
    return links


@given(streams())
def test_following_is_the_next_instance_of_the_node(stream: EventStream) -> None:
    assert following_of(log_of(stream).events()) == following_by_search(stream)


@given(streams())
def test_a_new_pair_links_to_the_previous_neighbor(stream: EventStream) -> None:
    links = log_of(stream).events().previous_neighbor.tolist()
    assert links == previous_neighbor_by_search(stream)


@given(streams(), st.data())
def test_a_growing_log_equals_one_of_the_same_events(
    stream: EventStream, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    log = InteractionLog(DependencyGraph(NodeSpace.of(stream)))
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        log.graph.append(stream[start:stop])
        events, expected = log.events(), log_of(stream[:stop]).events()
        for name in ("hops", "pairs", "totals", "is_new", "previous_neighbor", "earlier_targets"):
            assert getattr(events, name).tolist() == getattr(expected, name).tolist(), name


def test_a_self_loop_is_followed_once() -> None:
    # event     0     1     2     3
    #         b → a a → a a → a b → a
    stream = EventStream.from_columns(list("baab"), list("aaaa"), range(4), kind="one-mode")
    assert following_of(log_of(stream).events()) == [6, 2, 4, NONE, 7, NONE, NONE, NONE]


def test_a_pair_is_new_once_in_either_direction_and_never_as_a_self_loop() -> None:
    # event     0     1     2     3     4
    #         a → b b → a a → a a → c c → b
    stream = EventStream.from_columns(list("abaac"), list("baacb"), range(5), kind="one-mode")
    assert log_of(stream).events().previous_neighbor.tolist() == [
        NONE, NONE, NOT_NEW, NOT_NEW, NOT_NEW, NOT_NEW, 0, NONE, 7, 1,
    ]  # fmt: skip


def test_memory_is_linear() -> None:
    stream = EventStream.from_columns([0] * 1000, [0] * 1000, range(1000))
    log = InteractionLog(DependencyGraph(NodeSpace.of(stream)))
    for event in range(1000):
        log.graph.append(stream[event : event + 1])
        log.events()
    assert len(log._arrays.hops) <= 4 * len(log.graph)
