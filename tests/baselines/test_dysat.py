"""DySAT against plain loops, and what may reach a snapshot's vectors."""

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


def small(kind: GraphKind = "bipartite") -> Split:
    config = SyntheticConfig(events=120, sources=9, targets=8, kind=kind)
    return synthesize(config).split(0.6, 0.2)


def prepared(split: Split) -> DySAT:
    model = DySAT(**TINY)
    model.prepare(split)
    model.network.double()
    model._edges = replace(model._edges, weight=model._edges.weight.double())
    return model


def all_vectors(model: DySAT) -> Tensor:
    found: Tensor = model.network(model._edges, model._row_NT)
    return found


def in_plain_loops(model: DySAT, split: Split) -> Tensor:
    """[N, T, D], with dense matrices, snapshot by snapshot and node by node."""
    network = model.network
    graphs = snapshots(split.train, 3, cumulative=False)
    num_nodes = model.graph.space.num_nodes
    structure = torch.zeros(num_nodes, 3, 6, dtype=torch.float64)
    for at, graph in enumerate(graphs):
        dense = torch.eye(num_nodes, dtype=torch.float64)
        dense[graph.row, graph.neighbor] += torch.from_numpy(graph.weight)
        total = dense.sum(1)
        for i in range(num_nodes):
            others = torch.nonzero(dense[i]).ravel()
            weight = dense[i, others] / (total[i] * total[others]).sqrt()
            for head, columns in enumerate((slice(0, 3), slice(3, 6))):
                own, theirs = network.node[i, columns], network.node[others, columns]
                logit = own @ network.structural.asking[head]
                logit = weight * (logit + theirs @ network.structural.answering[head])
                share = torch.nn.functional.leaky_relu(logit, 0.2).softmax(0)
                structure[i, at, columns] = torch.nn.functional.elu(share @ theirs)
    temporal = network.temporal
    query, key, value = (
        (structure + temporal.position) @ matrix.T
        for name, matrix in temporal.named_parameters()
        if name.startswith("query_key_value")
    )
    attended = torch.zeros_like(structure)
    for i in range(num_nodes):
        for at in range(3):
            for columns in (slice(0, 3), slice(3, 6)):
                logit = key[i, : at + 1, columns] @ query[i, at, columns] / 3**0.5
                attended[i, at, columns] = logit.softmax(0) @ value[i, : at + 1, columns]
    mix = temporal.mix
    return attended + torch.relu(attended @ mix.weight.T + mix.bias)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_as_plain_loops_have_them(kind: GraphKind) -> None:
    split = small(kind)
    model = prepared(split)
    ours, theirs = all_vectors(model), in_plain_loops(model, split)
    assert_close(ours, theirs)
    weight = torch.linspace(-1, 1, ours.numel(), dtype=torch.float64).reshape(ours.shape)
    learned = list(model.network.parameters())
    gradients = (torch.autograd.grad((one * weight).sum(), learned) for one in (ours, theirs))
    assert_close(next(gradients), next(gradients))
    with torch.no_grad():
        assert torch.equal(model.make_vectors(), ours[:, -1])


@settings(max_examples=20)
@given(stream=streams(), seed=st.integers(0, 9))
def test_later_snapshots_change_no_earlier_vector(stream: EventStream, seed: int) -> None:
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


def test_the_last_snapshot_counts() -> None:
    model = prepared(small())
    before = all_vectors(model)
    model._row_NT = model._row_NT.clone()
    model._row_NT[:, 2] = torch.arange(len(model._row_NT))  # as if all had been alone
    after = all_vectors(model)
    assert_close(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 2], before[:, 2])


def test_partners_and_negatives_are_of_the_snapshot() -> None:
    # 0 and 1 met, 1 and 2, 3 and 4; 5 met nobody.
    pairs = SnapshotPairs(adjacency(np.array([0, 1, 1, 2, 3, 4]), 6))
    config = DySATConfig(negatives=2_000)
    node, partner, negative = pairs.draw(np.array([5, 4, 1]), config, np.random.default_rng(0))
    assert node.tolist() == [4, 1]
    assert set(partner[0].tolist()) <= {3, 4}
    assert set(partner[1].tolist()) <= {0, 1, 2}
    share = np.bincount(negative.ravel(), minlength=6) / negative.size
    expected = np.array([1, 2**0.75, 1, 1, 1, 0])
    assert np.abs(share - expected / expected.sum()).max() < 0.03


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("events", ["ab", "aa", "ab ab", "aa bb", "aa ab aa ba ac"])
def test_hardly_any_events(events: str, kind: GraphKind) -> None:
    """All at once, some of them self-loops, and one more for validation."""
    pairs = [*events.split(), "ab"]
    stream = EventStream.from_columns(
        [pair[0] for pair in pairs], [pair[1] for pair in pairs], [7.0] * len(pairs), kind=kind
    )
    model = DySAT(**TINY).fit(as_split(stream, len(pairs) - 1, len(pairs)))
    scores = model.score(np.arange(stream.num_sources), np.full(stream.num_sources, 8.0))
    assert np.isfinite(scores).all()


def test_a_run_that_was_stopped_ends_as_if_it_had_not(tmp_path: Path) -> None:
    tiny = {**TINY, "batch_size": 4}

    def stop(update: ProgressUpdate) -> None:
        if update.epoch == 1 and update.batch == 2:
            raise KeyboardInterrupt

    whole = DySAT(**tiny).fit(small())
    with pytest.raises(KeyboardInterrupt):
        DySAT(**tiny).fit(small(), run=tmp_path / "run", progress=stop)
    resumed = DySAT(**tiny).fit(small(), run=tmp_path / "run", resume=True)
    for name, one in whole.network.state_dict().items():
        assert torch.equal(one, resumed.network.state_dict()[name]), name


def test_heads_share_the_width_evenly() -> None:
    with pytest.raises(InputError, match="3 heads cannot split a width of 64 evenly"):
        DySAT(heads=3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    settings = {"width": 16, "heads": 4, "snapshots": 3, "batch_size": 32, "epochs": 40}
    assert_learns(DySAT(**settings, threads=1), learnable(kind))
