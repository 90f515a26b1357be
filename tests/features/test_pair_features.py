import numpy as np
import pytest
from hypothesis import given, settings

from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.features.columns import PairColumn
from tclgraph.features.state import HistoryState
from tclgraph.testing.streams import KINDS
from tests.features.queries import (
    TIME_SCALE,
    Case,
    assert_query_near,
    cases,
    log_of,
    long_case,
    long_stream,
    pairs_of,
)
from tests.reference.history import EVENTS_WITH_LATEST, MAX_EVENTS, MAX_PAIRS


@settings(max_examples=150)
@given(cases())
def test_pair_features_equal_the_reference(case: Case) -> None:
    for source in case.sources:
        case.assert_pair_features(source)


@given(cases())
def test_every_pair_knows_its_query(case: Case) -> None:
    for source in case.sources:
        rows = pairs_of(case.features, source)
        of_query = np.flatnonzero(case.features.pair_query == source)
        assert of_query.tolist() == list(range(rows.start, rows.stop))


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_latest_events_count(kind: GraphKind) -> None:
    case, (busy, *others) = long_case(kind)
    assert len(case.history.interactions(busy)) > MAX_EVENTS
    faithful = [event.neighbor for event in case.history.interactions(others[-1])]
    assert faithful.count(faithful[-1]) > EVENTS_WITH_LATEST + 1
    neighbors = {event.neighbor for event in case.history.interactions(busy)}
    assert neighbors > set(case.history.latest_neighbors(busy))
    for source in (busy, *others):
        case.assert_pair_features(source)


def test_only_the_latest_neighbors_have_pairs() -> None:
    num_events = MAX_PAIRS + 150
    stream = EventStream.from_columns([0] * num_events, range(num_events), range(num_events))
    case = Case(stream, float(num_events))
    latest = range(num_events - 1, num_events - 1 - MAX_PAIRS, -1)
    assert case.features.pair_target.tolist() == list(latest)
    case.assert_source_features(0)
    case.assert_pair_features(0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_of_a_busy_source_equals_its_single_queries(kind: GraphKind) -> None:
    stream = long_stream(kind)
    state, now = HistoryState(log_of(stream)), stream.time[-1] + 60.0
    busy, settled = stream.sources.ids([0, 1]).tolist()
    source = np.array([settled, busy, busy, busy, busy, busy])
    block = state.features(source, np.full(len(source), now))
    alone = state.features(source[1:2], np.array([now]))
    for query in range(1, len(source)):
        assert_query_near(block, query, alone)


def test_pair_features_of_a_drawn_example() -> None:
    # event     0     1     2     3     4
    #         a → b a → c b → a b → a a → c   at times 0, 10, 30, 40 and 50; queried at time 60
    stream = EventStream.from_columns(
        list("aabba"), list("bcaac"), [0, 10, 30, 40, 50], kind="one-mode"
    )
    case = Case(stream, 60.0)
    a, b, c = stream.sources.ids(list("abc")).tolist()
    rows = pairs_of(case.features, a)
    assert case.features.pair_target[rows].tolist() == [c, b]
    with_c, with_b = np.expm1(case.features.pair[rows]).round(2).tolist()
    assert with_b[PairColumn.AGE] * TIME_SCALE.unit == 20
    assert with_b[PairColumn.FORWARD_AGE] * TIME_SCALE.unit == 60
    assert with_b[PairColumn.NUM_FORWARD] == 1
    assert with_b[PairColumn.NUM_BACKWARD] == 2
    assert with_b[PairColumn.RUN_LENGTH] == 2
    assert with_b[PairColumn.MEAN_GAP] * TIME_SCALE.unit == 20
    assert with_b[PairColumn.EVENTS_SINCE] == 1
    # The latest neighbor is c; after its earlier event, event 1, came an event with b.
    assert with_b[PairColumn.NEXT_AFTER_LATEST] == 1
    assert with_c[PairColumn.NEXT_AFTER_LATEST] == 0
    assert with_c[PairColumn.NUM_AFTER_LATEST] == 1
