from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.features.columns import NUM_ACTIVITY_FEATURES, ActivityColumn
from tclgraph.testing.streams import KINDS
from tests.features.queries import TIME_SCALE, Case, cases, long_case

ACTIVITY = slice(0, NUM_ACTIVITY_FEATURES)


@settings(max_examples=150)
@given(cases())
def test_activity_features_equal_the_reference(case: Case) -> None:
    for source in case.sources:
        case.assert_activity_features(source, ACTIVITY)


@pytest.mark.parametrize("kind", KINDS)
def test_activity_features_count_all_events(kind: GraphKind) -> None:
    case, sources = long_case(kind)
    for source in sources:
        case.assert_activity_features(source, ACTIVITY)


@given(cases())
def test_activity_features_do_not_depend_on_the_source(case: Case) -> None:
    for source, other in pairwise(case.sources):
        of_source = case.candidate[source, ACTIVITY]
        assert of_source.tolist() == case.candidate[other, ACTIVITY].tolist()


def test_activity_features_of_a_drawn_example() -> None:
    # event     0     1     2
    #         a → b c → b b → c   at times 0, 10 and 30; queried at time 60
    stream = EventStream.from_columns(list("acb"), list("bbc"), [0, 10, 30], kind="one-mode")
    a, b, c = stream.sources.ids(list("abc")).tolist()
    features = np.expm1(Case(stream, 60.0).candidate[a, ACTIVITY]).round(2)
    age = features * TIME_SCALE.unit
    assert age[ActivityColumn.AS_TARGET_AGE, [b, c]].tolist() == [50, 30]
    assert age[ActivityColumn.AS_SOURCE_AGE, [a, b, c]].tolist() == [60, 30, 50]
    assert features[ActivityColumn.NUM_AS_TARGET, [a, b, c]].tolist() == [0, 2, 1]
    assert features[ActivityColumn.AS_TARGET_RANK, [a, b, c]].tolist() == [2, 1, 0]
    # The target of an event ranks before its source.
    assert features[ActivityColumn.EVENT_RANK, [a, b, c]].tolist() == [2, 1, 0]
    assert features[ActivityColumn.NUM_NEIGHBORS, [a, b, c]].tolist() == [1, 2, 1]
    assert features[ActivityColumn.NUM_FIRST_AS_TARGET, [a, b, c]].tolist() == [0, 2, 0]
