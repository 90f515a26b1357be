"""Compare the kernels with the layer that is trained, cell by cell, in double precision."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tclgraph.layers.folded_attention import FoldedAttention
from tclgraph.layers.segment_kernels import (
    Segments,
    StateTables,
    attend_segments,
    cell_chunks,
    score_segments,
    segment_keys,
)
from tclgraph.layers.temporal_attention import TemporalAttention
from tclgraph.layers.time_encoding import TimeEncoding

WIDTH, TIME_WIDTH, OUTPUT, STATES, EVENTS, QUERIES = 6, 6, 5, 9, 11, 12


def draw_segments(random: np.random.Generator) -> Segments:
    """Return segments with 0 to 6 neighbors and 1 to 12 queries, sorted by their first query."""
    begin = np.sort(random.integers(0, QUERIES, 20))
    shape = len(begin), 6
    return Segments(
        own=random.integers(0, STATES, len(begin)),
        neighbor=random.integers(0, STATES, shape),
        event=random.integers(0, EVENTS, shape),
        num_neighbors=random.integers(0, shape[1] + 1, len(begin)),
        column=np.arange(len(begin)),
        begin=begin,
        end=random.integers(begin + 1, QUERIES + 1),
    )


@pytest.mark.parametrize("heads", [1, 2, 3])
@given(seed=st.integers(0, 1000))
def test_cells_equal_single_rows(heads: int, seed: int) -> None:
    torch.manual_seed(seed)
    attention = TemporalAttention(WIDTH, TIME_WIDTH, heads, output_width=OUTPUT)
    attention = attention.double().requires_grad_(False)
    encoding = TimeEncoding(TIME_WIDTH).double().requires_grad_(False)
    encoding.log_frequency.data = torch.randn(TIME_WIDTH).double()
    state, hidden = torch.randn(STATES, WIDTH).double(), torch.randn(STATES, OUTPUT).double()
    event_time, query_time = torch.rand(EVENTS).double(), 1 + torch.rand(QUERIES).double()
    now = encoding.turns(query_time, at_end=True)
    folded = FoldedAttention(attention, encoding)
    tables = StateTables(
        state.numpy(),
        folded.queries(state).numpy(),
        folded.values(state).view(STATES, heads, OUTPUT).numpy(),
        hidden.numpy(),
        encoding.turns(event_time, at_end=False).numpy(),
    )
    segments = draw_segments(np.random.default_rng(seed))
    first, last = 3, 17
    key, fixed = segment_keys(first, last, segments, tables)
    start = int(segments.begin[first])
    match = key @ now[start:].T.numpy() + fixed[:, None]
    code, output = attend_segments(first, last, segments, tables, now.numpy(), match, start)
    attended = output + code @ folded.value_by_time.numpy()
    cell = 0
    for row in range(first, last):
        count = int(segments.num_neighbors[row])
        neighbor = state[segments.neighbor[row, :count]][None]
        for query in range(segments.begin[row], segments.end[row]):
            interval = query_time[query] - event_time[segments.event[row, :count]]
            own = state[segments.own[row]][None]
            is_real = torch.ones(1, count, dtype=torch.bool)
            expected = hidden[segments.own[row]]
            if count:
                alone = attention(own, neighbor, interval[None], is_real, encoding)[0]
                expected = expected + alone - attention.bias
            assert_allclose(attended[cell], expected, atol=1e-10)
            cell += 1
    assert cell == len(attended)


def test_scores_are_those_of_a_layer_with_one_hidden_unit_per_column() -> None:
    random = np.random.default_rng(0)
    segments = draw_segments(random)
    sizes = segments.end - segments.begin
    target = random.standard_normal((sizes.sum(), 4))
    source, output = random.standard_normal((QUERIES, 4)), random.standard_normal(4)
    scores = np.full((QUERIES, len(sizes)), np.nan)
    score_segments(0, len(sizes), segments, target, source, output, scores)
    cell = 0
    for row in range(len(sizes)):
        for query in range(segments.begin[row], segments.end[row]):
            expected = np.maximum(source[query] + target[cell], 0) @ output
            assert_allclose(scores[query, row], expected, atol=1e-12)
            cell += 1
    assert np.isfinite(scores).sum() == cell


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_chunks_cover_all_segments_in_order(size: int) -> None:
    segments = draw_segments(np.random.default_rng(1))
    chunks = list(cell_chunks(segments, size))
    cells = segments.end - segments.begin
    assert [row for chunk in chunks for row in range(*chunk)] == list(range(len(cells)))
    assert all(last - first == 1 or cells[first:last].sum() <= size for first, last in chunks)
