from enum import IntEnum

import pytest

from tclgraph.events.stream import EventStream
from tclgraph.features import columns
from tclgraph.features.columns import ActivityColumn, NearbyColumn, PairColumn, SourceColumn
from tests.features.queries import history_of

HISTORY = history_of(EventStream.from_columns(["a"], ["x"], [0.0]))
NOW = 60.0


@pytest.mark.parametrize(
    ("group", "reference"),
    [
        (SourceColumn, HISTORY.source_features(0, NOW)),
        (PairColumn, HISTORY.pair_features(0, HISTORY.first_target, NOW)),
        (ActivityColumn, HISTORY.activity_features(0, NOW)),
        (NearbyColumn, HISTORY.nearby_features(0)[0]),
    ],
)
def test_columns_have_the_names_and_the_order_of_the_reference(
    group: type[IntEnum], reference: dict[str, float]
) -> None:
    assert [column.name.lower() for column in group] == list(reference)
    assert list(group) == list(range(len(group)))


def test_columns_of_successive_windows_are_successive() -> None:
    for group, first in (
        (SourceColumn, "AS_SOURCE_SHORT"),
        (SourceColumn, "AS_TARGET_SHORT"),
        (PairColumn, "IN_SHORT"),
        (ActivityColumn, "AS_TARGET_SHORT"),
        (ActivityColumn, "AS_SOURCE_SHORT"),
    ):
        short = group[first]
        for offset, window in enumerate(("SHORT", "MEDIUM", "LONG")):
            assert group(short + offset).name == first.replace("SHORT", window)
    assert ActivityColumn.AS_TARGET_SHORT + columns.NUM_WINDOWS == ActivityColumn.AS_SOURCE_SHORT
    for offset, number in enumerate(columns.RECENT_EVENTS):
        assert SourceColumn(SourceColumn.NEW_SHARE_1 + offset).name == f"NEW_SHARE_{number}"
