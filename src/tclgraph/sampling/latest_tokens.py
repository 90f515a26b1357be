"""The latest tokens of every node, and windows over them.

A node's sequence begins with a start token and gets one token with every event of the node, in the
order of events. A *window* holds the last tokens of a sequence, the newest in the last column. All
windows have the same size; that of a short sequence begins with padding, whose values are ignored.

Shapes: V nodes, K appended tokens, W windows, P columns of a window.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tclgraph.arrays import BoolArray, IntArray

START = 0
"""Token that every sequence begins with; the tokens of events are larger."""
NO_TOKEN = -1
"""Stands for a token that is not among the appended ones."""

TokenArray: TypeAlias = NDArray[np.int32]


class LatestTokens:
    """The newest window of every node; its memory does not grow with the number of events.

    >>> node, token = np.array([1, 0, 1]), np.array([7, 8, 9])
    >>> appended = LatestTokens(num_nodes=2, size=3).append(node, token)
    >>> appended.windows_after(np.array([2])).tolist(), appended.previous.tolist()
    ([[0, 7, 9]], [-1, -1, 0])
    """

    def __init__(self, num_nodes: int, size: int) -> None:
        self._window_VP = np.full((num_nodes, size), START, dtype=np.int32)
        self._count_V = np.ones(num_nodes, dtype=np.int64)

    def append(self, node_K: IntArray, token_K: IntArray) -> "AppendedTokens":
        """Append tokens to the sequences of their nodes, in the given order."""
        num_tokens, size = len(node_K), self._window_VP.shape[1]
        order_K = np.argsort(node_K, kind="stable")  # by node, and in the given order within a node
        place_K = np.argsort(order_K)
        is_first_K = np.ones(num_tokens, dtype=bool)
        is_first_K[1:] = node_K[order_K[1:]] != node_K[order_K[:-1]]
        first, group_K = np.flatnonzero(is_first_K), np.cumsum(is_first_K) - 1
        nodes = node_K[order_K[first]]
        # One array with a part for each node: its window so far, then its new tokens.
        position_K = np.arange(num_tokens) + size * (group_K + 1)
        tokens = np.empty(num_tokens + size * len(first), dtype=np.int32)
        tokens[position_K[first][:, None] + np.arange(-size, 0)] = self._window_VP[nodes]
        tokens[position_K] = token_K[order_K]
        count_K = self._count_V[nodes][group_K] + np.arange(num_tokens) - first[group_K] + 1
        appended = AppendedTokens(
            size=size,
            node=node_K,
            previous=np.where(is_first_K, NO_TOKEN, np.roll(order_K, 1))[place_K],
            is_last=np.append(is_first_K[1:], True)[:num_tokens][place_K],
            count=count_K[place_K],
            tokens=tokens,
            position=position_K[place_K],
        )
        last = np.flatnonzero(appended.is_last)
        self._window_VP[node_K[last]] = appended.windows_after(last)
        self._count_V[node_K[last]] = appended.count[last]
        return appended


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedTokens:
    """Tokens that were appended together, with access to the windows before and after each."""

    size: int
    """Number of columns of a window."""
    node: IntArray
    """Node of each token."""
    previous: IntArray
    """Index of the previous token of the same node among these tokens, or NO_TOKEN."""
    is_last: BoolArray
    """Whether the node has no later token among these."""
    count: IntArray
    """Number of tokens of the node's sequence up to this one, the start token included."""
    tokens: TokenArray
    """For each node its window before these tokens, then its new tokens."""
    position: IntArray
    """Position of each token in `tokens`."""

    def windows_after(self, index: IntArray) -> TokenArray:
        """Return the windows whose newest tokens are those with the given indices, [W, P]."""
        windows: TokenArray = self.tokens[
            self.position[index][:, None] + np.arange(1 - self.size, 1)
        ]
        return windows

    def windows_before(self, index: IntArray) -> TokenArray:
        """Return the windows just before the tokens with the given indices, [W, P]."""
        windows: TokenArray = self.tokens[self.position[index][:, None] + np.arange(-self.size, 0)]
        return windows

    def lengths_after(self, index: IntArray) -> IntArray:
        """Return the numbers of columns of `windows_after` that are not padding."""
        return np.minimum(self.count[index], self.size)


class LabeledWindows(NamedTuple):
    """Windows whose columns are to predict the next token of the sequence."""

    token: TokenArray
    """Tokens of the windows, [W, P]."""
    length: IntArray
    """Number of columns of each window that are not padding."""
    label: TokenArray
    """Token that follows each column, [W, P]."""
    is_counted: BoolArray
    """Whether the prediction of a column counts in the loss, [W, P]."""

    def select(self, rows: IntArray, num_columns: int) -> "LabeledWindows":
        """Return the last columns of some windows."""
        columns = slice(self.token.shape[1] - num_columns, None)
        return LabeledWindows(
            self.token[rows, columns],
            self.length[rows],
            self.label[rows, columns],
            self.is_counted[rows, columns],
        )


class TrainingSequences:
    """Complete sequences, cut into windows in which every token counts as a label exactly once.

    A sequence that fits into a window is one. In a longer one, windows end half a window apart, and
    only those labels of a window count that the windows before do not have. So such a label has at
    least half a window before it. Tokens larger than `max_label` never count, and windows without
    labels are left out.
    """

    def __init__(self, tokens: AppendedTokens, max_label: int) -> None:
        size, stride = tokens.size, max(1, tokens.size // 2)
        number = tokens.count - 1  # of the token in its sequence, without the start token
        is_end = tokens.is_last | ((number >= size) & ((number - size) % stride == 0))
        self._tokens, self._max_label = tokens, max_label
        self._end = np.flatnonzero(is_end)
        number = number[self._end]
        self._num_new = np.where(number <= size, number, (number - size - 1) % stride + 1)
        has_label = self.windows(np.arange(len(self))).is_counted.any(axis=1)
        self._end, self._num_new = self._end[has_label], self._num_new[has_label]

    def __len__(self) -> int:
        return len(self._end)

    def windows(self, index: IntArray) -> LabeledWindows:
        """Return windows by their numbers."""
        tokens, end, num_new = self._tokens, self._end[index], self._num_new[index]
        label = tokens.windows_after(end)
        is_new = np.arange(tokens.size) >= tokens.size - num_new[:, None]
        return LabeledWindows(
            token=tokens.windows_before(end),
            length=np.minimum(tokens.count[end] - 1, tokens.size),
            label=label,
            is_counted=is_new & (label <= self._max_label),
        )


def chunks_by_length(length: IntArray, max_cells: int) -> Iterator[tuple[IntArray, int]]:
    """Yield the indices of windows of similar lengths, with the largest length of each chunk.

    A chunk has at most `max_cells` columns in all, or a single window.

    >>> [(rows.tolist(), most) for rows, most in chunks_by_length(np.array([2, 1, 2, 5]), 4)]
    [([1, 0], 2), ([2], 2), ([3], 5)]
    """
    order = np.argsort(length, kind="stable")
    start = 0
    while start < len(order):
        sizes = length[order[start : start + max_cells]]
        # The cells grow with every window, because lengths do not decrease.
        cells = sizes * np.arange(1, len(sizes) + 1)
        stop = start + max(1, int(np.searchsorted(cells, max_cells, side="right")))
        yield order[start:stop], int(length[order[stop - 1]])
        start = stop
