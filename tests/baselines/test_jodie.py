"""JODIE against a loop over single events, with one-hot codes, in double precision."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import ScoreArray
from tclgraph.baselines.coupled_states import EventRange
from tclgraph.baselines.jodie import JODIE, prediction_error
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing.streams import KINDS, cut, splits
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable
from tests.reference.intervals import in_units

EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


class OneByOne:
    """The method as the paper describes it: torch's cells, one event at a time, one-hot codes.

    In a one-mode graph both roles of a node share a list, so that each sees the other's updates.
    """

    def __init__(self, model: JODIE, split: Split) -> None:
        self.network, train = model.network, split.train
        self.num_sources, self.num_targets = train.num_sources, train.num_targets
        self.is_one_mode = train.kind == "one-mode"
        self.start = train.time[0]
        self.gaps: dict[str, list[float]] = {"source": [], "target": []}
        self.reset_state()
        for source, target, time in zip(train.source, train.target, train.time, strict=True):
            self.gaps["source"].append(time - self.source_time[source])
            self.gaps["target"].append(time - self.target_time[target])
            self.source_time[source] = self.target_time[target] = time
        self.reset_state()

    def reset_state(self) -> None:
        names = ["initial_node"] * 2 if self.is_one_mode else ["initial_source", "initial_target"]
        source, target = (
            functional.normalize(self.network.get_parameter(name), dim=0) for name in names
        )
        self.source: list[Tensor] = [source] * self.num_sources
        self.target: list[Tensor] = [target] * self.num_targets
        self.placeholder = target
        self.source_time = np.full(self.num_sources, self.start)
        self.target_time = np.full(self.num_targets, self.start)
        self.previous = [self.num_targets] * self.num_sources
        if self.is_one_mode:
            self.target, self.target_time = self.source, self.source_time

    def scaled(self, interval: float, role: str) -> Tensor:
        gaps = np.array(self.gaps[role])
        mean, deviation = gaps.mean(), gaps.std()
        # Rounding may leave equal gaps a tiny deviation.
        unit = deviation if deviation > 1e-9 * mean else mean
        return torch.tensor([in_units(interval - mean, unit)], dtype=torch.float64)

    def cell(self, role: int) -> nn.RNNCell:
        network, width = self.network, self.network.width
        cell = nn.RNNCell(width + 1, width, dtype=torch.float64)
        weights = {
            "weight_hh": network.cell[role, :width].T,
            "weight_ih": torch.cat([network.cell[role, width:], network.cell_interval[role]]).T,
            "bias_hh": network.cell_bias[role, 0],
            "bias_ih": torch.zeros(width, dtype=torch.float64),
        }
        for name, weight in weights.items():
            delattr(cell, name)
            setattr(cell, name, weight)
        return cell

    def predict(self, source: int, time: float) -> Tensor:
        network, previous = self.network, self.previous[source]
        interval = self.scaled(time - self.source_time[source], "source")
        drift = interval @ network.drift.weight.T + network.drift.bias
        weight = torch.cat(
            [
                network.predict_vectors.weight,
                network.predict_previous.weight.T,
                network.predict_source.weight.T,
            ],
            dim=1,
        )
        features = torch.cat(
            [
                self.source[source] * (1 + drift),
                self.placeholder if previous == self.num_targets else self.target[previous],
                functional.one_hot(torch.tensor(previous), self.num_targets + 1).double(),
                functional.one_hot(torch.tensor(source), self.num_sources).double(),
            ]
        )
        return weight @ features + network.predict_vectors.bias

    def embedding(self, target: int) -> Tensor:
        code = functional.one_hot(torch.tensor(target), self.num_targets).double()
        return torch.cat([self.target[target], code])

    def observe(self, source: int, target: int, time: float) -> tuple[Tensor, Tensor]:
        """Update both nodes, and return their new vectors; a self-loop counts as its source's."""
        source_interval = self.scaled(time - self.source_time[source], "source")
        target_interval = self.scaled(time - self.target_time[target], "target")
        old_source, old_target = self.source[source], self.target[target]
        new_source = self.cell(0)(torch.cat([old_target, source_interval]), old_source)
        new_target = self.cell(1)(torch.cat([old_source, target_interval]), old_target)
        new_source = functional.normalize(new_source, dim=0)
        new_target = functional.normalize(new_target, dim=0)
        self.target[target] = new_target
        self.source[source] = new_source
        self.source_time[source] = self.target_time[target] = time
        self.previous[source] = target
        if self.is_one_mode:
            self.previous[target] = source
        return new_source, new_target

    def loss(self, events: EventStream) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for source, target, time in zip(
            events.source.tolist(), events.target.tolist(), events.time.tolist(), strict=True
        ):
            predicted = self.predict(source, time)
            total = total + functional.mse_loss(predicted, self.embedding(target).detach())
            old_source, old_target = self.source[source], self.target[target]
            new_source, new_target = self.observe(source, target, time)
            moved = functional.mse_loss(new_source, old_source.detach())
            moved = moved + functional.mse_loss(new_target, old_target.detach())
            total = total + 0.5 * moved
        return total

    def detach(self, events: EventStream) -> None:
        """Detach the vectors that are carried to the next batch; initial vectors keep gradients."""
        for source, target in zip(events.source.tolist(), events.target.tolist(), strict=True):
            self.source[source] = self.source[source].detach()
            self.target[target] = self.target[target].detach()

    def distances(self, source: int, time: float) -> ScoreArray:
        predicted = self.predict(source, time)
        embeddings = map(self.embedding, range(self.num_targets))
        return np.array([(predicted - embedding).norm().item() for embedding in embeddings])


def prepared(split: Split) -> JODIE:
    model = JODIE(width=3, batch_size=7, smoothness=0.5)
    model.prepare(split)
    model.network.double()
    model.reset_state()
    return model


@settings(max_examples=20)
@given(splits())
def test_loss_and_gradients_of_a_batch_equal_single_events(split: Split) -> None:
    model = prepared(split)
    reference = OneByOne(model, split)
    parameters = dict(model.network.named_parameters())
    random = np.random.default_rng(0)
    for batch, first in enumerate(range(0, split.train_end, 7)):
        loss = model.loss(batch, random)
        expected = reference.loss(split.train[first : first + 7]) / 7
        assert_allclose(loss.item(), expected.item(), **EXACT)
        gradients = [
            torch.autograd.grad(
                value,
                list(parameters.values()),
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
            for value in (loss, expected)
        ]
        for name, gradient, expected_gradient in zip(parameters, *gradients, strict=True):
            assert_allclose(gradient, expected_gradient, err_msg=name, rtol=1e-7, atol=1e-10)
        reference.detach(split.train[: first + 7])


@settings(max_examples=20)
@given(splits())
def test_scores_rank_by_distance_from_the_prediction(split: Split) -> None:
    model = prepared(split)
    with torch.no_grad():
        reference = OneByOne(model, split)
        events = split.events
        scores = model.score_each(events)
        for row, (source, target, time) in enumerate(
            zip(events.source.tolist(), events.target.tolist(), events.time.tolist(), strict=True)
        ):
            squares = reference.distances(source, time) ** 2
            # Scores omit a term that is equal for all targets.
            assert_allclose(scores[row] - scores[row, 0], squares[0] - squares, atol=1e-8)
            reference.observe(source, target, time)
        nodes = reference.source if reference.is_one_mode else reference.source + reference.target
        expected = torch.stack([*nodes, reference.placeholder])
        assert_allclose(model.state_tensors()["vector"], expected, **EXACT)


def test_prediction_error_equals_that_of_one_hot_codes() -> None:
    random = torch.Generator().manual_seed(0)
    vector, true = torch.randn(2, 5, 3, generator=random, dtype=torch.float64)
    code = torch.randn(5, 4, generator=random, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 3, 3, 1, 2])
    error = prediction_error(vector, code, true, target)
    embedding = torch.cat([true, functional.one_hot(target, 4).double()], dim=1)
    predicted = torch.cat([vector, code], dim=1)
    expected = functional.mse_loss(predicted, embedding, reduction="none").mean(1)
    assert_allclose(error.detach(), expected.detach(), **EXACT)
    gradient, expected_gradient = (
        torch.autograd.grad(value.sum(), code)[0] for value in (error, expected)
    )
    assert_allclose(gradient, expected_gradient, **EXACT)


def test_a_person_of_a_one_mode_graph_has_one_vector() -> None:
    stream = EventStream.from_columns(list("abca"), list("bcab"), [0.0, 1, 2, 3], kind="one-mode")
    model = JODIE(width=3, epochs=1).fit(cut(stream, 3, 4))
    assert model.embed().shape == (3, 3)
    assert_array_equal(model.embed(side="source"), model.embed(side="target"))
    # An event updates both of its nodes, and nobody else.
    before = model.state_tensors()["vector"].clone()
    model.observe(stream[3:])  # a, b
    changed = (model.state_tensors()["vector"] != before).any(1)
    assert changed.tolist() == [True, True, False, False]


def test_the_previous_target_of_a_one_mode_graph_is_the_partner_of_the_latest_event() -> None:
    stream = EventStream.from_columns(list("abcc"), list("bcca"), [0.0, 1, 2, 3], kind="one-mode")
    model = JODIE(width=3, epochs=1)
    model.prepare(cut(stream, 3, 4))
    events = EventRange.all_events(model._train.graph)
    nobody = 3
    assert model._previous_partners(events).tolist() == [nobody, 0, 1]
    model.observe(stream[:3])
    partners = model._partners(model._nodes.instance, model.graph)
    assert partners.tolist() == [1, 2, 2, nobody]  # the last event is a self-loop


def test_only_sources_drift() -> None:
    stream = EventStream.from_columns(list("abca"), list("bcab"), [0.0, 1, 2, 3])
    model = JODIE(width=3, epochs=1).fit(cut(stream, 3, 4))
    assert model.embed(side="target").shape == (3, 3)
    # Sources drift until their next event, targets do not.
    assert (model.embed(at=9.0) != model.embed(at=4.0)).any()
    assert_array_equal(model.embed(side="target", at=9.0), model.embed(side="target", at=4.0))


def test_resuming_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    split = learnable()
    settings = {"width": 4, "epochs": 2, "batch_size": 512, "threads": 1}

    def stop(update: ProgressUpdate) -> None:
        if (update.epoch, update.batch) == (1, 3):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        JODIE(**settings).fit(split, run=tmp_path, progress=stop)
    resumed = JODIE(**settings).fit(split, run=tmp_path, resume=True)
    complete = JODIE(**settings).fit(split)
    for name, weight in complete.network.state_dict().items():
        assert torch.equal(weight, resumed.network.state_dict()[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    assert_learns(JODIE(epochs=6, width=16, threads=1), learnable(kind))
