from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.testing import assert_close

import tclgraph as tg
from tclgraph.baselines.graphsage import (
    GraphSAGE,
    GraphSAGEWithGAT,
    GraphSAGEWithGCN,
    GraphSAGEWithMean,
)
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.registry import load_model
from tclgraph.training import loop
from tclgraph.training.loop import best_epoch
from tclgraph.training.progress import ProgressUpdate
from tclgraph.training.run_folder import RunFolder
from tests.learnable import assert_learns, learnable
from tests.streams import KINDS, as_split

TINY: dict[str, Any] = {"epochs": 2, "batch_size": 64, "width": 8, "heads": 2, "threads": 1}
PLAIN = {name: value for name, value in TINY.items() if name != "heads"}


@pytest.fixture(scope="module")
def split() -> Split:
    config = tg.SyntheticConfig(events=300, sources=12, targets=15)
    return tg.synthesize(config).split(0.6, 0.2)


class Stop(Exception):
    """Raised in the middle of training."""


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = GraphSAGEWithMean(epochs=8, batch_size=128, learning_rate=1e-2, width=32, threads=1)
    assert_learns(model, learnable(kind))


def test_the_loss_is_that_of_each_pair_and_negative() -> None:
    # Everyone has one neighbor, so that samples are all the same.
    stream = EventStream.from_columns(list("abcab"), list("xyzxy"), range(5))
    split = as_split(stream, 4, 5)
    model = GraphSAGEWithGCN(
        width=4, depth=2, negatives=3, near_neighbors=2, far_neighbors=1, temperature=0.5
    )
    assert model.prepare(split) == 1
    model.network.double()
    loss = model.loss(0, np.random.default_rng(7))

    node, first, second = model.network.parameters()
    vectors = []
    for one in range(6):
        other = (one + 3) % 6  # a and x, b and y, c and z
        below = [
            torch.relu(first @ (node[mine] + node[its]) / 2)
            for mine, its in ((one, other), (other, one))
        ]
        top = second @ (below[0] + 2 * below[1]) / 3
        vectors.append(top / top.norm())
    # The same generator draws the same negatives; all targets have one neighbor, so any.
    negative = np.random.default_rng(7).choice(
        np.array([3, 4, 5]), size=(4, 3), p=np.full(3, 1 / 3)
    )
    pairs = model._pairs.tolist()
    assert sorted(pairs) == [[0, 3], [0, 3], [1, 4], [2, 5]]
    expected = torch.zeros((), dtype=torch.float64)
    for row, (source, target) in enumerate(pairs):
        product = vectors[source] @ vectors[target] / 0.5
        expected = expected - torch.sigmoid(product).log() / 4
        for one in negative[row].tolist():
            product = vectors[source] @ vectors[one] / 0.5
            expected = expected - torch.sigmoid(-product).log() / 12
    assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    weights = list(model.network.parameters())
    slopes = torch.autograd.grad(loss, weights)
    for slope, theirs in zip(slopes, torch.autograd.grad(expected, weights), strict=True):
        assert_close(slope, theirs, rtol=1e-8, atol=1e-10)


def test_negatives_are_targets_by_their_number_of_neighbors(split: Split) -> None:
    model = GraphSAGEWithMean(**PLAIN)
    model.prepare(split)
    train = split.train
    first = train.num_sources
    assert_array_equal(model._candidates, np.unique(train.target) + first)
    met = {
        one: {int(source) for source in train.source[train.target == one - first]}
        for one in model._candidates.tolist()
    }
    weight = np.array([len(met[one]) ** 0.75 for one in model._candidates.tolist()])
    np.testing.assert_allclose(model._chance, weight / weight.sum())


def test_scores_are_products_of_unit_vectors_and_stay(split: Split) -> None:
    model = GraphSAGEWithGAT(**TINY).fit(split)
    sources = np.arange(split.events.num_sources)
    now = np.zeros(len(sources))
    scores = model.score(sources, now)
    own, other = model.embed(side="source"), model.embed(side="target")
    np.testing.assert_allclose(np.linalg.norm(own, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(scores, own @ other.T, rtol=1e-4, atol=1e-6)
    model.observe(split.valid)
    assert_array_equal(model.score(sources, now), scores)


def test_weights_can_be_averaged(split: Split) -> None:
    model = GraphSAGEWithMean(**PLAIN, ema_decay=0.9).fit(split)
    assert np.isfinite(model.embed()).all()


@pytest.mark.parametrize("metric", ["MRR", "MR"])
def test_the_best_of_five_is_the_variant_that_does_best_alone(
    split: Split, tmp_path: Path, metric: str
) -> None:
    model = GraphSAGE(**TINY, choose_by=metric).fit(split, run=tmp_path / "run")
    alone = {}
    for kind in model.variants:
        heads = {} if kind != "gat" else {"heads": 2}
        variant = tg.build(f"graphsage-{kind}", **PLAIN, **heads, choose_by=metric).fit(split)
        alone[kind] = tg.evaluate(variant, split, part="valid", with_heuristics=False)
    choose = min if metric == "MR" else max
    best = choose(alone, key=lambda kind: alone[kind][metric])
    assert model.config.aggregator == best
    report = tg.evaluate(model, split, part="valid", with_heuristics=False)
    assert report[metric] == alone[best][metric]

    # The run is as one that had but this variant in it.
    folder = RunFolder(tmp_path / "run")
    told = folder.read_config()
    assert told is not None
    assert (told["model"], told["settings"]["aggregator"]) == ("graphsage", None)
    history = folder.read_metrics()
    entry = history[best_epoch(history, metric) - 1]
    assert entry["aggregator"] == best
    assert entry["valid"][metric] == report[metric]
    loaded = load_model(folder.path)
    assert isinstance(loaded, GraphSAGE)
    assert loaded.config == model.config
    assert_array_equal(loaded.embed(), model.embed())
    assert loaded.recommend(0, top=3) == model.recommend(0, top=3)


@pytest.mark.parametrize("num_batches", [4, 9, 27])
def test_five_that_were_interrupted_end_the_same(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_batches: int
) -> None:
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)  # after every batch
    moments: list[ProgressUpdate] = []

    def progress(update: ProgressUpdate) -> None:
        moments.append(update)
        if sum(not one.is_epoch_end for one in moments) > num_batches:
            raise Stop

    whole = GraphSAGE(**TINY).fit(split, run=tmp_path / "whole")
    with pytest.raises(Stop):
        GraphSAGE(**TINY).fit(split, run=tmp_path / "broken", progress=progress)
    with pytest.raises(InputError, match="holds a run already"):
        GraphSAGE(**TINY).fit(split, run=tmp_path / "broken")
    with pytest.raises(InputError, match="depth: then 2, now 1"):
        GraphSAGE(**TINY, depth=1).fit(split, run=tmp_path / "broken", resume=True)
    resumed = GraphSAGE(**TINY).fit(split, run=tmp_path / "broken", resume=True)
    assert resumed.config == whole.config
    assert_array_equal(resumed.embed(), whole.embed())
    told = []
    for name in ("whole", "broken"):
        entries = RunFolder(tmp_path / name).read_metrics()
        told.append([(one["epoch"], one["loss"], one["valid"]) for one in entries])
    assert told[0] == told[1]


def test_five_are_watched_as_one(split: Split) -> None:
    moments: list[ProgressUpdate] = []
    model = GraphSAGE(**TINY).fit(split, progress=moments.append)
    ends = [update for update in moments if update.is_epoch_end]
    assert [update.epoch for update in ends] == list(range(1, 11))
    assert {update.epochs for update in moments} == {10}
    assert ends[-1].best_epoch is not None
    best = max(ends, key=lambda update: (update.valid or {})["MRR"])
    assert ends[-1].best_epoch == best.epoch
    assert list(model.variants)[(best.epoch - 1) // 2] == model.config.aggregator


def test_one_aggregator_can_be_asked_for(split: Split) -> None:
    asked = GraphSAGE(**TINY, aggregator="mean").fit(split)
    assert_array_equal(asked.embed(), GraphSAGEWithMean(**PLAIN).fit(split).embed())


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="unknown setting 'aggregator'"):
        GraphSAGEWithGCN(aggregator="mean")
    with pytest.raises(InputError, match="unknown setting 'heads'"):
        GraphSAGEWithMean(heads=2)
    for kind in (GraphSAGE, GraphSAGEWithGAT):
        with pytest.raises(InputError, match="3 heads cannot split a width of 64"):
            kind(heads=3)
