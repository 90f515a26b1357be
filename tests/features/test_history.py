"""The compiled facts against a slow reference, and against themselves asked in another way."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.features import kernels
from tclgraph.features.history import HistoryFeatures, HistoryState
from tests.reference import history as reference
from tests.reference.history import Known
from tests.streams import KINDS, streams

# Times of drawn streams are up to 20 ticks apart. A tick of a quarter hour or half a day puts
# events on both sides of the hour, the day and the week, and often at the very end of one.
TICKS = (0.25, 900.0, 10_000.0, 43_200.0)
NUM_UNSEEN = 2


@st.composite
def spread_streams(draw: st.DrawFn, *, min_events: int = 1) -> EventStream:
    stream = draw(streams(min_events=min_events))
    ticks = (stream.time - 1_082_040_961) * 4
    time = 1_082_040_961 + ticks * draw(st.sampled_from(TICKS))
    return EventStream.from_columns(stream.source, stream.target, time, kind=stream.kind)


def space_of(stream: EventStream) -> NodeSpace:
    """With some nodes that never take part."""
    return NodeSpace(
        kind=stream.kind,
        num_sources=stream.num_sources + NUM_UNSEEN,
        num_targets=stream.num_targets + NUM_UNSEEN,
    )


def built(stream: EventStream) -> DependencyGraph:
    graph = DependencyGraph(space_of(stream))
    graph.append(stream)
    return graph


def sources_of(graph: DependencyGraph) -> IntArray:
    return np.arange(graph.space.num_sources)


def all_at(graph: DependencyGraph, time: float) -> tuple[IntArray, FloatArray]:
    """A query of every source at one time."""
    return sources_of(graph), np.full(graph.space.num_sources, time)


def each_of(stream: EventStream) -> tuple[IntArray, FloatArray]:
    """A query just before each. Copies, as loops would be compiled anew for read-only columns."""
    return stream.source.copy(), stream.time.copy()


def strangers(source: IntArray, num_sources: int, seed: int) -> IntArray:
    """Half of the queries, on average, by any other source."""
    random = np.random.default_rng(seed)
    is_stranger = random.random(len(source)) < 0.5
    return np.where(is_stranger, random.integers(num_sources, size=len(source)), source)


def known_of(stream: EventStream, num_known: int) -> Known:
    columns = (stream.source.tolist(), stream.target.tolist(), stream.time.tolist())
    events = list(zip(*columns, strict=True))[:num_known]
    space = space_of(stream)
    return Known(events, space.first_target, space.num_targets)


def assert_agree(fast: ScoreArray, slow: Sequence[Sequence[float]], what: str) -> None:
    """Both are logarithms or shares, and one is in single precision."""
    assert_allclose(fast, np.array(slow), rtol=0, atol=1e-5, err_msg=what)


def assert_as_the_reference_has_it(
    facts: HistoryFeatures, query: int, known: Known, source: int, now: float, space: NodeSpace
) -> None:
    own = slice(facts.pair_start[query], facts.pair_start[query + 1])
    targets = [partner - space.first_target for partner in known.partners(source)]
    assert facts.pair_target[own].tolist() == targets
    assert np.flatnonzero(facts.pair_query == query).tolist() == list(range(own.start, own.stop))
    assert_agree(facts.source[query][None], [known.source_facts(source, now)], "source")

    nearby = known.nearby(source)
    slow = [known.candidate_facts(one, nearby, now) for one in range(space.num_targets)]
    assert_agree(facts.candidate[query].T, slow, "candidate")
    if targets:
        pairs = [known.pair_facts(source, one, now) for one in known.partners(source)]
        assert_agree(facts.pair[own], pairs, "pair")
        assert_agree(facts.pair_candidate[own], [slow[one] for one in targets], "pair_candidate")

    assert facts.source_instance[query] == known.last_instance(source)
    nodes = space.target_nodes.tolist()
    assert facts.instance[query].tolist() == [known.last_instance(node) for node in nodes]


def assert_equal(one: HistoryFeatures, other: HistoryFeatures) -> None:
    for field in fields(HistoryFeatures):
        left, right = getattr(one, field.name), getattr(other, field.name)
        assert_array_equal(left, right, err_msg=field.name, strict=True)


def assert_query_equal(block: HistoryFeatures, query: int, alone: HistoryFeatures) -> None:
    own = slice(block.pair_start[query], block.pair_start[query + 1])
    assert alone.pair_start.tolist() == [0, own.stop - own.start]
    for name in ("source", "candidate", "source_instance", "instance"):
        assert_array_equal(getattr(block, name)[query], getattr(alone, name)[0], err_msg=name)
    for name in ("pair_target", "pair", "pair_candidate"):
        assert_array_equal(getattr(block, name)[own], getattr(alone, name), err_msg=name)


@settings(max_examples=150)
@given(spread_streams(), st.data())
def test_facts_are_what_their_documentation_says(stream: EventStream, data: st.DataObject) -> None:
    num_known = data.draw(st.integers(0, len(stream)))
    now = stream.time[max(num_known - 1, 0)] + data.draw(st.sampled_from((0.0, *TICKS)))
    graph = built(stream[:num_known])
    facts = HistoryState(graph).facts(*all_at(graph, now))
    known = known_of(stream, num_known)
    for source in sources_of(graph).tolist():
        assert_as_the_reference_has_it(facts, source, known, source, now, graph.space)


@given(spread_streams(), st.data(), st.integers(0, 999))
def test_a_block_that_reveals_equals_one_query_at_a_time(
    stream: EventStream, data: st.DataObject, seed: int
) -> None:
    start = data.draw(st.integers(0, len(stream) - 1))
    stop = data.draw(st.integers(start + 1, len(stream)))
    source, time = each_of(stream[start:stop])
    source = strangers(source, space_of(stream).num_sources, seed)
    block = HistoryState(built(stream), start).facts(source, time, reveals=True)
    growing = built(stream[:start])
    present = HistoryState(growing)
    for query in range(stop - start):
        alone = present.facts(source[query : query + 1], time[query : query + 1])
        assert_query_equal(block, query, alone)
        growing.append(stream[start + query : start + query + 1])
        present.follow()


@given(spread_streams(), st.data())
def test_nothing_later_leaks(stream: EventStream, data: st.DataObject) -> None:
    num_known = data.draw(st.integers(0, len(stream)))
    now = stream.time[max(num_known - 1, 0)] + data.draw(st.sampled_from((0.0, *TICKS)))
    whole, ended = built(stream), built(stream[:num_known])
    assert_equal(
        HistoryState(whole, num_known).facts(*all_at(whole, now)),
        HistoryState(ended).facts(*all_at(ended, now)),
    )


@given(spread_streams(), st.data())
def test_nothing_after_a_block_leaks_into_it(stream: EventStream, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(stream) - 1))
    stop = data.draw(st.integers(start + 1, len(stream)))
    queries = each_of(stream[start:stop])
    assert_equal(
        HistoryState(built(stream), start).facts(*queries, reveals=True),
        HistoryState(built(stream[:stop]), start).facts(*queries, reveals=True),
    )


@given(spread_streams(), st.data())
def test_following_in_pieces_equals_at_once(stream: EventStream, data: st.DataObject) -> None:
    graph = built(stream)
    queries = all_at(graph, stream.time[-1] + data.draw(st.sampled_from((0.0, *TICKS))))
    present = HistoryState(graph, 0)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
    for num_known in sorted(cuts):
        present.follow(num_known)
        # To be asked on the way must not matter either.
        present.facts(*queries)
    present.follow()
    assert_equal(present.facts(*queries), HistoryState(graph).facts(*queries))


@given(spread_streams(), st.data())
def test_columns_are_those_of_the_full_table(stream: EventStream, data: st.DataObject) -> None:
    graph = built(stream)
    queries = all_at(graph, stream.time[-1] + 60.0)
    present = HistoryState(graph)
    chosen = data.draw(st.lists(st.integers(0, graph.space.num_targets - 1), max_size=6))
    columns = np.array(chosen, dtype=np.int64)
    some, full = present.facts(*queries, columns), present.facts(*queries)
    assert_array_equal(some.candidate, full.candidate[:, :, columns], strict=True)
    assert_array_equal(some.instance, full.instance[:, columns], strict=True)
    for name in ("source", "pair_start", "pair_target", "pair", "pair_candidate"):
        assert_array_equal(getattr(some, name), getattr(full, name), err_msg=name)


@given(spread_streams(), st.data())
def test_asking_changes_nothing(stream: EventStream, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(stream) - 1))
    graph = built(stream)
    present = HistoryState(graph, start)
    queries = all_at(graph, stream.time[max(start - 1, 0)])
    first = present.facts(*queries)
    # Much later the windows are empty, and after a block the events of it have happened.
    present.facts(*all_at(graph, stream.time[-1] + 1e7))
    present.facts(*each_of(stream[start:]), reveals=True)
    assert_equal(present.facts(*queries), first)


@given(spread_streams(), st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 999))
def test_a_block_equals_single_queries(stream: EventStream, hours: list[int], seed: int) -> None:
    graph = built(stream)
    present = HistoryState(graph)
    source = np.random.default_rng(seed).integers(graph.space.num_sources, size=len(hours))
    time = stream.time[-1] + 3_600.0 * np.sort(hours)
    block = present.facts(source, time)
    for query in range(len(hours)):
        alone = present.facts(source[query : query + 1], time[query : query + 1])
        assert_query_equal(block, query, alone)


def test_queries_of_a_block_may_come_in_any_order_of_time() -> None:
    stream = EventStream.from_columns(["a"], ["x"], [0.0])
    present = HistoryState(built(stream))
    later, sooner = 2 * 3_600.0, 60.0
    block = present.facts(np.array([0, 0]), np.array([later, sooner]))
    assert_query_equal(block, 1, present.facts(np.array([0]), np.array([sooner])))


def long_stream(kind: GraphKind) -> EventStream:
    """In which source 0 is busy, and source 1 keeps to four partners in the end.

    Source 0 has met ten of its partners only at the beginning, and most others again and again.
    """
    random = np.random.default_rng(7)
    num_events = 3_600
    source = np.where(random.random(num_events) < 0.65, 0, random.integers(1, 6, num_events))
    target = random.integers(10, 100, num_events)
    target[:60] = random.integers(0, 10, 60)
    target[np.flatnonzero(source == 1)[-130:]] = random.integers(90, 94, 130)
    if kind == "one-mode":
        target += 6
        is_turned = random.random(num_events) < 0.3
        source, target = np.where(is_turned, target, source), np.where(is_turned, source, target)
    time = np.cumsum(random.choice([0.0, 60.0, 600.0, 3_600.0], size=num_events))
    return EventStream.from_columns(source, target, time, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_further_back_than_the_bounds(kind: GraphKind) -> None:
    stream = long_stream(kind)
    known = known_of(stream, len(stream))
    busy, settled, other = stream.sources.ids([0, 1, 2]).tolist()

    def met(source: int, num_latest: int) -> set[int]:
        return {one.partner for one in known.meetings(source)[-num_latest:]}

    # All bounds tell: without them there would be other partners, or others near these.
    assert met(busy, len(stream)) > met(busy, reference.REMEMBERED)
    assert len(met(busy, reference.NEAR_SOURCE_EVENTS)) > reference.NEAR_PARTNERS
    assert len(met(settled, reference.NEAR_SOURCE_EVENTS)) < reference.NEAR_PARTNERS
    assert met(settled, len(stream)) > met(settled, reference.NEAR_SOURCE_EVENTS)
    for partner in met(settled, reference.NEAR_SOURCE_EVENTS):
        assert len(known.meetings(partner)) > reference.NEAR_EVENTS
    assert len(known.acquaintances(busy)) > reference.WALK_CHOICES

    present, now = HistoryState(built(stream)), stream.time[-1] + 60.0
    source = np.array([settled, busy, other, busy, busy, busy])
    facts = present.facts(source, np.full(len(source), now))
    # More pairs than there is room for at first.
    assert facts.pair_start[-1] > 64 * len(source)
    for query in range(3):
        asking = int(source[query])
        assert_as_the_reference_has_it(facts, query, known, asking, now, space_of(stream))
    alone = present.facts(source[1:2], np.array([now]))
    for query in (1, 3, 4, 5):
        assert_query_equal(facts, query, alone)


def test_more_partners_than_are_remembered() -> None:
    num_events = reference.REMEMBERED + 50
    stream = EventStream.from_columns([0] * num_events, range(num_events), range(num_events))
    known, now = known_of(stream, num_events), float(num_events)
    facts = HistoryState(built(stream)).facts(np.array([0]), np.array([now]))
    latest = range(num_events - 1, num_events - 1 - reference.REMEMBERED, -1)
    assert facts.pair_target.tolist() == list(latest)
    assert_agree(facts.source, [known.source_facts(0, now)], "source")


def test_walks_that_pass_more_nodes_than_are_kept_at_hand() -> None:
    num_sources, num_choices = 5, reference.WALK_CHOICES
    source, target = [], []
    for start in range(num_sources):
        for item in range(num_choices):
            own = start * num_choices + item
            source += [start, *(num_sources + own * num_choices + np.arange(num_choices)).tolist()]
            target += [own] * (1 + num_choices)
    stream = EventStream.from_columns(source, target, range(len(source)))
    assert stream.num_sources > kernels.WALK_ROWS
    present, now = HistoryState(built(stream)), float(len(stream))
    asking = np.array([*stream.sources.ids(range(num_sources)).tolist()] * 2)
    block = present.facts(asking, np.full(len(asking), now))
    for query, one in enumerate(asking.tolist()):
        assert_query_equal(block, query, present.facts(np.array([one]), np.array([now])))
