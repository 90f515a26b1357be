import numpy as np
import pytest
from hypothesis import given, settings

from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.features import walk_kernels
from tclgraph.features.columns import NUM_ACTIVITY_FEATURES, NearbyColumn
from tclgraph.features.log_arrays import PairLink
from tclgraph.features.state import HistoryState
from tclgraph.testing.streams import KINDS
from tests.features.queries import (
    Case,
    assert_query_near,
    cases,
    log_of,
    long_case,
    long_stream,
)
from tests.reference import history as reference

NEARBY = slice(NUM_ACTIVITY_FEATURES, None)


@settings(max_examples=150)
@given(cases())
def test_nearby_features_equal_the_reference(case: Case) -> None:
    for source in case.sources:
        case.assert_nearby_features(source, NEARBY)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_latest_events_and_neighbors_count(kind: GraphKind) -> None:
    case, (busy, settled, other) = long_case(kind)

    def neighbors(source: int, num_latest: int) -> set[int]:
        return {event.neighbor for event in case.history.interactions(source)[-num_latest:]}

    # The stream exceeds every limit, so a kernel without one of them gives other features.
    num_events = reference.NEARBY_SOURCE_EVENTS
    assert len(neighbors(busy, num_events)) > reference.NEARBY_NEIGHBORS
    assert len(neighbors(settled, num_events)) < reference.NEARBY_NEIGHBORS
    assert neighbors(settled, 10_000) > neighbors(settled, num_events)
    for neighbor in neighbors(settled, num_events):
        assert len(case.history.interactions(neighbor)) > reference.NEARBY_EVENTS
    first_choices, second_choices, last_choices = reference.WALK_CHOICES
    assert len(case.history.first_interactions(busy)) > max(first_choices, last_choices)
    latest = [event.neighbor for event in case.history.first_interactions(busy)][-first_choices:]
    assert any(len(case.history.first_interactions(node)) > second_choices for node in latest)
    for source in (busy, settled, other):
        case.assert_nearby_features(source, NEARBY)


@pytest.mark.parametrize("kind", KINDS)
def test_walks_of_several_groups_equal_single_walks(kind: GraphKind) -> None:
    """Nodes gain neighbors within a group and between groups, and walks lose their oldest ones."""
    stream = long_stream(kind)[:2_000]
    log, start = log_of(stream), 600
    count = 3 * walk_kernels.NUM_LANES + 5
    source, time = stream.source[start : start + count], stream.time[start : start + count]
    block = HistoryState(log, start).features(source, time, reveal=True)
    is_new = log.events().pairs[start : start + count, PairLink.PREVIOUS] < 0
    assert is_new.sum() > 3
    for query in range(count):
        rows = slice(query, query + 1)
        alone = HistoryState(log, start + query).features(source[rows], time[rows])
        assert_query_near(block, query, alone)


def test_nearby_features_of_a_drawn_example() -> None:
    # event     0     1     2     3
    #         a → b c → b c → d a → d
    stream = EventStream.from_columns(list("acca"), list("bbdd"), range(4), kind="one-mode")
    a, b, c, d = stream.sources.ids(list("abcd")).tolist()
    features = np.expm1(Case(stream, 9.0).candidate[a, NEARBY]).round(3)
    # d is the latest neighbor of a and had an event with c; b is the second and had one, too.
    assert features[NearbyColumn.NEIGHBOR_EVENTS, [a, b, c, d]].tolist() == [0, 0, 1.5, 0]
    # After its event with b, c turned to d. It had no event after the one with d.
    assert features[NearbyColumn.NEXT_AFTER_LATEST].tolist() == [0] * 6
    assert features[NearbyColumn.NEXT_AFTER_EARLIER, [a, b, c, d]].tolist() == [0, 0, 0, 0.5]
    # Three steps from a end at b or d. There are 6 targets, so chance is 1/6.
    assert features[NearbyColumn.WALK, [a, b, c, d]].tolist() == [0, 30, 0, 30]
