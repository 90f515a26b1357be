"""The score of a source as its own target."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tclgraph import registry
from tclgraph.arrays import ScoreArray
from tclgraph.baselines.own_target import measure_own_targets, rank_own_target_last
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing.streams import cut


def stream(*pairs: str, kind: GraphKind = "one-mode") -> EventStream:
    """Return events like "ab", from a to b."""
    sources, targets = zip(*pairs, strict=True)
    return EventStream.from_columns(sources, targets, np.arange(float(len(pairs))), kind=kind)


def ranked(train: EventStream) -> ScoreArray:
    """Return the scores of sources 1 and 0 after `rank_own_target_last`."""
    scores = np.array([[4.0, 9.0, 5.0, 0.0], [8.0, 2.0, 3.0, 9.0]])
    return rank_own_target_last(scores, np.array([1, 0]), measure_own_targets(train))


def test_a_source_is_last_among_the_targets_of_training() -> None:
    train = stream("ab", "bc")  # the fourth target is not among its three nodes
    assert_array_equal(ranked(train), [[4.0, 3.0, 5.0, 0.0], [1.0, 2.0, 3.0, 9.0]])


@pytest.mark.parametrize(
    "train", [stream("ab", "cc"), stream("ab", "bc", kind="bipartite")], ids=["loop", "bipartite"]
)
def test_nothing_changes_if_a_node_can_be_its_own_target(train: EventStream) -> None:
    assert_array_equal(ranked(train), [[4.0, 9.0, 5.0, 0.0], [8.0, 2.0, 3.0, 9.0]])


@pytest.mark.parametrize(
    "name",
    ["graphsage aggregator=gcn", "ctdne score_by=input-input", "dysat heads=2", "deepcoevolve"],
)
def test_models_of_one_vector_per_node_rank_the_source_last(name: str) -> None:
    events = stream(*(["ab", "bc", "ca", "ad", "db"] * 8))
    model_name, *assignments = name.split()
    settings = dict(text.split("=") for text in assignments)
    model = registry.build(model_name, epochs=1, width=8, threads=1, **settings)
    model.fit(cut(events, 30, 35))
    scores = model.score(np.arange(4), np.full(4, 40.0))
    assert_array_equal(scores.argmin(axis=1), np.arange(4))
