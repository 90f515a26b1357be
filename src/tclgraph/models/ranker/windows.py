"""What the ranker trains on: windows of consecutive events, their candidates and features."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tclgraph.arrays import BoolArray, FloatArray, IntArray
from tclgraph.encoding.training_windows import CandidateRoots, TrainingWindows
from tclgraph.events.stream import EventStream
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.snapshots import HistorySnapshots
from tclgraph.features.time_scale import TimeScale
from tclgraph.models.ranker.config import RankerConfig

# Size of the sample on which the scaling of features is measured.
_SAMPLE_WINDOWS = 8
_SAMPLE_COLUMNS = 2048


class CandidateColumns(NamedTuple):
    """The candidates that the columns of a window stand for."""

    column_of: IntArray
    """Column of every target, -1 if it has none."""
    is_sampled: BoolArray | None = None
    """Whether each column was drawn, not only added as the true target of an event; None if columns
    are all targets."""

    def is_used(self, true_target: IntArray) -> BoolArray:
        """Return whether each column counts in the loss of an event with one of these targets."""
        if self.is_sampled is None:
            return np.ones(len(self.column_of), dtype=bool)
        is_used = self.is_sampled.copy()
        is_used[self.column_of[true_target]] = True
        return is_used


class Window(NamedTuple):
    """Events by row; columns are all targets, or a sample of them with the true ones."""

    features: HistoryFeatures
    candidates: CandidateColumns
    true_target: IntArray
    """True target of each event."""
    roots: CandidateRoots | None
    """What an encoder has to encode; None without an encoder, or if no event is compared with
    candidates."""


class RankerWindows(TrainingWindows):
    """Training windows with candidates and history features."""

    def __init__(self, train: EventStream, config: RankerConfig) -> None:
        super().__init__(train, config.batch_size)
        self._max_candidates = config.max_candidates
        # With both, the loss of a repeat is that of the repeat head, and that of any other event is
        # that of the explore head, so that either needs no features for the other.
        self._split_by_repeat = config.repeat_head and config.gate
        self.time_scale = TimeScale.measure(self.graph)
        self._snapshots = HistorySnapshots(InteractionLog(self.graph, self.time_scale))

    def draw(
        self, window: int, random: np.random.Generator, absent_node: int | None = None
    ) -> Window:
        """Draw the candidates of a window; with an absent node also the roots for an encoder."""
        event = self.events(window)
        true, num_targets = self.targets(event), self.space.num_targets
        columns, is_sampled = np.arange(num_targets), None
        if num_targets > self._max_candidates:
            sample = random.choice(num_targets, size=self._max_candidates, replace=False)
            columns = np.union1d(sample, true)
            is_sampled = np.isin(columns, sample)
        column_of = np.full(num_targets, -1)
        column_of[columns] = np.arange(len(columns))
        # From a generator of its own, so that it does not change what else is drawn.
        sample_offset = random.spawn(1)[0].random(len(event))
        features = self.features(event, columns, sample_offset, split=self._split_by_repeat)
        candidates, roots = CandidateColumns(column_of, is_sampled), None
        compared = features.candidate_query
        if absent_node is not None and len(compared):
            used = np.flatnonzero(candidates.is_used(true[compared]))
            roots = self.candidate_roots(event, columns[used], absent_node, compared)
            # The loss ignores the match scores of other columns, so these may have any version.
            version = np.zeros((len(compared), len(columns)), np.int64)
            version[:, used] = roots.version
            roots = replace(roots, version=version)
        return Window(features, candidates, true, roots)

    def features(
        self,
        event: IntArray,
        columns: IntArray,
        sample_offset: FloatArray | None = None,
        *,
        split: bool = False,
    ) -> HistoryFeatures:
        """Return the features just before each of these consecutive events.

        See `HistoryState.features` for `sample_offset`, and for `split` as `split_by_repeat`.
        """
        history = self._snapshots.before(int(event[0]))
        return history.features(
            self.sources(event),
            self.graph.time[event],
            columns,
            reveal=True,
            sample_offset=sample_offset,
            split_by_repeat=split,
        )

    def feature_sample(self) -> Iterator[HistoryFeatures]:
        """Yield features of windows spread over the stream, without the first quarter."""
        windows = _spread(len(self) // 4, len(self) - 1, _SAMPLE_WINDOWS)
        columns = _spread(0, self.space.num_targets - 1, _SAMPLE_COLUMNS)
        for window in windows.tolist():
            yield self.features(self.events(window), columns)


def _spread(first: int, last: int, count: int) -> IntArray:
    """Return at most `count` integers, evenly spread from the first to the last.

    >>> _spread(2, 9, 3).tolist(), _spread(2, 4, 99).tolist()
    ([2, 5, 9], [2, 3, 4])
    """
    return np.unique(np.linspace(first, last, count).astype(np.int64))
