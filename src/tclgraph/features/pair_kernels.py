"""The pair features, built up while the source's events are visited, the latest first."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import NUM_PAIR_FEATURES, WINDOWS, PairColumn


class PairWorkspace(NamedTuple):
    """Neighbors of a source, one row each in the order of their latest event, the latest first.

    The features are in double precision, because numbers are counted in them.
    """

    row_of: IntArray
    """[T] Row of each target, or -1. It is -1 for all targets between two queries."""
    target: IntArray
    """[R] Target of each row."""
    features: FloatArray
    """[R, pair features]"""
    first_step: IntArray
    """[R] Number of the source's events after the pair's first event."""
    last_elapsed: FloatArray
    """[R] Seconds since the pair's last event."""
    first_elapsed: FloatArray
    """[R] Seconds since the pair's first event."""


@kernel
def pair_workspace(num_targets: int, max_events: int) -> Any:
    """Return a workspace for sources of which at most `max_events` events count."""
    num_rows = min(max_events, num_targets)
    return PairWorkspace(
        np.full(num_targets, -1, np.int64),
        np.empty(num_rows, np.int64),
        np.empty((num_rows, NUM_PAIR_FEATURES)),
        np.empty(num_rows, np.int64),
        np.empty(num_rows),
        np.empty(num_rows),
    )


@kernel
def start_pair(
    row: int, target: int, elapsed: float, is_forward: bool, step: int, pairs: PairWorkspace
) -> None:
    """Begin a row with a pair's latest event, after which the source has `step` other events."""
    pairs.row_of[target] = row
    pairs.target[row] = target
    pairs.last_elapsed[row] = elapsed
    features = pairs.features[row]
    features[:] = 0.0
    features[PairColumn.AGE] = np.log1p(elapsed)
    features[PairColumn.RECENCY_RANK] = np.log(row + 1)
    features[PairColumn.LAST_IS_BACKWARD] = 0.0 if is_forward else 1.0
    features[PairColumn.EVENTS_SINCE] = np.log1p(step)


@kernel
def count_pair_event(
    row: int, elapsed: float, is_forward: bool, step: int, pairs: PairWorkspace
) -> None:
    """Count an event of a pair, after all later events of the pair."""
    features = pairs.features[row]
    pairs.first_step[row] = step
    pairs.first_elapsed[row] = elapsed
    age = PairColumn.FORWARD_AGE if is_forward else PairColumn.BACKWARD_AGE
    has_event = PairColumn.HAS_FORWARD if is_forward else PairColumn.HAS_BACKWARD
    if features[has_event] == 0:
        features[age] = np.log1p(elapsed)
        features[has_event] = 1.0
    features[PairColumn.NUM_FORWARD if is_forward else PairColumn.NUM_BACKWARD] += 1.0
    # The run goes on as long as no event of the other direction has been counted.
    is_same_direction = (features[PairColumn.LAST_IS_BACKWARD] == 0.0) == is_forward
    num_other = features[PairColumn.NUM_BACKWARD if is_forward else PairColumn.NUM_FORWARD]
    if is_same_direction and num_other == 0.0:
        features[PairColumn.RUN_LENGTH] += 1.0
    for window in range(len(WINDOWS)):
        if elapsed < WINDOWS[window]:
            features[PairColumn.IN_HOUR + window] += 1.0


@kernel
def finish_pairs(num_pairs: int, pairs: PairWorkspace) -> None:
    """Turn the counts of all rows into features, and clear `row_of` for the next source."""
    num_after_latest = 0.0
    for row in range(num_pairs):
        num_after_latest += pairs.features[row, PairColumn.NEXT_AFTER_LATEST]
    for row in range(num_pairs):
        features = pairs.features[row]
        num_events = features[PairColumn.NUM_FORWARD] + features[PairColumn.NUM_BACKWARD]
        if num_events > 1:
            span = pairs.first_elapsed[row] - pairs.last_elapsed[row]
            features[PairColumn.MEAN_GAP] = np.log1p(span / (num_events - 1))
            features[PairColumn.HAS_GAP] = 1.0
        features[PairColumn.NUM_AFTER_LATEST] = np.log1p(num_after_latest)
        for column in (
            PairColumn.NUM_FORWARD,
            PairColumn.NUM_BACKWARD,
            PairColumn.RUN_LENGTH,
            PairColumn.IN_HOUR,
            PairColumn.IN_DAY,
            PairColumn.IN_WEEK,
            PairColumn.NEXT_AFTER_LATEST,
        ):
            features[column] = np.log1p(features[column])
        pairs.row_of[pairs.target[row]] = -1
