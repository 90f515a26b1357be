"""What the ranker trains on: windows of consecutive events, their candidates and features."""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.encoding.training_windows import CandidateRoots, TrainingWindows
from tclgraph.events.stream import EventStream
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState

# Size of the sample on which the scaling of features is measured.
_SAMPLE_WINDOWS = 8
_SAMPLE_COLUMNS = 2048
# In place of minus infinity, which would give NaN in a softmax.
_LOG_ZERO = -1e9


@dataclass(frozen=True, slots=True)
class Window:
    """Events by row; columns are all targets, or a sample of them with the true ones."""

    features: HistoryFeatures
    column_of: IntArray
    """Column of every target, -1 if it has none."""
    true_column: IntArray
    """Column of each event's true target."""
    log_weight: FloatArray | None
    """If columns are a sample: logarithm of the number of targets each stands for, [B, K]."""
    roots: CandidateRoots | None
    """What an encoder needs to encode; None without an encoder."""


class RankerWindows(TrainingWindows):
    """Training windows with candidates and history features."""

    def __init__(self, train: EventStream, batch_size: int, max_candidates: int) -> None:
        super().__init__(train, batch_size)
        self._max_candidates = max_candidates
        self._interactions = InteractionLog(self.graph)

    def draw(
        self, window: int, random: np.random.Generator, absent_node: int | None = None
    ) -> Window:
        """Draw the candidates of a window; with an absent node also the roots for an encoder."""
        event = self.events(window)
        true, num_targets = self.targets(event), self.space.num_targets
        columns, log_weight = np.arange(num_targets), None
        if num_targets > self._max_candidates:
            sample = random.choice(num_targets, size=self._max_candidates, replace=False)
            columns = np.union1d(sample, true)
            log_weight = _log_weights(columns, sample, true, num_targets)
        column_of = np.full(num_targets, -1)
        column_of[columns] = np.arange(len(columns))
        return Window(
            features=self.features(event, columns),
            column_of=column_of,
            true_column=column_of[true],
            log_weight=log_weight,
            roots=None
            if absent_node is None
            else self.candidate_roots(event, columns, absent_node),
        )

    def features(self, event: IntArray, columns: IntArray) -> HistoryFeatures:
        """Return the features just before each of these consecutive events."""
        history = HistoryState(self._interactions, int(event[0]))
        return history.features(self.sources(event), self.graph.time[event], columns, reveal=True)

    def feature_sample(self) -> list[HistoryFeatures]:
        """Return features of windows spread over the stream, without the first quarter."""
        windows = _spread(len(self) // 4, len(self) - 1, _SAMPLE_WINDOWS)
        columns = _spread(0, self.space.num_targets - 1, _SAMPLE_COLUMNS)
        return [self.features(self.events(window), columns) for window in windows.tolist()]


def _spread(first: int, last: int, count: int) -> IntArray:
    """Return at most `count` integers, evenly spread from the first to the last.

    >>> _spread(2, 9, 3).tolist(), _spread(2, 4, 99).tolist()
    ([2, 5, 9], [2, 3, 4])
    """
    return np.unique(np.linspace(first, last, count).astype(np.int64))


def _log_weights(
    columns: IntArray, sample: IntArray, true: IntArray, num_targets: int
) -> FloatArray:
    """Return the logarithm of the number of targets that each column stands for, [B, K].

    The true target stands for itself, and the rest of the sample for all others. A column that is
    there only because it is the true target of another event stands for nothing.
    """
    is_sampled = np.isin(columns, sample)
    is_true = columns == true[:, None]
    is_other = is_sampled & ~is_true
    num_others = np.maximum(is_other.sum(axis=1, keepdims=True), 1)
    other_weight = np.log((num_targets - 1) / num_others)
    return np.where(is_true, 0.0, np.where(is_other, other_weight, _LOG_ZERO))
