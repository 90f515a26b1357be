"""In training, sources with many pairs are represented by a weighted sample of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph.events.stream import GraphKind
from tclgraph.features.columns import MAX_PAIRS
from tclgraph.features.latest_kernels import LATEST_PAIRS, SAMPLED_PAIRS, sample_rows
from tclgraph.features.state import HistoryState
from tclgraph.testing.streams import KINDS
from tests.features.queries import log_of, long_stream, pairs_of


@given(st.integers(0, MAX_PAIRS), st.data())
def test_a_sample_stands_for_all_pairs(count: int, data: st.DataObject) -> None:
    true_row = data.draw(st.integers(-1, count - 1))
    offset = data.draw(st.floats(0, 1, exclude_max=True))
    rows, log_weight = np.empty(MAX_PAIRS, np.int64), np.empty(MAX_PAIRS, np.float32)
    number = sample_rows(count, true_row, offset, rows, log_weight)
    chosen, weight = rows[:number].tolist(), np.exp(log_weight[:number])
    assert len(set(chosen)) == number <= SAMPLED_PAIRS + 1
    assert all(0 <= row < count for row in chosen)
    assert set(chosen) >= set(range(min(count, LATEST_PAIRS)))
    assert_allclose(weight.sum(), count, rtol=1e-5)
    if true_row >= 0:
        assert_allclose(weight[chosen.index(true_row)], 1)
    if count <= SAMPLED_PAIRS:
        assert chosen == list(range(count))


def test_every_older_pair_is_equally_likely() -> None:
    count, num_offsets = 100, 2_000
    rows, log_weight = np.empty(MAX_PAIRS, np.int64), np.empty(MAX_PAIRS, np.float32)
    times_chosen = np.zeros(count)
    for offset in (np.arange(num_offsets) + 0.5) / num_offsets:
        number = sample_rows(count, -1, offset, rows, log_weight)
        times_chosen[rows[:number]] += 1 / num_offsets
    expected = (SAMPLED_PAIRS - LATEST_PAIRS) / (count - LATEST_PAIRS)
    assert_allclose(times_chosen[LATEST_PAIRS:], expected, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sampled_pair_has_the_features_it_has_among_all(kind: GraphKind) -> None:
    stream = long_stream(kind)
    start, stop = len(stream) - 60, len(stream)
    source, time = stream.source[start:stop], stream.time[start:stop]
    state = HistoryState(log_of(stream), start)
    full = state.features(source, time, reveal=True)
    offsets = np.random.default_rng(0).random(len(source))
    sampled = state.features(source, time, reveal=True, sample_offset=offsets)
    assert sampled.pair_start[-1] < full.pair_start[-1]
    assert_array_equal(sampled.neighbor_target, full.pair_target)
    assert_array_equal(sampled.neighbor_start, full.pair_start)
    for query in range(len(source)):
        ours, all_rows = pairs_of(sampled, query), pairs_of(full, query)
        targets = full.pair_target[all_rows].tolist()
        chosen = [targets.index(target) for target in sampled.pair_target[ours].tolist()]
        assert_array_equal(sampled.pair_inputs[ours], full.pair_inputs[all_rows][chosen])
        if int(stream.target[start + query]) in targets:
            assert int(stream.target[start + query]) in sampled.pair_target[ours]


def test_sampling_needs_the_true_targets() -> None:
    state = HistoryState(log_of(long_stream("bipartite")))
    with pytest.raises(AssertionError, match="set reveal"):
        state.features(np.array([0]), np.array([0.0]), sample_offset=np.array([0.5]))
