"""DynGEM against its published objective, a dense decoder, and streams with hardly anything."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from tclgraph.baselines.dyngem import DynGEM
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable
from tests.streams import KINDS, as_split

TINY: dict[str, Any] = {"width": 4, "hidden_widths": (6, 5), "threads": 1}


def prepared(kind: GraphKind = "bipartite", **settings: Any) -> DynGEM:
    split = synthesize(SyntheticConfig(events=120, sources=9, targets=8, kind=kind)).split(0.6, 0.2)
    model = DynGEM(**{**TINY, **settings})
    model.prepare(split)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_batches_add_up_to_the_published_loss(kind: GraphKind) -> None:
    model = prepared(kind, closeness=0.01, weight_penalty=0.003, batch_size=4)
    network = model.network.double()
    adjacency = model._graphs[1]
    num_nodes = model.graph.space.num_nodes
    true = np.zeros((num_nodes, num_nodes))
    true[adjacency.row, adjacency.neighbor] = adjacency.weight
    assert (true == true.T).all()

    # A dense autoencoder, and the loss edge by edge.
    true_rows = torch.from_numpy(true)
    code = network.encoder(true_rows @ network.neighbor + network.neighbor_bias)
    found = network.output(network.decoder(code))
    b = torch.where(true_rows > 0, 5.0, 1.0)
    degree = (true_rows > 0).sum(1)
    published = torch.zeros((), dtype=torch.float64)
    for i, j in torch.nonzero(true_rows).tolist():
        for end in (i, j):
            error = ((found[end] - true_rows[end]) * b[end]).square().sum()
            published = published + error / degree[end]
        published = published + 0.01 * true_rows[i, j] * (code[i] - code[j]).square().sum()
    matrices = [one for one in network.parameters() if one.dim() == 2]
    assert len(matrices) == 6
    penalty = 0.003 * torch.stack([one.abs().sum() + (one**2).sum() for one in matrices]).sum()

    rows = np.flatnonzero(adjacency.degree)
    parts = np.array_split(rows, 3)
    share = [len(part) / len(rows) for part in parts]
    losses = [model.loss_of(adjacency, part) for part in parts]
    ours = torch.stack([loss * one for loss, one in zip(losses, share, strict=True)]).sum()
    of_nothing = 2 * ((b * true_rows) ** 2).sum() / len(rows)
    assert_close(ours, (published / len(rows) + penalty) / of_nothing)


def test_snapshots_come_in_order_and_all_rows_in_every_iteration() -> None:
    model = prepared(snapshots=3, first_iterations=4, iterations=2, batch_size=5)
    numbers = [number for number, _ in model._batches]
    assert numbers == sorted(numbers)
    iterations = [4, 2, 2]
    for number, batches in itertools.groupby(model._batches, key=lambda one: one[0]):
        parts = [part for _, part in batches]
        assert max(map(len, parts)) <= 5
        times = np.bincount(np.concatenate(parts), minlength=model.graph.space.num_nodes)
        assert times.tolist() == [
            iterations[number] if degree else 0 for degree in model._graphs[number].degree
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_two_cells_of_the_reconstruction(kind: GraphKind) -> None:
    model = prepared(kind)
    network, last = model.network, model._last
    true = np.zeros((model.graph.space.num_nodes,) * 2, dtype=np.float32)
    true[last.row, last.neighbor] = last.weight
    with torch.no_grad():
        code = network.encoder(torch.from_numpy(true) @ network.neighbor + network.neighbor_bias)
        found = network.output(network.decoder(code)).numpy()
    sources = np.arange(model.graph.space.num_sources)
    first = model.graph.space.first_target
    expected = ((found + found.T) / 2)[: len(sources), first:]
    scores = model.score(sources, np.zeros(len(sources)))
    assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)
    nodes = np.array([0, first + 2])
    assert_allclose(model.vectors(nodes, 0.0), code.numpy()[nodes], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("events", ["ab", "aa", "ab ab", "aa bb", "aa ab aa ba ac"])
def test_hardly_any_events(events: str, kind: GraphKind) -> None:
    """All at once, some of them self-loops, and one more for validation."""
    pairs = [*events.split(), "ab"]
    stream = EventStream.from_columns(
        [pair[0] for pair in pairs], [pair[1] for pair in pairs], [7.0] * len(pairs), kind=kind
    )
    model = DynGEM(**TINY).fit(as_split(stream, len(pairs) - 1, len(pairs)))
    scores = model.score(np.arange(stream.num_sources), np.full(stream.num_sources, 8.0))
    assert np.isfinite(scores).all()


def test_a_run_that_was_stopped_ends_as_if_it_had_not(tmp_path: Path) -> None:
    split = synthesize(SyntheticConfig(events=120, sources=9, targets=8)).split(0.6, 0.2)
    settings = {**TINY, "batch_size": 8, "epochs": 2}

    def stop(update: ProgressUpdate) -> None:
        if update.epoch == 1 and update.batch == 40:
            raise KeyboardInterrupt

    whole = DynGEM(**settings).fit(split)
    with pytest.raises(KeyboardInterrupt):
        DynGEM(**settings).fit(split, run=tmp_path / "run", progress=stop)
    resumed = DynGEM(**settings).fit(split, run=tmp_path / "run", resume=True)
    for name, one in whole.network.state_dict().items():
        assert torch.equal(one, resumed.network.state_dict()[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    settings = {"width": 16, "hidden_widths": (64, 32), "snapshots": 3, "batch_size": 32}
    assert_learns(DynGEM(**settings, threads=1), learnable(kind))
