"""TGN against single memories and messages, node by node, in double precision."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.testing import assert_allclose
from torch import Tensor

from tclgraph.arrays import FloatArray
from tclgraph.baselines.tgn import TGN
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tclgraph.testing.streams import KINDS, splits
from tests.baselines.test_tgat import SMALL, in_double, neighbors_before, score_of
from tests.layers.test_temporal_attention import attend
from tests.learnable import assert_learns, learnable
from tests.reference.intervals import in_units


class OneByOne:
    """Memories and pending messages by node, with the formulas of the paper."""

    def __init__(self, model: TGN) -> None:
        self.model = model
        self.memory: dict[int, Tensor] = {}
        self.message: dict[int, tuple[Tensor, Tensor, float]] = {}
        self.last: dict[int, float] = {}

    def current(self, node: int) -> Tensor:
        """Return a node's memory with its pending message applied by the GRU."""
        zero = torch.zeros(self.model.config.width, dtype=torch.float64)
        state = self.memory.get(node, zero)
        if node not in self.message:
            return state
        before, partner, interval = self.message[node]
        network = self.model.network
        scaled_interval = in_units(interval, self.model.measured["mean_interval"])
        scaled = torch.tensor(scaled_interval, dtype=torch.float64)
        message = torch.cat([before, partner, network.encoding(scaled)])
        cell = network.update
        inputs = (cell.weight_ih @ message + cell.bias_ih).chunk(3)
        hidden = (cell.weight_hh @ state + cell.bias_hh).chunk(3)
        reset = torch.sigmoid(inputs[0] + hidden[0])
        update = torch.sigmoid(inputs[1] + hidden[1])
        new = torch.tanh(inputs[2] + reset * hidden[2])
        return (1 - update) * new + update * state

    def observe(self, pairs: list[tuple[int, int, float]]) -> None:
        """Apply the pending messages of a batch's nodes, then store the batch's messages."""
        updated = {node: self.current(node).detach() for pair in pairs for node in pair[:2]}
        self.memory.update(updated)
        for source, target, time in pairs:
            intervals = [time - self.last.get(node, time) for node in (source, target)]
            for node, partner, interval in (
                (source, target, intervals[0]),
                (target, source, intervals[1]),
            ):
                self.message[node] = (self.memory[node], self.memory[partner], interval)
                self.last[node] = time

    def vector(self, graph: DependencyGraph, node: int, time: float) -> Tensor:
        network, unit = self.model.network, self.model.measured["mean_interval"]
        state = self.current(node) + network.node.weight[node]
        neighbors = [
            (self.current(neighbor) + network.node.weight[neighbor], in_units(time - then, unit))
            for neighbor, then in neighbors_before(graph, node, time, self.model.config.neighbors)
        ]
        hidden = attend(network.attention, network.encoding, state, neighbors)
        hidden = hidden + network.hidden.weight @ state + network.hidden.bias
        return network.output.weight @ torch.relu(hidden) + network.output.bias

    def scores(self, graph: DependencyGraph, source: int, time: float) -> FloatArray:
        query = self.vector(graph, source, time)
        scores = [
            score_of(self.model, query, self.vector(graph, target, time))
            for target in graph.space.target_nodes.tolist()
        ]
        return torch.stack(scores).detach().numpy()


def triples(graph: DependencyGraph, first: int, stop: int) -> list[tuple[int, int, float]]:
    return [
        (int(graph.node[2 * event]), int(graph.node[2 * event + 1]), float(graph.time[event]))
        for event in range(first, stop)
    ]


@settings(max_examples=12)
@given(splits())
def test_scores_of_a_block_equal_single_memories(split: Split) -> None:
    model = in_double(TGN(**SMALL), split)
    assert isinstance(model, TGN)
    model.queries_per_chunk = 5  # so that a block has several chunks
    model.observe(split.train)
    scores = model.score_each(split.valid)
    reference, graph = OneByOne(model), DependencyGraph(model.graph.space)
    for event in range(split.valid_end):
        if event >= split.train_end:
            now = split.events[event : event + 1]
            expected = reference.scores(graph, int(now.source[0]), float(now.time[0]))
            assert_allclose(scores[event - split.train_end], expected, atol=1e-9)
        graph.append(split.events[event : event + 1])
        reference.observe(triples(graph, event, event + 1))
    nodes = np.arange(graph.space.num_nodes)
    memory = torch.stack([reference.current(node) for node in nodes.tolist()])
    assert_allclose(model._memory, memory.detach(), atol=1e-9)
    later = float(split.valid.time[-1]) + 1
    vectors = torch.stack([reference.vector(graph, node, later) for node in nodes.tolist()])
    assert_allclose(model.vectors(nodes, later), vectors.detach(), atol=1e-9)


@settings(max_examples=12)
@given(splits())
def test_loss_and_gradients_of_a_batch_equal_single_memories(split: Split) -> None:
    """Gradients reach the GRU through the messages that are still pending."""
    model = in_double(TGN(**{**SMALL, "dropout": 0.0}), split)
    assert isinstance(model, TGN)
    graph, reference = model.batches.graph, OneByOne(model)
    parameters = list(model.network.parameters())
    for batch in range(len(model.batches)):
        loss = model.loss(batch, np.random.default_rng(batch))
        queries = model.batches.draw(batch, np.random.default_rng(batch))
        pairs = zip(queries.node.tolist(), queries.time.tolist(), strict=True)
        vectors = [reference.vector(graph, node, time) for node, time in pairs]
        positive, negative = [], []
        for source, *targets in queries.position.tolist():
            scores = [score_of(model, vectors[source], vectors[target]) for target in targets]
            positive.append(torch.nn.functional.softplus(-scores[0]))
            negative += [torch.nn.functional.softplus(score) for score in scores[1:]]
        expected = torch.stack(positive).mean()
        if negative:
            expected = expected + torch.stack(negative).mean()
        assert_allclose(loss.item(), expected.item(), atol=1e-9)
        gradients, expected_gradients = (
            torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)
            for value in (loss, expected)
        )
        for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
            assert_allclose(gradient, expected_gradient, atol=1e-8)
        events = model.batches.events(batch)
        reference.observe(triples(graph, events[0], events[-1] + 1))
    # A new epoch starts with empty memories.
    first = model.loss(0, np.random.default_rng(0)).item()
    assert first == model.loss(0, np.random.default_rng(0)).item()


def test_validation_does_not_change_the_memory_of_training() -> None:
    split = learnable()
    model = TGN(**SMALL)
    model.prepare(split)
    for batch in range(3):
        model.loss(batch, np.random.default_rng(batch))
    before = {name: buffer.clone() for name, buffer in model.network.named_buffers()}
    assert before["memory"].any()
    model.observe(split.train)
    model.score_each(split.valid[:20])
    for name, buffer in model.network.named_buffers():
        assert torch.equal(buffer, before[name])


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = TGN(width=16, neighbors=5, epochs=8, learning_rate=5e-3, batch_size=50, threads=1)
    assert_learns(model, learnable(kind))
