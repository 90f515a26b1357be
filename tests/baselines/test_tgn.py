"""Against memories and messages kept one by one, in double precision; and that it learns."""

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
from tests.baselines.test_tgat import SMALL, in_double, met_before, scores_of
from tests.layers.test_temporal_attention import attend
from tests.learnable import assert_learns, learnable
from tests.streams import KINDS, splits


class OneByOne:
    """Memories and pending messages by node; what a node is follows from the formulas."""

    def __init__(self, model: TGN) -> None:
        self.model = model
        self.memory: dict[int, Tensor] = {}
        self.message: dict[int, tuple[Tensor, Tensor, float]] = {}
        self.last: dict[int, float] = {}

    def persisted(self, node: int) -> Tensor:
        return self.memory.get(node, torch.zeros(self.model.config.width, dtype=torch.float64))

    def current(self, node: int) -> Tensor:
        """With the pending message, which the GRU reads."""
        state = self.persisted(node)
        if node not in self.message:
            return state
        own, partner, interval = self.message[node]
        network = self.model.network
        code = network.encoding(
            torch.tensor(interval / self.model.measured["mean"], dtype=torch.float64)
        )
        message = torch.cat([own, partner, code])
        cell = network.update
        inside = cell.weight_ih @ message + cell.bias_ih
        hidden = cell.weight_hh @ state + cell.bias_hh
        reset, update, new = (inside.chunk(3)[at] for at in range(3))
        reset = torch.sigmoid(reset + hidden.chunk(3)[0])
        update = torch.sigmoid(update + hidden.chunk(3)[1])
        new = torch.tanh(new + reset * hidden.chunk(3)[2])
        return (1 - update) * new + update * state

    def happen(self, pairs: list[tuple[int, int, float]]) -> None:
        """A batch: first what was pending is written down, then come new messages."""
        written = {node: self.current(node).detach() for pair in pairs for node in pair[:2]}
        self.memory.update(written)
        for source, target, time in pairs:
            intervals = [time - self.last.get(node, time) for node in (source, target)]
            for node, partner, interval in (
                (source, target, intervals[0]),
                (target, source, intervals[1]),
            ):
                self.message[node] = (self.memory[node], self.memory[partner], interval)
                self.last[node] = time

    def vector(self, graph: DependencyGraph, node: int, time: float) -> Tensor:
        network, unit = self.model.network, self.model.measured["mean"]
        own = self.current(node) + network.node.weight[node]
        met = [
            (self.current(other) + network.node.weight[other], (time - then) / unit)
            for other, then in met_before(graph, node, time, self.model.config.neighbors)
        ]
        hidden = attend(network.attention, network.encoding, own, met)
        hidden = hidden + network.own.weight @ own + network.own.bias
        return network.output.weight @ torch.relu(hidden) + network.output.bias

    def scores(self, graph: DependencyGraph, source: int, time: float) -> FloatArray:
        asking = self.vector(graph, source, time)
        targets = graph.space.target_nodes.tolist()
        rows = [scores_of(self.model, asking, self.vector(graph, one, time)) for one in targets]
        return torch.stack(rows).detach().numpy()


def triples(graph: DependencyGraph, first: int, stop: int) -> list[tuple[int, int, float]]:
    return [
        (int(graph.node[2 * at]), int(graph.node[2 * at + 1]), float(graph.time[at]))
        for at in range(first, stop)
    ]


@settings(max_examples=12)
@given(splits())
def test_all_targets_equal_one_at_a_time(split: Split) -> None:
    model = in_double(TGN(**SMALL), split)
    assert isinstance(model, TGN)
    model.queries_at_once = 5  # a block is then more than one piece
    model.observe(split.train)
    ours = model.score_each(split.valid)
    slow, graph = OneByOne(model), DependencyGraph(model.graph.space)
    for event in range(split.valid_end):
        if event >= split.train_end:
            now = split.events[event : event + 1]
            theirs = slow.scores(graph, int(now.source[0]), float(now.time[0]))
            assert_allclose(ours[event - split.train_end], theirs, atol=1e-9)
        graph.append(split.events[event : event + 1])
        slow.happen(triples(graph, event, event + 1))
    nodes = np.arange(graph.space.num_nodes)
    memory = torch.stack([slow.current(node) for node in nodes.tolist()])
    assert_allclose(model._memory, memory.detach(), atol=1e-9)
    later = float(split.valid.time[-1]) + 1
    vectors = torch.stack([slow.vector(graph, node, later) for node in nodes.tolist()])
    assert_allclose(model.vectors(nodes, later), vectors.detach(), atol=1e-9)


@settings(max_examples=12)
@given(splits())
def test_training_reads_what_the_batches_before_have_left(split: Split) -> None:
    """Also the gradients, which reach the GRU through messages that are still pending."""
    model = in_double(TGN(**{**SMALL, "dropout": 0.0}), split)
    assert isinstance(model, TGN)
    graph, slow = model.batches.graph, OneByOne(model)
    learned = dict(model.network.named_parameters())
    for batch in range(len(model.batches)):
        ours = model.loss(batch, np.random.default_rng(batch))
        asked = model.batches.draw(batch, np.random.default_rng(batch))
        rows = zip(asked.node.tolist(), asked.time.tolist(), strict=True)
        vectors = [slow.vector(graph, node, time) for node, time in rows]
        positive, negative = [], []
        for source, true, *others in asked.position.tolist():
            score = [scores_of(model, vectors[source], vectors[at]) for at in (true, *others)]
            positive.append(torch.nn.functional.softplus(-score[0]))
            negative += [torch.nn.functional.softplus(one) for one in score[1:]]
        theirs = torch.stack(positive).mean()
        if negative:
            theirs = theirs + torch.stack(negative).mean()
        assert_allclose(ours.item(), theirs.item(), atol=1e-9)
        for one, other in zip(
            torch.autograd.grad(ours, list(learned.values()), allow_unused=True),
            torch.autograd.grad(theirs, list(learned.values()), allow_unused=True),
            strict=True,
        ):
            nothing = torch.zeros(1, dtype=torch.float64)
            found, expected = torch.broadcast_tensors(  # type: ignore[no-untyped-call]
                _or(one, nothing), _or(other, nothing)
            )
            assert_allclose(found, expected, atol=1e-8)
        events = model.batches.events(batch)
        slow.happen(triples(graph, events[0], events[-1] + 1))
    # And an epoch begins anew.
    first = model.loss(0, np.random.default_rng(0)).item()
    assert first == model.loss(0, np.random.default_rng(0)).item()


def _or(gradient: Tensor | None, nothing: Tensor) -> Tensor:
    return nothing if gradient is None else gradient


def test_validation_leaves_the_memory_of_training_alone() -> None:
    split = learnable()
    model = TGN(**SMALL)
    model.prepare(split)
    for batch in range(3):
        model.loss(batch, np.random.default_rng(batch))
    before = {name: one.clone() for name, one in model.network.named_buffers()}
    assert before["memory"].any()
    model.observe(split.train)
    model.score_each(split.valid[:20])
    for name, one in model.network.named_buffers():
        assert torch.equal(one, before[name])


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = TGN(width=16, neighbors=5, epochs=8, learning_rate=5e-3, batch_size=50, threads=1)
    assert_learns(model, learnable(kind))
