"""Learned models are fitted on the nodes of the training events, and then extended to all nodes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from safetensors.torch import load_file
from torch import Tensor

from tclgraph import registry
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.models.learned import LearnedModel
from tclgraph.models.stream_state import StreamState
from tclgraph.testing.streams import KINDS, cut
from tests.contracts.test_models import SMALL


def split_with(kind: GraphKind, later: list[tuple[str, str]]) -> Split:
    """Return a split with these test events; validation has a new source and a new target."""
    pairs = [("a", "x"), ("b", "y"), ("a", "y"), ("c", "z"), ("b", "x"), ("c", "y"), ("a", "z")]
    valid = [("d", "x"), ("a", "w"), ("b", "x")]
    sources, targets = zip(*pairs, *pairs, *valid, *later, strict=True)
    stream = EventStream.from_columns(sources, targets, range(len(sources)), kind=kind)
    return cut(stream, 2 * len(pairs), 2 * len(pairs) + len(valid))


def learned_tensors(name: str, split: Split, run: Path) -> dict[str, Tensor]:
    """Fit a model, and return what it keeps of training."""
    model = registry.build(name.split()[0], **SMALL[name])
    assert isinstance(model, LearnedModel)
    model.fit(split, run=run)
    return load_file(run / "last.safetensors")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in SMALL if name != "graphsage"])
def test_what_is_learned_does_not_depend_on_later_nodes(
    name: str, kind: GraphKind, tmp_path: Path
) -> None:
    few = split_with(kind, [("a", "x")])
    many = split_with(kind, [("e", "v"), ("a", "u"), ("f", "u"), ("g", "x"), ("a", "x")])
    expected = learned_tensors(name, few, tmp_path / "few")
    tensors = learned_tensors(name, many, tmp_path / "many")
    assert tensors.keys() == expected.keys()
    for tensor_name, tensor in tensors.items():
        assert torch.equal(tensor, expected[tensor_name]), tensor_name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SMALL)
def test_extending_changes_no_vector_and_no_score(name: str, kind: GraphKind) -> None:
    split = split_with(kind, [("e", "v"), ("a", "u"), ("f", "u"), ("g", "x"), ("a", "x")])
    known = split.without_test()
    model = registry.build(name.split()[0], **SMALL[name])
    assert isinstance(model, LearnedModel)
    model.fit(known)
    larger = model.extended(split.events)
    larger.observe(split.train)
    space, larger_space = (NodeSpace.of(events) for events in (known.events, split.events))
    assert larger.state.space == larger_space
    source = np.arange(space.num_sources)
    time = np.full(len(source), 99.0)
    # Products of larger matrices may round differently.
    scores = larger.score(source, time)[:, : space.num_targets]
    np.testing.assert_allclose(scores, model.score(source, time), rtol=1e-5, atol=1e-6)
    if name != "ranker (no encoder)":
        numbers = space.numbers_in(larger_space)
        vectors = model.vectors(np.arange(space.num_nodes), 99.0)
        np.testing.assert_allclose(larger.vectors(numbers, 99.0), vectors, rtol=1e-5, atol=1e-7)
    # In one step or in two: a node's values depend on its key, not on how it was added.
    twice = model.extended(split.events[:-2].with_own_vocabulary()).extended(split.events)
    for tensor_name, tensor in twice.network.state_dict().items():
        assert torch.equal(tensor, larger.network.state_dict()[tensor_name]), tensor_name


def test_a_copy_for_ranking_shares_what_was_learned() -> None:
    split = split_with("bipartite", [("e", "v")])
    model = registry.build("tcl", **SMALL["tcl"])
    assert isinstance(model, LearnedModel)
    model.fit(split.without_test())
    copy = model.extended(split.events)
    ours, theirs = dict(model.network.named_parameters()), dict(copy.network.named_parameters())
    assert [name for name in ours if ours[name] is not theirs[name]] == ["encoder.node.weight"]
    assert model.state.space != copy.state.space


def test_the_first_keys_must_be_those_of_the_model() -> None:
    split = split_with("bipartite", [("e", "v")])
    model: Any = registry.build("tcl", **SMALL["tcl"]).fit(split)
    other = EventStream.from_columns(list("zyxab"), list("xyzxy"), range(5))
    with pytest.raises(AssertionError, match="known sources keep their ids"):
        model.extend(StreamState.for_stream(other))


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_follow_the_keys(kind: GraphKind) -> None:
    split = split_with(kind, [("e", "v"), ("a", "u")])
    events = split.events
    smaller = split.train_only().events
    assert len(smaller.sources) < len(events.sources)
    numbers = NodeSpace.of(smaller).numbers_in(NodeSpace.of(events))
    assert_array_equal(
        numbers[NodeSpace.of(smaller).nodes(smaller)], NodeSpace.of(events).nodes(split.train)
    )
