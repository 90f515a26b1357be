"""DynGEM against its published objective and a dense decoder; tiny streams; resuming."""

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
from tclgraph.testing.streams import KINDS, cut
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable

TINY: dict[str, Any] = {"width": 4, "hidden_widths": (6, 5), "threads": 1}


def prepared(kind: GraphKind = "bipartite", **settings: Any) -> DynGEM:
    split = synthesize(SyntheticConfig(events=120, sources=9, targets=8, kind=kind)).split(0.6, 0.2)
    model = DynGEM(**{**TINY, **settings})
    model.prepare(split)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_batches_add_up_to_the_published_loss(kind: GraphKind) -> None:
    model = prepared(kind, closeness=0.01, weight_penalty=0.003, batch_size=4)
    network = model.network.double()
    adjacency = model._graphs[1]
    num_nodes = model.graph.space.num_nodes
    true = np.zeros((num_nodes, num_nodes))
    true[adjacency.row, adjacency.neighbor] = adjacency.weight
    assert (true == true.T).all()

    # The reference: a dense autoencoder, and a loop over the edges.
    true_rows = torch.from_numpy(true)
    code = network.encoder(true_rows @ network.neighbor + network.neighbor_bias)
    reconstructed = network.output(network.decoder(code))
    b = torch.where(true_rows > 0, 5.0, 1.0)
    degree = (true_rows > 0).sum(1)
    published = torch.zeros((), dtype=torch.float64)
    for i, j in torch.nonzero(true_rows).tolist():
        for end in (i, j):
            error = ((reconstructed[end] - true_rows[end]) * b[end]).square().sum()
            published = published + error / degree[end]
        published = published + 0.01 * true_rows[i, j] * (code[i] - code[j]).square().sum()
    matrices = [parameter for parameter in network.parameters() if parameter.dim() == 2]
    assert len(matrices) == 6
    norms = [matrix.abs().sum() + (matrix**2).sum() for matrix in matrices]
    penalty = 0.003 * torch.stack(norms).sum()

    rows = np.flatnonzero(adjacency.degree)
    parts = np.array_split(rows, 3)
    losses = [model.snapshot_loss(adjacency, part) * len(part) / len(rows) for part in parts]
    loss_of_zeros = 2 * ((b * true_rows) ** 2).sum() / len(rows)
    expected = (published / len(rows) + penalty) / loss_of_zeros
    assert_close(torch.stack(losses).sum(), expected)


def test_snapshots_are_in_order_and_every_iteration_has_all_rows() -> None:
    model = prepared(snapshots=3, first_iterations=4, iterations=2, batch_size=5)
    numbers = [number for number, _ in model._batches]
    assert numbers == sorted(numbers)
    iterations = [4, 2, 2]
    for number, batches in itertools.groupby(model._batches, key=lambda batch: batch[0]):
        parts = [part for _, part in batches]
        assert max(map(len, parts)) <= 5
        times = np.bincount(np.concatenate(parts), minlength=model.graph.space.num_nodes)
        assert times.tolist() == [
            iterations[number] if degree else 0 for degree in model._graphs[number].degree
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_mean_of_two_reconstructed_entries(kind: GraphKind) -> None:
    model = prepared(kind)
    network, last = model.network, model._graphs[-1]
    true = np.zeros((model.graph.space.num_nodes,) * 2, dtype=np.float32)
    true[last.row, last.neighbor] = last.weight
    with torch.no_grad():
        code = network.encoder(torch.from_numpy(true) @ network.neighbor + network.neighbor_bias)
        reconstructed = network.output(network.decoder(code)).numpy()
    sources = np.arange(model.graph.space.num_sources)
    first = model.graph.space.first_target
    expected = ((reconstructed + reconstructed.T) / 2)[: len(sources), first:]
    scores = model.score(sources, np.zeros(len(sources)))
    assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)
    nodes = np.array([0, first + 2])
    assert_allclose(model.vectors(nodes, 0.0), code.numpy()[nodes], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("events", ["ab", "aa", "ab ab", "aa bb", "aa ab aa ba ac"])
def test_tiny_streams_give_finite_scores(events: str, kind: GraphKind) -> None:
    """All events are simultaneous, some are self-loops; one more event is for validation."""
    pairs = [*events.split(), "ab"]
    stream = EventStream.from_columns(
        [pair[0] for pair in pairs], [pair[1] for pair in pairs], [7.0] * len(pairs), kind=kind
    )
    model = DynGEM(**TINY).fit(cut(stream, len(pairs) - 1, len(pairs)))
    scores = model.score(np.arange(stream.num_sources), np.full(stream.num_sources, 8.0))
    assert np.isfinite(scores).all()


def test_resuming_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    split = synthesize(SyntheticConfig(events=120, sources=9, targets=8)).split(0.6, 0.2)
    settings = {**TINY, "batch_size": 8, "epochs": 2}

    def stop(update: ProgressUpdate) -> None:
        if update.epoch == 1 and update.batch == 40:
            raise KeyboardInterrupt

    complete = DynGEM(**settings).fit(split)
    with pytest.raises(KeyboardInterrupt):
        DynGEM(**settings).fit(split, run=tmp_path / "run", progress=stop)
    resumed = DynGEM(**settings).fit(split, run=tmp_path / "run", resume=True)
    for name, weight in complete.network.state_dict().items():
        assert torch.equal(weight, resumed.network.state_dict()[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    settings = {"width": 16, "hidden_widths": (64, 32), "snapshots": 3, "batch_size": 32}
    assert_learns(DynGEM(**settings, threads=1), learnable(kind))
