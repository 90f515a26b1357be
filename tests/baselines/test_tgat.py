"""TGAT against its recursive definition, node by node, in double precision."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.testing import assert_allclose
from torch import Tensor
from torch.nn import functional

import tclgraph as tg
from tclgraph.arrays import FloatArray
from tclgraph.baselines.recent_attention import AttentionModel
from tclgraph.baselines.tgat import TGAT
from tclgraph.baselines.tgat_layer import TGATLayer
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tclgraph.testing.streams import KINDS, splits
from tests.layers.test_temporal_attention import attend
from tests.learnable import assert_learns, learnable
from tests.reference.intervals import in_units

SMALL: dict[str, Any] = {"width": 4, "neighbors": 3, "batch_size": 8, "epochs": 1, "threads": 1}


def in_double(model: AttentionModel, split: Split) -> AttentionModel:
    """Prepare a model to train in double precision; noise makes every weight matter."""
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.network.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += 0.3 * noise
    model.forget()
    return model


def neighbors_before(
    graph: DependencyGraph, node: int, time: float, count: int
) -> list[tuple[int, float]]:
    """Return a node's latest neighbors strictly before a time, and when they interacted."""
    neighbors = []
    for event in reversed(range(len(graph))):
        source, target = graph.node[2 * event], graph.node[2 * event + 1]
        if graph.time[event] < time and node in (source, target):
            neighbor = int(target if node == source else source)
            neighbors.append((neighbor, float(graph.time[event])))
    return neighbors[:count]


def score_of(model: AttentionModel, source: Tensor, target: Tensor) -> Tensor:
    decoder = model.network.decoder
    weight = torch.cat([decoder.first_half.weight, decoder.second_half.weight], dim=1)
    hidden = torch.relu(weight @ torch.cat([source, target]) + decoder.first_half.bias)
    return (decoder.output.weight @ hidden + decoder.output.bias)[0]


class ByRecursion:
    """Computes h_l(n, t) from h_(l-1) of the node at t and of its neighbors at their events."""

    def __init__(self, model: TGAT, graph: DependencyGraph) -> None:
        self.model, self.graph = model, graph

    def vector(self, node: int, time: float, depth: int = 2) -> Tensor:
        network, count = self.model.network, self.model.config.neighbors
        if depth == 0:
            return network.node.weight[node]
        layer: TGATLayer = network.first if depth == 1 else network.second
        below = self.vector(node, time, depth - 1)
        unit = self.model.measured["mean_interval"]
        neighbors = [
            (self.vector(neighbor, then, depth - 1), in_units(time - then, unit))
            for neighbor, then in neighbors_before(self.graph, node, time, count)
        ]
        query = torch.cat([below, network.encoding.phase.cos()])
        summed = attend(layer.attention, network.encoding, below, neighbors) + query
        normed = functional.layer_norm(
            summed, summed.shape, layer.norm.weight, layer.norm.bias, layer.norm.eps
        )
        merge = layer.merge
        hidden = (
            merge.first_half.weight @ normed
            + merge.second_half.weight @ below
            + merge.first_half.bias
        )
        return merge.output.weight @ torch.relu(hidden) + merge.output.bias

    def scores(self, source: int, time: float) -> FloatArray:
        query = self.vector(source, time)
        targets = self.graph.space.target_nodes.tolist()
        scores = [score_of(self.model, query, self.vector(target, time)) for target in targets]
        return torch.stack(scores).detach().numpy()


@settings(max_examples=12)
@given(splits())
def test_scores_of_a_block_equal_the_recursion(split: Split) -> None:
    model = in_double(TGAT(**SMALL), split)
    assert isinstance(model, TGAT)
    model.queries_per_chunk = 5  # so that a block has several chunks
    model.observe(split.train)
    scores = model.score_each(split.valid)
    for row, (source, time) in enumerate(zip(split.valid.source, split.valid.time, strict=True)):
        before = DependencyGraph(model.graph.space)
        before.append(split.events[: split.train_end + row])
        expected = ByRecursion(model, before).scores(int(source), float(time))
        assert_allclose(scores[row], expected, atol=1e-9)
    node = np.arange(model.graph.space.num_nodes)
    now = float(split.valid.time[-1]) + 1
    reference = ByRecursion(model, model.graph)
    vectors = torch.stack([reference.vector(number, now) for number in node.tolist()])
    assert_allclose(model.vectors(node, now), vectors.detach(), atol=1e-9)


@settings(max_examples=12)
@given(splits())
def test_training_vectors_and_gradients_equal_the_recursion(split: Split) -> None:
    model = in_double(TGAT(**SMALL), split)
    assert isinstance(model, TGAT)
    graph = model.batches.graph
    for batch in range(len(model.batches)):
        queries = model.batches.draw(batch, np.random.default_rng(0))
        reference = ByRecursion(model, graph)
        vectors = model.encode_training(queries, None)
        pairs = zip(queries.node.tolist(), queries.time.tolist(), strict=True)
        expected = torch.stack([reference.vector(node, time) for node, time in pairs])
        assert_allclose(vectors.detach(), expected.detach(), atol=1e-9)
        parameters = [
            parameter
            for name, parameter in model.network.named_parameters()
            if not name.startswith("decoder")
        ]
        weight = torch.randn(vectors.shape, dtype=torch.float64)
        gradients = torch.autograd.grad((vectors * weight).sum(), parameters)
        expected_gradients = torch.autograd.grad(
            (expected * weight).sum(), parameters, allow_unused=True, materialize_grads=True
        )
        for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
            assert_allclose(gradient, expected_gradient, atol=1e-8)


def test_neighbors_include_an_only_neighbor_and_the_latest() -> None:
    """The published code omits the latest neighbor, and takes the oldest of many."""
    times = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    stream = tg.load({"source": list("aaaaab"), "target": list("vwxyzz"), "time": times})
    split = stream.split(0.6, 0.2)
    model = TGAT(**{**SMALL, "neighbors": 2}).fit(split)
    model.forget()
    model.observe(split.events)
    neighbors = model._neighbors(np.array([0, 1, 2]), np.full(3, 5.5))
    space = model.graph.space
    assert neighbors.node[0].tolist() == [space.first_target + 4, space.first_target + 3]
    assert neighbors.count.tolist() == [2, 0, 1]


def test_dropout_comes_from_the_given_generator() -> None:
    model = TGAT(**SMALL)
    model.prepare(learnable())
    first, second, third = (model.loss(3, np.random.default_rng(seed)).item() for seed in (1, 1, 2))
    assert first == second != third
    queries = model.batches.draw(3, np.random.default_rng(0))
    without_dropout = model.encode_training(queries, None)
    with_dropout = model.encode_training(queries, torch.Generator().manual_seed(0))
    assert not torch.equal(with_dropout, without_dropout)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(tg.InputError, match="3 heads cannot split twice a width of 4 evenly"):
        TGAT(width=4, heads=3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = TGAT(width=16, neighbors=5, epochs=6, learning_rate=5e-3, batch_size=100, threads=1)
    assert_learns(model, learnable(kind))
