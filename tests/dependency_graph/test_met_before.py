from hypothesis import given
from hypothesis import strategies as st

from tclgraph.dependency_graph.graph import NONE, NOT_FIRST, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tests.streams import streams


def built(stream: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return graph


def met_before_by_looking_back(stream: EventStream) -> list[int]:
    """For each event, ask all earlier ones whether these two met, and where each met others."""
    offset = 0 if stream.kind == "one-mode" else stream.num_sources
    parties = [
        (int(source), int(target) + offset)
        for source, target in zip(stream.source, stream.target, strict=True)
    ]
    is_first = [
        both[0] != both[1] and all(set(both) != set(other) for other in parties[:event])
        for event, both in enumerate(parties)
    ]
    found = []
    for event, both in enumerate(parties):
        for node in both:
            earlier = [
                2 * other + parties[other].index(node)
                for other in range(event)
                if is_first[other] and node in parties[other]
            ]
            found.append((earlier[-1] if earlier else NONE) if is_first[event] else NOT_FIRST)
    return found


@given(streams())
def test_a_first_meeting_points_at_the_one_before(stream: EventStream) -> None:
    assert built(stream).met_before.tolist() == met_before_by_looking_back(stream)


@given(streams(), st.data())
def test_appending_piece_by_piece_gives_the_same(stream: EventStream, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    grown = DependencyGraph(NodeSpace.of(stream))
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        grown.append(stream[start:stop])
    assert grown.met_before.tolist() == built(stream).met_before.tolist()


def test_either_way_and_oneself() -> None:
    # event     0     1     2     3     4
    #         a → b b → a a → a a → c c → b
    stream = EventStream.from_columns(list("abaac"), list("baacb"), range(5), kind="one-mode")
    assert built(stream).met_before.tolist() == [
        NONE, NONE, NOT_FIRST, NOT_FIRST, NOT_FIRST, NOT_FIRST, 0, NONE, 7, 1,
    ]  # fmt: skip
