import numpy as np
import pytest
from hypothesis import given, settings

from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.features.columns import SourceColumn
from tclgraph.testing.streams import KINDS
from tests.features.queries import TIME_SCALE, Case, cases, long_case


@settings(max_examples=150)
@given(cases())
def test_source_features_equal_the_reference(case: Case) -> None:
    for source in case.sources:
        case.assert_source_features(source)


@pytest.mark.parametrize("kind", KINDS)
def test_source_features_count_all_events(kind: GraphKind) -> None:
    case, sources = long_case(kind)
    for source in sources:
        case.assert_source_features(source)


def test_source_features_of_a_drawn_example() -> None:
    # event     0     1     2
    #         a → b a → b c → a   at hours 0, 30 and 40; queried at hour 40.5
    hour = 3_600.0
    stream = EventStream.from_columns(
        list("aac"), list("bba"), [0, 30 * hour, 40 * hour], kind="one-mode"
    )
    features = Case(stream, 40.5 * hour).features.source[stream.sources.ids(["a"])[0]]

    def number(column: SourceColumn) -> float:
        return round(float(np.expm1(features[column])), 1)

    assert number(SourceColumn.EVENT_AGE) * TIME_SCALE.unit == 1_800
    assert number(SourceColumn.AS_SOURCE_AGE) * TIME_SCALE.unit == 10.5 * hour
    assert features[SourceColumn.LAST_AS_TARGET] == 1
    assert number(SourceColumn.AS_SOURCE_SHORT) == 0
    assert number(SourceColumn.AS_SOURCE_MEDIUM) == 1
    assert number(SourceColumn.AS_SOURCE_LONG) == 2
    assert number(SourceColumn.AS_TARGET_SHORT) == 1
    assert number(SourceColumn.NUM_EVENTS) == 3
    assert features[SourceColumn.NEW_SHARE_1] == 1
    assert features[SourceColumn.NEW_SHARE_4] == 0.5
    assert features[SourceColumn.NEIGHBORS_PER_EVENT] == 0.5
    assert number(SourceColumn.NUM_NEIGHBORS) == 2
