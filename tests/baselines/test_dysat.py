"""DySAT against plain loops; independence of later snapshots; tiny streams; resuming."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.baselines.dysat import DySAT, DySATConfig, SnapshotPairs, attended_rows
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.sampling.snapshots import adjacency, snapshots
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable
from tests.streams import KINDS, as_split, streams

TINY: dict[str, Any] = {"width": 6, "heads": 2, "snapshots": 3, "epochs": 2, "threads": 1}


def small_split(kind: GraphKind = "bipartite") -> Split:
    config = SyntheticConfig(events=120, sources=9, targets=8, kind=kind)
    return synthesize(config).split(0.6, 0.2)


def prepared(split: Split) -> DySAT:
    model = DySAT(**TINY)
    model.prepare(split)
    model.network.double()
    model._edges = replace(model._edges, weight=model._edges.weight.double())
    return model


def all_vectors(model: DySAT) -> Tensor:
    vectors: Tensor = model.network(model._edges, model._row_NT)
    return vectors


def vectors_by_loops(model: DySAT, split: Split) -> Tensor:
    """Compute all vectors, [N, T, D], with dense matrices, snapshot by snapshot, node by node."""
    network = model.network
    graphs = snapshots(split.train, 3, cumulative=False)
    num_nodes = model.graph.space.num_nodes
    structure = torch.zeros(num_nodes, 3, 6, dtype=torch.float64)
    for snapshot, graph in enumerate(graphs):
        dense = torch.eye(num_nodes, dtype=torch.float64)
        dense[graph.row, graph.neighbor] += torch.from_numpy(graph.weight)
        total = dense.sum(1)
        for i in range(num_nodes):
            others = torch.nonzero(dense[i]).ravel()
            weight = dense[i, others] / (total[i] * total[others]).sqrt()
            for head, columns in enumerate((slice(0, 3), slice(3, 6))):
                node, neighbors = network.node[i, columns], network.node[others, columns]
                logit = node @ network.structural.asking[head]
                logit = weight * (logit + neighbors @ network.structural.answering[head])
                share = torch.nn.functional.leaky_relu(logit, 0.2).softmax(0)
                structure[i, snapshot, columns] = torch.nn.functional.elu(share @ neighbors)
    temporal = network.temporal
    query, key, value = (
        (structure + temporal.position) @ matrix.T
        for name, matrix in temporal.named_parameters()
        if name.startswith("query_key_value")
    )
    attended = torch.zeros_like(structure)
    for i in range(num_nodes):
        for snapshot in range(3):
            past = slice(0, snapshot + 1)
            for columns in (slice(0, 3), slice(3, 6)):
                logit = key[i, past, columns] @ query[i, snapshot, columns] / 3**0.5
                attended[i, snapshot, columns] = logit.softmax(0) @ value[i, past, columns]
    mix = temporal.mix
    return attended + torch.relu(attended @ mix.weight.T + mix.bias)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_gradients_equal_plain_loops(kind: GraphKind) -> None:
    split = small_split(kind)
    model = prepared(split)
    vectors, expected = all_vectors(model), vectors_by_loops(model, split)
    assert_close(vectors, expected)
    weight = torch.linspace(-1, 1, vectors.numel(), dtype=torch.float64).reshape(vectors.shape)
    parameters = list(model.network.parameters())
    gradients, expected_gradients = (
        torch.autograd.grad((tensor * weight).sum(), parameters) for tensor in (vectors, expected)
    )
    assert_close(gradients, expected_gradients)
    with torch.no_grad():
        assert torch.equal(model.make_vectors(), vectors[:, -1])


@settings(max_examples=20)
@given(stream=streams(), seed=st.integers(0, 9))
def test_vectors_do_not_depend_on_later_snapshots(stream: EventStream, seed: int) -> None:
    graphs = snapshots(stream, 3, cumulative=False)
    num_nodes = len(graphs[0].start) - 1
    model = DySAT(**TINY, seed=seed)
    model.prepare(as_split(stream, len(stream), len(stream)))
    model.network.double()
    changed = [*graphs[:2], adjacency(np.array([0, num_nodes - 1, 0, 0]), num_nodes)]
    with torch.no_grad():
        before, after = (
            model.network(replace(edges, weight=edges.weight.double()), row)
            for edges, row in (attended_rows(graphs), attended_rows(changed))
        )
    assert_close(after[:, :2], before[:, :2], rtol=0, atol=1e-12)


def test_vectors_depend_on_their_own_snapshot() -> None:
    model = prepared(small_split())
    before = all_vectors(model)
    model._row_NT = model._row_NT.clone()
    model._row_NT[:, 2] = torch.arange(len(model._row_NT))  # as if no node had a neighbor
    after = all_vectors(model)
    assert_close(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 2], before[:, 2])


def test_positives_and_negatives_come_from_the_snapshot() -> None:
    # Edges 0-1, 1-2 and 3-4; node 5 has no neighbor.
    pairs = SnapshotPairs(adjacency(np.array([0, 1, 1, 2, 3, 4]), 6))
    config = DySATConfig(negatives=2_000)
    node, positive, negative = pairs.draw(np.array([5, 4, 1]), config, np.random.default_rng(0))
    assert node.tolist() == [4, 1]
    assert set(positive[0].tolist()) <= {3, 4}
    assert set(positive[1].tolist()) <= {0, 1, 2}
    share = np.bincount(negative.ravel(), minlength=6) / negative.size
    expected = np.array([1, 2**0.75, 1, 1, 1, 0])
    assert np.abs(share - expected / expected.sum()).max() < 0.03


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("events", ["ab", "aa", "ab ab", "aa bb", "aa ab aa ba ac"])
def test_tiny_streams_give_finite_scores(events: str, kind: GraphKind) -> None:
    """All events are simultaneous, some are self-loops; one more event is for validation."""
    pairs = [*events.split(), "ab"]
    stream = EventStream.from_columns(
        [pair[0] for pair in pairs], [pair[1] for pair in pairs], [7.0] * len(pairs), kind=kind
    )
    model = DySAT(**TINY).fit(as_split(stream, len(pairs) - 1, len(pairs)))
    scores = model.score(np.arange(stream.num_sources), np.full(stream.num_sources, 8.0))
    assert np.isfinite(scores).all()


def test_resuming_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    tiny = {**TINY, "batch_size": 4}

    def stop(update: ProgressUpdate) -> None:
        if update.epoch == 1 and update.batch == 2:
            raise KeyboardInterrupt

    complete = DySAT(**tiny).fit(small_split())
    with pytest.raises(KeyboardInterrupt):
        DySAT(**tiny).fit(small_split(), run=tmp_path / "run", progress=stop)
    resumed = DySAT(**tiny).fit(small_split(), run=tmp_path / "run", resume=True)
    for name, weight in complete.network.state_dict().items():
        assert torch.equal(weight, resumed.network.state_dict()[name]), name


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(InputError, match="3 heads cannot split a width of 64 evenly"):
        DySAT(heads=3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    settings = {"width": 16, "heads": 4, "snapshots": 3, "batch_size": 32, "epochs": 40}
    assert_learns(DySAT(**settings, threads=1), learnable(kind))
