"""Compare the writing of cells with plain torch."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from tclgraph.events.stream import GraphKind
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.state import HistoryState
from tclgraph.models.ranker import score_table
from tclgraph.testing.streams import KINDS
from tests.features.queries import log_of, long_stream


@pytest.fixture(params=KINDS)
def features(request: pytest.FixtureRequest) -> HistoryFeatures:
    kind: GraphKind = request.param
    stream, start = long_stream(kind), 300
    queries = slice(start, start + 40)
    state = HistoryState(log_of(stream), start)
    return state.features(stream.source[queries], stream.time[queries], reveal=True)


def test_neighbors_with_a_column_are_filled(features: HistoryFeatures) -> None:
    num_targets = features.candidate.moving.shape[2]
    column_of = np.full(num_targets, -1)
    column_of[::2] = np.arange(len(column_of[::2]))
    ours, theirs = torch.zeros(2, len(features.source), len(column_of[::2]))
    score_table.fill_neighbors(ours, features, column_of, -5.0)
    score_table.fill_neighbors_by_steps(theirs, features, column_of, -5.0)
    assert_close(ours, theirs, rtol=0.0, atol=0.0)
    assert 0 < int((ours == -5.0).sum()) < ours.numel()


def test_log_probabilities_of_repeat_and_new_targets(features: HistoryFeatures) -> None:
    num_queries, num_targets = len(features.source), features.candidate.moving.shape[2]
    random = torch.Generator().manual_seed(0)
    ours = torch.randn(num_queries, num_targets, generator=random)
    theirs = ours.clone()
    repeat = torch.randn(len(features.pair_target), generator=random)
    log_repeat, log_new = torch.randn(2, num_queries, generator=random)
    score_table.normalize(ours, features, repeat, log_repeat, log_new)
    score_table.normalize_by_steps(theirs, features, repeat, log_repeat, log_new)
    assert_close(ours, theirs, rtol=0.0, atol=0.0)
