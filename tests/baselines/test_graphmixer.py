"""GraphMixer against its definition, node by node and slot by slot, in double precision."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor
from torch.nn import functional

import tclgraph as tg
from tclgraph.arrays import BoolArray, FloatArray
from tclgraph.baselines.graphmixer import GraphMixer, PartnerSums
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.sampling.recent_partners import PartnerLists, PartnerWindow
from tclgraph.testing.streams import KINDS, splits, streams
from tests.baselines.test_tgat import neighbors_before
from tests.layers.test_mixer import mix_by_loops
from tests.learnable import assert_learns, learnable
from tests.reference.intervals import in_units

SMALL: dict[str, Any] = {
    "width": 4,
    "neighbors": 3,
    "window": 5,
    "layers": 2,
    "batch_size": 8,
    "epochs": 1,
    "threads": 1,
}
with_and_without_identities = pytest.mark.parametrize("identity_tokens", [False, True])


def in_double(model: GraphMixer, split: Split) -> GraphMixer:
    """Prepare a model to train in double precision; noise makes every weight matter."""
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.network.parameters():
        if parameter.requires_grad:
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.data += 0.3 * noise
    model.forget()
    return model


class ByLoops:
    """Computes vectors and scores of single nodes from the events of a graph."""

    def __init__(
        self, model: GraphMixer, graph: DependencyGraph, is_hidden: BoolArray | None = None
    ) -> None:
        self.model, self.network, self.graph = model, model.network, graph
        self.is_hidden = is_hidden

    def features(self, node: int) -> Tensor:
        features = self.network.features
        is_hidden = self.is_hidden is not None and self.is_hidden[node]
        return features.unseen if is_hidden else features.weight[node]

    def link_vector(self, node: int, time: float) -> Tensor:
        network, config = self.network, self.model.config
        slots = []
        for partner, then in neighbors_before(self.graph, node, time, config.neighbors):
            gap = in_units(time - then, self.model.measured["mean_gap"])
            code = torch.cos(network.encoding.frequency * gap)
            slot = network.token.weight @ code + network.token.bias
            if network.identity is not None:
                both = self.features(node) + self.features(partner)
                slot = slot + network.identity.weight @ both
            slots.append(slot)
        empty = network.token.weight.new_zeros(config.width)
        slots += [empty] * (config.neighbors - len(slots))
        return network.head.weight @ mix_by_loops(network.mixer, slots) + network.head.bias

    def node_vector(self, node: int, time: float) -> Tensor:
        window, graph = self.model.config.window, self.graph
        assert window is not None
        earlier = [event for event in range(len(graph)) if graph.time[event] < time]
        partners = set()
        for event in earlier[-window:]:
            source, target = graph.node[2 * event : 2 * event + 2].tolist()
            if node == source != target:
                partners.add(target)
            elif node == target != source:
                partners.add(source)
        total = torch.zeros(self.model.config.width, dtype=torch.float64)
        for partner in partners:
            total = total + self.features(partner)
        return self.features(node) + total / max(len(partners), 1)

    def vector(self, node: int, time: float) -> Tensor:
        return torch.cat([self.link_vector(node, time), self.node_vector(node, time)])

    def score(self, source: Tensor, target: Tensor) -> Tensor:
        decoder = self.network.decoder
        hidden = decoder.first_half.weight @ source + decoder.second_half.weight @ target
        hidden = torch.relu(hidden + decoder.first_half.bias)
        return (decoder.output.weight @ hidden + decoder.output.bias)[0]

    def scores(self, source: int, time: float) -> FloatArray:
        query = self.vector(source, time)
        targets = self.graph.space.target_nodes.tolist()
        scores = [self.score(query, self.vector(target, time)) for target in targets]
        return torch.stack(scores).detach().numpy()


@with_and_without_identities
@settings(max_examples=6)
@given(split=splits())
def test_scores_of_a_block_equal_loops(identity_tokens: bool, split: Split) -> None:
    model = in_double(GraphMixer(**SMALL, identity_tokens=identity_tokens), split)
    model.observe(split.train)
    scores = model.score_each(split.valid)
    for row, (source, time) in enumerate(zip(split.valid.source, split.valid.time, strict=True)):
        before = DependencyGraph(model.graph.space)
        before.append(split.events[: split.train_end + row])
        expected = ByLoops(model, before).scores(int(source), float(time))
        assert_allclose(scores[row], expected, atol=1e-9)
    node = np.arange(model.graph.space.num_nodes)
    now = float(split.valid.time[-1]) + 1
    reference = ByLoops(model, model.graph)
    vectors = torch.stack([reference.vector(number, now) for number in node.tolist()])
    assert_allclose(model.vectors(node, now), vectors.detach(), atol=1e-9)


@with_and_without_identities
@settings(max_examples=6)
@given(split=splits())
def test_training_loss_and_gradients_equal_loops(identity_tokens: bool, split: Split) -> None:
    model = in_double(
        GraphMixer(**SMALL, identity_tokens=identity_tokens, dropout=0, hidden_share=0.3), split
    )
    parameters = [weight for weight in model.network.parameters() if weight.requires_grad]
    for batch in range(len(model.batches)):
        loss = model.loss(batch, np.random.default_rng(batch))
        gradients = torch.autograd.grad(loss, parameters)
        random = np.random.default_rng(batch)
        queries = model.batches.draw(batch, random)
        is_hidden = random.random(model.graph.space.num_nodes) < 0.3
        reference = ByLoops(model, model.batches.graph, is_hidden)
        pairs = zip(queries.node.tolist(), queries.time.tolist(), strict=True)
        vectors = [reference.vector(node, time) for node, time in pairs]
        losses = []
        for source, *targets in queries.position.tolist():
            scores = [reference.score(vectors[source], vectors[target]) for target in targets]
            losses.append(functional.cross_entropy(torch.stack(scores), torch.tensor(0)))
        expected = torch.stack(losses).mean()
        assert_allclose(loss.item(), expected.item(), atol=1e-9)
        expected_gradients = torch.autograd.grad(
            expected, parameters, allow_unused=True, materialize_grads=True
        )
        for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
            assert_allclose(gradient, expected_gradient, atol=1e-8)


@given(streams(), st.sampled_from([None, 1, 4]), st.data())
def test_sums_of_partners_equal_recomputed_means(
    stream: EventStream, size: int | None, data: st.DataObject
) -> None:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    window = PartnerWindow(graph, size)
    window.update()
    features = torch.randn(graph.space.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    node = np.arange(len(features))
    sums = PartnerSums(window, 3)
    for position in data.draw(st.permutations(range(len(stream) + 1))):
        sums.move(position, features)
        partner, start = PartnerLists(graph, size).before(node, np.full(len(node), position))
        for number, members in enumerate(np.split(partner, start[1:])):
            expected = features[members].double().sum(dim=0) / max(len(members), 1)
            assert_allclose(sums.means(torch.tensor([number]))[0], expected, atol=1e-12)
            assert sums.count_V[number] == len(members)


@given(splits())
def test_true_targets_have_as_many_links_as_negatives(split: Split) -> None:
    """In the published sampler the event itself takes a slot, so its nodes have a link less."""
    model = GraphMixer(**SMALL)
    model.prepare(split)
    graph = model.batches.graph
    for batch in range(len(model.batches)):
        queries = model.batches.draw(batch, np.random.default_rng(0))
        links = model.links(graph, queries.node, queries.latest, queries.time)
        expected = [
            len(neighbors_before(graph, node, time, 3))
            for node, time in zip(queries.node.tolist(), queries.time.tolist(), strict=True)
        ]
        assert_array_equal(links.is_real_KR.sum(dim=0), expected)


def test_codes_of_long_gaps_keep_their_fraction_of_a_turn() -> None:
    model = in_double(GraphMixer(**SMALL), learnable())
    model.network.float()
    gap = np.array([1e6, 1e6 + 1e-3])
    frequency = model.network.encoding.frequency.double().numpy()
    assert_allclose(model.network.codes(gap), np.cos(gap[:, None] * frequency), atol=1e-6)


def test_unseen_nodes_share_their_features() -> None:
    times = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    stream = tg.load({"source": list("aabcad"), "target": list("xyxzyz"), "time": times})
    model = GraphMixer(**SMALL).fit(stream.split(0.5, 0.25))
    features = model.network.features()
    unseen = model.network.features.is_seen == 0
    keys = [*model.state.sources.keys, *model.state.targets.keys]
    unseen_keys = [key for key, is_unseen in zip(keys, unseen, strict=True) if is_unseen]
    assert unseen_keys == ["c", "d", "z"]
    assert torch.equal(features[unseen], model.network.features.unseen.expand(3, -1))
    assert model.network.features.unseen.any()


def test_queries_of_equal_times_are_encoded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    split = learnable()
    model = GraphMixer(**{**SMALL, "batch_size": 500}).fit(split)
    source = np.array([3, 1, 3, 2])
    time = split.valid.time[0] + np.array([5.0, 0.0, 5.0, 5.0])
    expected = model.score(source, time)
    times = []
    encode = GraphMixer.links

    def record(self: GraphMixer, *arguments: Any) -> Any:
        times.append(float(arguments[-1][0]))
        return encode(self, *arguments)

    monkeypatch.setattr(GraphMixer, "links", record)
    monkeypatch.setattr("tclgraph.baselines.graphmixer._LINKS_PER_CHUNK", 1 << 20)
    assert_allclose(model.score(source, time), expected, rtol=1e-5, atol=1e-6)
    assert times == [0.0, time[1], time[0]]  # first a node without links


def test_dropout_and_hidden_nodes_come_from_the_given_generator() -> None:
    model = GraphMixer(**SMALL)
    model.prepare(learnable())
    first, second, third = (model.loss(3, np.random.default_rng(seed)).item() for seed in (1, 1, 2))
    assert first == second != third
    queries = model.batches.draw(3, np.random.default_rng(0))
    is_hidden = np.zeros(model.graph.space.num_nodes, dtype=bool)
    without_dropout = model.encode_training(queries, is_hidden, None)
    generator = torch.Generator().manual_seed(0)
    assert not torch.equal(model.encode_training(queries, is_hidden, generator), without_dropout)
    assert not torch.equal(model.encode_training(queries, ~is_hidden, None), without_dropout)


def test_the_time_encoding_is_fixed() -> None:
    split = learnable()
    model = GraphMixer(**SMALL)
    model.prepare(split)
    before = model.network.encoding.frequency.clone()
    model.fit(replace(split, train_end=300, valid_end=310))
    assert torch.equal(model.network.encoding.frequency, before)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = GraphMixer(
        width=16,
        neighbors=5,
        epochs=4,
        learning_rate=1e-2,
        batch_size=100,
        max_valid_events=100,
        threads=1,
    )
    assert_learns(model, learnable(kind))
