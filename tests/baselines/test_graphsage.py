"""GraphSAGE against its loss written out by hand, and the selection among five aggregators."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.testing import assert_close

import tclgraph as tg
from tclgraph.baselines.graphsage import AGGREGATORS, Aggregator, GraphSAGE
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.registry import load_model
from tclgraph.testing.streams import KINDS, cut
from tclgraph.training import loop
from tclgraph.training.loop import best_epoch
from tclgraph.training.progress import ProgressUpdate
from tclgraph.training.run_folder import RunFolder
from tests.learnable import assert_learns, learnable

TINY: dict[str, Any] = {"epochs": 2, "batch_size": 64, "width": 8, "threads": 1}
FIVE: dict[str, Any] = {**TINY, "heads": 2}


def with_aggregator(aggregator: Aggregator, **settings: Any) -> GraphSAGE:
    heads = {"heads": 2} if aggregator == "gat" else {}
    return GraphSAGE(**TINY, **heads, **settings, aggregator=aggregator)


@pytest.fixture(scope="module")
def split() -> Split:
    config = tg.SyntheticConfig(events=300, sources=12, targets=15)
    return tg.synthesize(config).split(0.6, 0.2)


class Stop(Exception):
    """Raised in the middle of training."""


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = GraphSAGE(
        aggregator="mean", epochs=8, batch_size=128, learning_rate=1e-2, width=32, threads=1
    )
    assert_learns(model, learnable(kind))


def test_loss_equals_the_formula_over_pairs_and_negatives() -> None:
    # Every node has a single neighbor, so all samples are equal.
    stream = EventStream.from_columns(list("abcab"), list("xyzxy"), range(5))
    split = cut(stream, 4, 5)
    model = GraphSAGE(
        aggregator="gcn",
        width=4,
        depth=2,
        negatives=3,
        near_neighbors=2,
        far_neighbors=1,
        temperature=0.5,
    )
    assert model.prepare(split) == 1
    model.network.double()
    loss = model.loss(0, np.random.default_rng(7))

    features, first, second = model.network.parameters()
    vectors = []
    for node in range(6):
        neighbor = (node + 3) % 6  # a and x, b and y, c and z
        below = [
            torch.relu(first @ (features[center] + features[other]) / 2)
            for center, other in ((node, neighbor), (neighbor, node))
        ]
        top = second @ (below[0] + 2 * below[1]) / 3
        vectors.append(top / top.norm())
    # An equal generator draws the same negatives; every target has one neighbor, so all are
    # equally likely.
    negatives = np.random.default_rng(7).choice(
        np.array([3, 4, 5]), size=(4, 3), p=np.full(3, 1 / 3)
    )
    pairs = model._pairs.tolist()
    assert sorted(pairs) == [[0, 3], [0, 3], [1, 4], [2, 5]]
    expected = torch.zeros((), dtype=torch.float64)
    for row, (source, target) in enumerate(pairs):
        product = vectors[source] @ vectors[target] / 0.5
        expected = expected - torch.sigmoid(product).log() / 4
        for negative in negatives[row].tolist():
            product = vectors[source] @ vectors[negative] / 0.5
            expected = expected - torch.sigmoid(-product).log() / 12
    assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    weights = list(model.network.parameters())
    gradients = torch.autograd.grad(loss, weights)
    expected_gradients = torch.autograd.grad(expected, weights)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert_close(gradient, expected_gradient, rtol=1e-8, atol=1e-10)


def test_negatives_are_training_targets_weighted_by_their_number_of_neighbors(
    split: Split,
) -> None:
    model = with_aggregator("mean")
    model.prepare(split)
    train = split.train
    first_target = train.num_sources
    candidates = model._candidates.tolist()
    assert_array_equal(candidates, np.unique(train.target) + first_target)
    num_neighbors = [
        len(np.unique(train.source[train.target == candidate - first_target]))
        for candidate in candidates
    ]
    weight = np.array(num_neighbors) ** 0.75
    np.testing.assert_allclose(model._probability, weight / weight.sum())


def test_scores_are_products_of_unit_vectors_and_ignore_later_events(split: Split) -> None:
    model = with_aggregator("gat").fit(split)
    sources = np.arange(split.events.num_sources)
    now = np.zeros(len(sources))
    scores = model.score(sources, now)
    source_vectors, target_vectors = model.embed(side="source"), model.embed(side="target")
    np.testing.assert_allclose(np.linalg.norm(source_vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(scores, source_vectors @ target_vectors.T, rtol=1e-4, atol=1e-6)
    model.observe(split.valid)
    assert_array_equal(model.score(sources, now), scores)


def test_ema_of_the_weights_gives_finite_vectors(split: Split) -> None:
    model = with_aggregator("mean", ema_decay=0.9).fit(split)
    assert np.isfinite(model.embed()).all()


@pytest.mark.parametrize("metric", ["MRR", "MR"])
def test_fit_keeps_the_aggregator_that_is_best_when_trained_alone(
    split: Split, tmp_path: Path, metric: str
) -> None:
    model = GraphSAGE(**FIVE, selection_metric=metric).fit(split, run=tmp_path / "run")
    reports = {}
    for aggregator in AGGREGATORS:
        alone = with_aggregator(aggregator, selection_metric=metric).fit(split)
        reports[aggregator] = tg.evaluate(alone, split, part="valid", with_heuristics=False)
    choose = min if metric == "MR" else max
    best = choose(AGGREGATORS, key=lambda aggregator: reports[aggregator][metric])
    assert model.config == with_aggregator(best, selection_metric=metric).config
    report = tg.evaluate(model, split, part="valid", with_heuristics=False)
    assert report[metric] == reports[best][metric]

    # The run folder looks like that of a run with the best aggregator only.
    folder = RunFolder(tmp_path / "run")
    config = folder.read_config()
    assert config is not None
    assert (config["model"], config["settings"]["aggregator"]) == ("graphsage", None)
    history = folder.read_metrics()
    entry = history[best_epoch(history, metric) - 1]
    assert entry["valid"][metric] == report[metric]
    loaded = load_model(folder.path)
    assert isinstance(loaded, GraphSAGE)
    assert loaded.config == model.config
    assert_array_equal(loaded.embed(), model.embed())
    for ours, theirs in zip(loaded.recommend(0, top=3), model.recommend(0, top=3), strict=True):
        assert ours.target == theirs.target
        # BLAS may round in another way if an array starts elsewhere in memory.
        assert ours.score == pytest.approx(theirs.score, rel=1e-6)


def test_each_aggregator_trains_in_a_sub_folder_with_the_given_settings(
    split: Split, tmp_path: Path
) -> None:
    GraphSAGE(**FIVE).fit(split, run=tmp_path)
    for aggregator in AGGREGATORS:
        config = RunFolder(tmp_path / aggregator).read_config()
        assert config is not None
        settings = config["settings"]
        assert settings["aggregator"] == aggregator
        assert settings["heads"] == (2 if aggregator == "gat" else None)
        assert {name: settings[name] for name in TINY} == TINY


@pytest.mark.parametrize("num_batches", [4, 9, 27])
def test_an_interrupted_run_of_five_ends_the_same_after_resuming(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_batches: int
) -> None:
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)  # after every batch
    num_seen = 0

    def progress(update: ProgressUpdate) -> None:
        nonlocal num_seen
        num_seen += not update.is_epoch_end
        if num_seen > num_batches:
            raise Stop

    complete = GraphSAGE(**FIVE).fit(split, run=tmp_path / "complete")
    with pytest.raises(Stop):
        GraphSAGE(**FIVE).fit(split, run=tmp_path / "interrupted", progress=progress)
    with pytest.raises(InputError, match="holds a run already"):
        GraphSAGE(**FIVE).fit(split, run=tmp_path / "interrupted")
    with pytest.raises(InputError, match="depth: then 2, now 1"):
        GraphSAGE(**FIVE, depth=1).fit(split, run=tmp_path / "interrupted", resume=True)
    resumed = GraphSAGE(**FIVE).fit(split, run=tmp_path / "interrupted", resume=True)
    assert resumed.config == complete.config
    assert_array_equal(resumed.embed(), complete.embed())
    histories = []
    for name in ("complete", "interrupted"):
        entries = RunFolder(tmp_path / name).read_metrics()
        histories.append([(entry["epoch"], entry["loss"], entry["valid"]) for entry in entries])
    assert histories[0] == histories[1]


def test_progress_of_five_is_reported_as_one_training(split: Split) -> None:
    updates: list[ProgressUpdate] = []
    model = GraphSAGE(**FIVE).fit(split, progress=updates.append)
    ends = [update for update in updates if update.is_epoch_end]
    assert [update.epoch for update in ends] == list(range(1, 11))
    assert {update.epochs for update in updates} == {10}
    assert ends[-1].best_epoch is not None
    best = max(ends, key=lambda update: (update.valid or {})["MRR"])
    assert ends[-1].best_epoch == best.epoch
    assert AGGREGATORS[(best.epoch - 1) // 2] == model.config.aggregator


def test_settings_without_effect_or_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="heads=2 has no effect with aggregator=mean"):
        GraphSAGE(aggregator="mean", heads=2)
    with pytest.raises(InputError, match="aggregator='sum'"):
        GraphSAGE(aggregator="sum")
    for aggregator in (None, "gat"):
        with pytest.raises(InputError, match="3 heads cannot split a width of 64"):
            GraphSAGE(aggregator=aggregator, heads=3)
        with pytest.raises(InputError, match="8 heads cannot split a width of 12"):
            GraphSAGE(aggregator=aggregator, width=12)
    assert GraphSAGE(aggregator="mean", width=12).config.width == 12
