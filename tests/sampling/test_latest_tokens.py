"""Windows of tokens against lists, and training windows in which every token counts once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.sampling.latest_tokens import (
    NO_TOKEN,
    START,
    LatestTokens,
    TrainingSequences,
    chunks_by_length,
)

NUM_NODES = 4
Blocks = list[list[int]]
"""The node of each appended token, block by block."""

blocks = st.lists(st.lists(st.integers(0, NUM_NODES - 1), max_size=12), min_size=1, max_size=4)
sizes = st.integers(1, 6)


@given(blocks, sizes)
def test_windows_are_the_ends_of_the_sequences(blocks: Blocks, size: int) -> None:
    latest = LatestTokens(NUM_NODES, size)
    sequences = [[START] for _ in range(NUM_NODES)]
    token = 0
    for block in blocks:
        first_token = token + 1
        tokens = np.arange(first_token, first_token + len(block))
        appended = latest.append(np.array(block, dtype=np.int64), tokens)
        every = np.arange(len(block))
        after, before = appended.windows_after(every), appended.windows_before(every)
        lengths = appended.lengths_after(every)
        for index, node in enumerate(block):
            previous = sequences[node][-1] - first_token
            assert appended.previous[index] == (previous if previous >= 0 else NO_TOKEN)
            expected = sequences[node][-size:]
            assert before[index, -len(expected) :].tolist() == expected
            token += 1
            sequences[node].append(token)
            expected = sequences[node][-size:]
            assert lengths[index] == len(expected)
            assert after[index, -len(expected) :].tolist() == expected
            assert appended.count[index] == len(sequences[node])
            assert appended.is_last[index] == (node not in block[index + 1 :])


@given(st.lists(st.integers(0, NUM_NODES - 1), min_size=1, max_size=40), sizes)
def test_every_token_counts_once_and_follows_its_window(nodes: list[int], size: int) -> None:
    tokens = np.arange(1, len(nodes) + 1)
    appended = LatestTokens(NUM_NODES, size).append(np.array(nodes), tokens)
    sequences = TrainingSequences(appended, max_label=len(nodes))
    windows = sequences.windows(np.arange(len(sequences)))
    assert sorted(windows.label[windows.is_counted].tolist()) == tokens.tolist()
    for row, column in zip(*np.nonzero(windows.is_counted), strict=True):
        label = windows.label[row, column]
        node = nodes[label - 1]
        past = [token for token in range(1, label) if nodes[token - 1] == node]
        first_column = size - windows.length[row]
        context = windows.token[row, first_column : column + 1].tolist()
        assert context == [START, *past][-len(context) :]
        # What a long sequence loses at the begin of a window is more than half a window ago.
        assert len(context) >= min(len(past) + 1, size // 2 + 1)


def test_tokens_above_the_largest_label_never_count() -> None:
    node, token = np.array([0, 0, 1, 0, 2]), np.array([1, 11, 11, 2, 3])
    sequences = TrainingSequences(LatestTokens(3, 4).append(node, token), max_label=10)
    windows = sequences.windows(np.arange(len(sequences)))
    assert sorted(windows.label[windows.is_counted].tolist()) == [1, 2, 3]
    assert len(sequences) == 2  # node 1 has no label
    assert 11 in windows.token


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 20))
def test_chunks_have_every_row_once_and_few_cells(lengths: list[int], max_cells: int) -> None:
    length = np.array(lengths, dtype=np.int64)
    chunks = list(chunks_by_length(length, max_cells))
    rows = np.concatenate([np.empty(0, dtype=np.int64), *(rows for rows, _ in chunks)])
    assert_array_equal(np.sort(rows), np.arange(len(length)))
    for rows, most in chunks:
        assert most == length[rows].max()
        assert len(rows) == 1 or most * len(rows) <= max_cells
