"""The number of unknown targets changes no probability; their own is that of one more choice."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.models.ranker.model import Ranker
from tclgraph.models.ranker.unknown import UnknownTargets
from tclgraph.testing.streams import cut, splits

TINY: dict[str, Any] = {"epochs": 1, "batch_size": 8, "threads": 1, "encoder": None}


def test_a_target_is_known_after_its_first_event() -> None:
    # Targets v and w occur in training; x, y and z only later, z after these events.
    stream = EventStream.from_columns(list("aabaab"), list("vwxyxz"), range(6))
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream[:3])
    unknown = UnknownTargets.at(graph, 2, num_queries=2)
    assert unknown.target.tolist() == [3, 4]
    unknown = unknown.revealing(stream[3:5], graph)
    assert unknown.known_from.tolist() == [1, 2]
    assert unknown.is_unknown(2).tolist() == [[True, True], [False, True]]
    assert unknown.from_query(1).is_unknown(1).tolist() == [[False, True]]


def test_in_a_one_mode_graph_an_event_as_source_counts() -> None:
    stream = EventStream.from_columns(list("abc"), list("bad"), range(3), kind="one-mode")
    graph = DependencyGraph(NodeSpace.of(stream))
    unknown = UnknownTargets.at(graph, 2, num_queries=1).revealing(stream[2:], graph)
    assert unknown.target.tolist() == [2, 3]
    assert unknown.known_from.tolist() == [1, 1]


def with_targets(stream: EventStream, others: list[str]) -> EventStream:
    """Return the stream with further events at its end, of other targets."""
    source = [stream.sources.key(source) for source in stream.source]
    target = [stream.targets.key(target) for target in stream.target]
    return EventStream.from_columns(
        source + [source[0]] * len(others),
        list(map(str, target)) + others,
        [*stream.time, *[stream.time[-1]] * len(others)],
    )


@pytest.mark.parametrize(
    "chosen", [{}, {"gate": False}, {"repeat_head": False}], ids=["gate", "no gate", "one softmax"]
)
@settings(max_examples=15)
@given(st.data())
def test_probabilities_of_known_targets_add_up_to_1(
    chosen: dict[str, Any], data: st.DataObject
) -> None:
    split = data.draw(splits(kind="bipartite"))
    split = cut(with_targets(split.events, ["p", "q"]), split.train_end, split.valid_end)
    model = Ranker(**TINY, **chosen).fit(split)
    model.observe(split.valid)
    known = np.unique(split.events.target[: split.valid_end])
    sources = np.unique(split.events.source[: split.valid_end])
    time = np.full(len(sources), split.events.time[-1])
    score = model.score(sources, time).astype(np.float64)
    assert_allclose(np.exp(score[:, known]).sum(axis=1), 1, rtol=1e-4)
    # All unknown targets have the same features, and so the same probability, of one more choice.
    unknown = np.setdiff1d(np.arange(score.shape[1]), known)
    assert (np.exp(score[:, unknown]) <= 1).all()
    assert_allclose(score[:, unknown], score[:, unknown[:1]] * np.ones(len(unknown)), rtol=1e-5)


@pytest.mark.parametrize("chosen", [{}, {"gate": False}, {"repeat_head": False}])
def test_an_unknown_target_has_the_probability_of_one_more_choice(chosen: dict[str, Any]) -> None:
    stream = EventStream.from_columns(list("abcabca"), list("xyzxzyy"), range(7))
    split = cut(with_targets(stream, ["p"]), 5, 7)
    model = Ranker(**TINY, **chosen).fit(split)
    model.observe(split.valid)
    sources, time = np.arange(3), np.full(3, 9.0)
    scores = model.score(sources, time)
    among_all = model.network.heads.log_probabilities(
        model._history.features(sources, time), None, model.config.repeat_bias
    )
    assert_allclose(scores[:, 3], among_all[:, 3].numpy(), rtol=1e-5)
    assert (scores[:, :3] >= among_all[:, :3].numpy()).all()
