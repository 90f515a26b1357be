"""Compare the kernels with the layer that is trained, cell by cell, in double precision."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch import Tensor

from tclgraph.baselines.recent_attention import as_columns
from tclgraph.layers.cell_kernels import CELLS_AT_ONCE
from tclgraph.layers.folded_attention import FoldedAttention
from tclgraph.layers.segment_kernels import (
    attend_moving_segments,
    attend_segments,
    score_segments,
    segments_up_to,
    work_memory,
)
from tclgraph.layers.segments import (
    Attended,
    MovingCells,
    NeighborTable,
    Segments,
    StateTables,
    cell_chunks,
)
from tclgraph.layers.temporal_attention import TemporalAttention
from tclgraph.layers.time_encoding import TimeEncoding

# Widths and numbers of queries that vectors do not divide evenly.
WIDTH, TIME_WIDTH, OUTPUT, STATES, EVENTS, QUERIES, MOST = 6, 9, 13, 9, 11, 37, 6


def draw_segments(random: np.random.Generator) -> Segments:
    """Return segments with 0 to 6 neighbors and 1 to 37 queries, sorted by their first query."""
    begin = np.sort(random.integers(0, QUERIES, 20))
    shape = len(begin), MOST
    return Segments(
        own=random.integers(0, STATES, len(begin)),
        neighbor=random.integers(0, STATES, shape),
        event=random.integers(0, EVENTS, shape),
        num_neighbors=random.integers(0, shape[1] + 1, len(begin)),
        column=np.arange(len(begin)),
        begin=begin,
        end=random.integers(begin + 1, QUERIES + 1),
    )


class Layer:
    """Attention in double precision, with states, times of events and times of queries."""

    def __init__(self, heads: int, seed: int) -> None:
        torch.manual_seed(seed)
        attention = TemporalAttention(WIDTH, TIME_WIDTH, heads, output_width=OUTPUT)
        self.attention = attention.double().requires_grad_(False)
        self.encoding = TimeEncoding(TIME_WIDTH).double().requires_grad_(False)
        self.encoding.log_frequency.data = torch.randn(TIME_WIDTH).double()
        self.encoding.phase.data.normal_()
        self.state = torch.randn(STATES, WIDTH).double()
        self.event_time = torch.rand(EVENTS).double()
        self.query_time = 1 + torch.rand(QUERIES).double()
        self.turns = self.encoding.turns(self.event_time, at_end=False).numpy()
        self.now = as_columns(self.encoding.turns(self.query_time, at_end=True))
        self.folded = FoldedAttention(self.attention, self.encoding)

    def alone(self, segments: Segments, row: int, query: int, own: Tensor) -> Tensor:
        """Return the attention output of a cell, without the bias."""
        count = int(segments.num_neighbors[row])
        if not count:
            return torch.zeros(OUTPUT).double()
        neighbor = self.state[segments.neighbor[row, :count]][None]
        interval = self.query_time[query] - self.event_time[segments.event[row, :count]]
        is_real = torch.ones(1, count, dtype=torch.bool)
        attended: Tensor = self.attention(
            own[None], neighbor, interval[None], is_real, self.encoding
        )
        return attended[0] - self.attention.bias


def cells_of(segments: Segments, first: int, last: int) -> list[tuple[int, int]]:
    """Return the segment and the query of every cell."""
    return [
        (row, query)
        for row in range(first, last)
        for query in range(segments.begin[row], segments.end[row])
    ]


@pytest.mark.parametrize("heads", [1, 3])
@given(seed=st.integers(0, 1000))
def test_cells_equal_single_rows(heads: int, seed: int) -> None:
    layer, segments = Layer(heads, seed), draw_segments(np.random.default_rng(seed))
    hidden = torch.randn(STATES, OUTPUT).double()
    tables = StateTables(
        layer.state.numpy(),
        layer.folded.queries(layer.state).numpy(),
        layer.folded.values(layer.state).view(STATES, heads, OUTPUT).numpy(),
        hidden.numpy(),
        layer.turns,
    )
    first, last = 3, 17
    cells = cells_of(segments, first, last)
    num_columns = len(cells) + CELLS_AT_ONCE
    code, output = np.zeros((heads * TIME_WIDTH, num_columns)), np.zeros((OUTPUT, num_columns))
    work = work_memory(segments, heads, layer.now, 2 * TIME_WIDTH, OUTPUT)
    attend_segments(first, last, segments, tables, layer.now, work, Attended(code, output))
    total = output + layer.folded.value_by_time.numpy().T @ code
    for cell, (row, query) in enumerate(cells):
        own = segments.own[row]
        expected = hidden[own] + layer.alone(segments, row, query, layer.state[own])
        assert_allclose(total[:, cell], expected, atol=1e-10)


@pytest.mark.parametrize("heads", [1, 3])
@given(seed=st.integers(0, 1000))
def test_moving_cells_equal_single_rows(heads: int, seed: int) -> None:
    layer, segments = Layer(heads, seed), draw_segments(np.random.default_rng(seed))
    first, last = 3, 17
    cells, count = cells_of(segments, first, last), segments.num_neighbors
    places = np.concatenate([segments.neighbor[row, : count[row]] for row in range(first, last)])
    neighbor, start = layer.state[places], np.cumsum(count) - count
    columns = [
        layer.folded.values(neighbor),
        neighbor @ layer.folded.key_by_neighbor,
        neighbor @ layer.folded.constant_by_neighbor,
    ]
    table = NeighborTable(start - start[first], torch.cat(columns, dim=1).numpy(), layer.turns)
    num_columns = len(cells) + CELLS_AT_ONCE
    hidden = torch.randn(len(cells), OUTPUT).double()
    own = torch.randn(len(cells), WIDTH).double()
    time_query = own @ layer.folded.query_by_time + layer.folded.constant_by_time
    code, output = np.zeros((heads * TIME_WIDTH, num_columns)), np.zeros((OUTPUT, num_columns))
    moving = MovingCells(as_columns(own), as_columns(time_query), as_columns(hidden))
    work = work_memory(segments, heads, layer.now, WIDTH, OUTPUT)
    attended = Attended(code, output)
    attend_moving_segments(first, last, segments, table, moving, layer.now, work, attended)
    total = output + layer.folded.value_by_time.numpy().T @ code
    for cell, (row, query) in enumerate(cells):
        expected = hidden[cell] + layer.alone(segments, row, query, own[cell])
        assert_allclose(total[:, cell], expected, atol=1e-10)


def test_scores_are_those_of_a_layer_with_one_hidden_unit_per_column() -> None:
    random = np.random.default_rng(0)
    segments = draw_segments(random)
    cells = cells_of(segments, 0, len(segments.own))
    target = random.standard_normal((4, len(cells) + CELLS_AT_ONCE))
    source = random.standard_normal((4, QUERIES + CELLS_AT_ONCE))
    output, scores = random.standard_normal(4), np.full((QUERIES, len(segments.own)), np.nan)
    score_segments(0, len(segments.own), segments, target, source, output, scores)
    for cell, (row, query) in enumerate(cells):
        expected = output @ np.maximum(source[:, query] + target[:, cell], 0)
        assert_allclose(scores[query, row], expected, atol=1e-12)
    assert np.isfinite(scores).sum() == len(cells)


@pytest.mark.parametrize("size", [1, 25, 1000])
def test_ranges_of_segments_have_few_cells(size: int) -> None:
    segments = draw_segments(np.random.default_rng(1))
    first, last = 2, 19
    while first < last:
        stop, num_cells = segments_up_to(first, last, segments, size)
        assert first < stop <= last
        assert num_cells == len(cells_of(segments, first, stop))
        assert num_cells <= size or stop == first + 1
        assert stop == last or len(cells_of(segments, first, stop + 1)) > size
        first = stop


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_chunks_cover_all_segments_in_order(size: int) -> None:
    segments = draw_segments(np.random.default_rng(1))
    chunks = list(cell_chunks(segments, size))
    cells = segments.end - segments.begin
    assert [row for chunk in chunks for row in range(*chunk)] == list(range(len(cells)))
    assert all(last - first == 1 or cells[first:last].sum() <= size for first, last in chunks)
