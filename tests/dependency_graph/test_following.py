from hypothesis import given
from hypothesis import strategies as st

from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tests.streams import streams


def built(stream: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return graph


def following_by_looking_ahead(stream: EventStream) -> list[int]:
    """For each instance, walk on through the log until its node turns up."""
    offset = 0 if stream.kind == "one-mode" else stream.num_sources
    parties = [
        (int(source), int(target) + offset)
        for source, target in zip(stream.source, stream.target, strict=True)
    ]
    found = []
    for event, both in enumerate(parties):
        for side, node in enumerate(both):
            # A self-loop goes on from its source's side alone, and is reached there.
            goes_on = side == 0 or both[0] != node
            later = [e for e in range(event + 1, len(parties)) if node in parties[e]]
            found.append(
                2 * later[0] + parties[later[0]].index(node) if later and goes_on else NONE
            )
    return found


@given(streams())
def test_an_instance_is_followed_by_its_nodes_next_one(stream: EventStream) -> None:
    assert built(stream).following.tolist() == following_by_looking_ahead(stream)


@given(streams(), st.data())
def test_appending_piece_by_piece_gives_what_was_known_at_every_step(
    stream: EventStream, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    grown = DependencyGraph(NodeSpace.of(stream))
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        grown.append(stream[start:stop])
        assert grown.following.tolist() == built(stream[:stop]).following.tolist()


def test_a_self_loop_is_followed_once() -> None:
    # event     0     1     2     3
    #         b → a a → a a → a b → a
    stream = EventStream.from_columns(list("baab"), list("aaaa"), range(4), kind="one-mode")
    assert built(stream).following.tolist() == [6, 2, 4, NONE, 7, NONE, NONE, NONE]
