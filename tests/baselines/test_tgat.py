"""Against the recursion written out node by node, in double precision; and that it learns."""

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
from tclgraph.baselines.tgat import TGAT, TGATLayer
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tests.layers.test_temporal_attention import attend
from tests.learnable import assert_learns, learnable
from tests.streams import KINDS, splits

SMALL: dict[str, Any] = {"width": 4, "neighbors": 3, "batch_size": 8, "epochs": 1, "threads": 1}


def in_double(model: AttentionModel, split: Split) -> AttentionModel:
    """Ready to learn from train, with weights that are all in use."""
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.network.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += 0.3 * noise
    model.forget()
    return model


def met_before(
    graph: DependencyGraph, node: int, time: float, count: int
) -> list[tuple[int, float]]:
    """Who a node met strictly before a time, and when, latest first."""
    met = []
    for event in reversed(range(len(graph))):
        source, target = graph.node[2 * event], graph.node[2 * event + 1]
        if graph.time[event] < time and node in (source, target):
            met.append((int(target if node == source else source), float(graph.time[event])))
    return met[:count]


def scores_of(model: AttentionModel, source: Tensor, target: Tensor) -> Tensor:
    decoder = model.network.decoder
    weight = torch.cat([decoder.one.weight, decoder.other.weight], dim=1)
    hidden = torch.relu(weight @ torch.cat([source, target]) + decoder.one.bias)
    return (decoder.output.weight @ hidden + decoder.output.bias)[0]


class ByRecursion:
    """h_l(n, t) from h_(l-1) of the node and of its neighbours at their own times."""

    def __init__(self, model: TGAT, graph: DependencyGraph) -> None:
        self.model, self.graph = model, graph

    def vector(self, node: int, time: float, depth: int = 2) -> Tensor:
        network, count = self.model.network, self.model.config.neighbors
        if depth == 0:
            return network.node.weight[node]
        layer: TGATLayer = network.first if depth == 1 else network.second
        own = self.vector(node, time, depth - 1)
        unit = self.model.measured["mean"]
        met = [
            (self.vector(other, then, depth - 1), (time - then) / unit)
            for other, then in met_before(self.graph, node, time, count)
        ]
        asking = torch.cat([own, network.encoding.phase.cos()])
        summed = attend(layer.attention, network.encoding, own, met) + asking
        normed = functional.layer_norm(
            summed, summed.shape, layer.norm.weight, layer.norm.bias, layer.norm.eps
        )
        merge = layer.merge
        hidden = merge.one.weight @ normed + merge.other.weight @ own + merge.one.bias
        return merge.output.weight @ torch.relu(hidden) + merge.output.bias

    def scores(self, source: int, time: float) -> FloatArray:
        asking = self.vector(source, time)
        targets = self.graph.space.target_nodes.tolist()
        rows = [scores_of(self.model, asking, self.vector(one, time)) for one in targets]
        return torch.stack(rows).detach().numpy()


@settings(max_examples=12)
@given(splits())
def test_all_targets_equal_one_at_a_time(split: Split) -> None:
    model = in_double(TGAT(**SMALL), split)
    assert isinstance(model, TGAT)
    model.queries_at_once = 5  # a block is then more than one piece, and none is whole
    model.observe(split.train)
    ours = model.score_each(split.valid)
    for row, (source, time) in enumerate(zip(split.valid.source, split.valid.time, strict=True)):
        before = DependencyGraph(model.graph.space)
        before.append(split.events[: split.train_end + row])
        theirs = ByRecursion(model, before).scores(int(source), float(time))
        assert_allclose(ours[row], theirs, atol=1e-9)
    node = np.arange(model.graph.space.num_nodes)
    now = float(split.valid.time[-1]) + 1
    slow = ByRecursion(model, model.graph)
    vectors = torch.stack([slow.vector(one, now) for one in node.tolist()])
    assert_allclose(model.vectors(node, now), vectors.detach(), atol=1e-9)


@settings(max_examples=12)
@given(splits())
def test_what_is_learned_from_is_the_same_with_its_gradients(split: Split) -> None:
    model = in_double(TGAT(**SMALL), split)
    assert isinstance(model, TGAT)
    graph = model.batches.graph
    for batch in range(len(model.batches)):
        asked = model.batches.draw(batch, np.random.default_rng(0))
        slow = ByRecursion(model, graph)
        ours = model.encode_asked(asked, None)
        theirs = torch.stack(
            [slow.vector(int(n), float(t)) for n, t in zip(asked.node, asked.time, strict=True)]
        )
        assert_allclose(ours.detach(), theirs.detach(), atol=1e-9)
        learned = [
            one for name, one in model.network.named_parameters() if not name.startswith("decoder")
        ]
        mixed = torch.randn(ours.shape, dtype=torch.float64)
        for one, other in zip(
            torch.autograd.grad((ours * mixed).sum(), learned),
            torch.autograd.grad((theirs * mixed).sum(), learned, allow_unused=True),
            strict=True,
        ):
            expected = torch.zeros_like(one) if other is None else other
            assert_allclose(one, expected, atol=1e-8)


def test_the_only_neighbour_counts_and_so_does_the_latest() -> None:
    """The published code leaves out the latest neighbour, and takes the oldest of many."""
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
    once, again, other = (model.loss(3, np.random.default_rng(seed)).item() for seed in (1, 1, 2))
    assert once == again != other
    asked = model.batches.draw(3, np.random.default_rng(0))
    whole = model.encode_asked(asked, None)
    assert not torch.equal(whole, model.encode_asked(asked, torch.Generator().manual_seed(0)))


def test_heads_must_fit() -> None:
    with pytest.raises(tg.InputError, match="heads"):
        TGAT(width=4, heads=3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = TGAT(width=16, neighbors=5, epochs=6, learning_rate=5e-3, batch_size=100, threads=1)
    assert_learns(model, learnable(kind))
