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
from tclgraph.baselines.jodie import JODIE, prediction_error
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable
from tests.streams import KINDS, as_split, splits

EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


class OneByOne:
    """The method as it is told: torch's cells, one event at a time, one-hot codes written out."""

    def __init__(self, model: JODIE, split: Split) -> None:
        self.network, train = model.network, split.train
        self.num_sources, self.num_targets = train.num_sources, train.num_targets
        self.start = train.time[0]
        self.gaps: dict[str, list[float]] = {"source": [], "target": []}
        self.begin()
        for source, target, time in zip(train.source, train.target, train.time, strict=True):
            self.gaps["source"].append(time - self.source_time[source])
            self.gaps["target"].append(time - self.target_time[target])
            self.source_time[source] = self.target_time[target] = time
        self.begin()

    def begin(self) -> None:
        network = self.network
        first_source = functional.normalize(network.first_source, dim=0)
        first_target = functional.normalize(network.first_target, dim=0)
        self.source: list[Tensor] = [first_source] * self.num_sources
        self.target: list[Tensor] = [first_target] * (self.num_targets + 1)
        self.source_time = np.full(self.num_sources, self.start)
        self.target_time = np.full(self.num_targets, self.start)
        self.previous = [self.num_targets] * self.num_sources

    def scaled(self, seconds: float, role: str) -> Tensor:
        gaps = np.array(self.gaps[role])
        return torch.tensor([(seconds - gaps.mean()) / (gaps.std() or 1.0)], dtype=torch.float64)

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
                network.of_vectors.weight,
                network.of_previous.weight.T,
                network.of_source.weight.T,
            ],
            dim=1,
        )
        known = torch.cat(
            [
                self.source[source] * (1 + drift),
                self.target[previous],
                functional.one_hot(torch.tensor(previous), self.num_targets + 1).double(),
                functional.one_hot(torch.tensor(source), self.num_sources).double(),
            ]
        )
        return weight @ known + network.of_vectors.bias

    def look_of(self, target: int) -> Tensor:
        code = functional.one_hot(torch.tensor(target), self.num_targets).double()
        return torch.cat([self.target[target], code])

    def happen(self, source: int, target: int, time: float) -> None:
        own = self.scaled(time - self.source_time[source], "source")
        others = self.scaled(time - self.target_time[target], "target")
        old_source, old_target = self.source[source], self.target[target]
        new_source = self.cell(0)(torch.cat([old_target, own]), old_source)
        new_target = self.cell(1)(torch.cat([old_source, others]), old_target)
        self.source[source] = functional.normalize(new_source, dim=0)
        self.target[target] = functional.normalize(new_target, dim=0)
        self.source_time[source] = self.target_time[target] = time
        self.previous[source] = target

    def loss(self, events: EventStream) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for source, target, time in zip(
            events.source.tolist(), events.target.tolist(), events.time.tolist(), strict=True
        ):
            predicted = self.predict(source, time)
            total = total + functional.mse_loss(predicted, self.look_of(target).detach())
            old_source, old_target = self.source[source], self.target[target]
            self.happen(source, target, time)
            moved = functional.mse_loss(self.source[source], old_source.detach())
            moved = moved + functional.mse_loss(self.target[target], old_target.detach())
            total = total + 0.5 * moved
        return total

    def forget_where_from(self, events: EventStream) -> None:
        """Vectors are carried to the next batch without their gradients, first ones with them."""
        for source, target in zip(events.source.tolist(), events.target.tolist(), strict=True):
            self.source[source] = self.source[source].detach()
            self.target[target] = self.target[target].detach()

    def distances(self, source: int, time: float) -> ScoreArray:
        predicted = self.predict(source, time)
        found = [(predicted - self.look_of(one)).norm().item() for one in range(self.num_targets)]
        return np.array(found)


def prepared(split: Split) -> JODIE:
    model = JODIE(width=3, batch_size=7, smoothness=0.5)
    model.prepare(split)
    model.network.double()
    model.begin()
    return model


@settings(max_examples=20)
@given(splits())
def test_a_batch_equals_one_event_after_the_other(split: Split) -> None:
    model = prepared(split)
    reference = OneByOne(model, split)
    parameters = dict(model.network.named_parameters())
    random = np.random.default_rng(0)
    for batch, first in enumerate(range(0, split.train_end, 7)):
        ours = model.loss(batch, random)
        theirs = reference.loss(split.train[first : first + 7]) / 7
        assert_allclose(ours.item(), theirs.item(), **EXACT)
        gradients = [
            torch.autograd.grad(
                one, list(parameters.values()), retain_graph=True, allow_unused=True
            )
            for one in (ours, theirs)
        ]
        for name, mine, other in zip(parameters, *gradients, strict=True):
            zero = torch.zeros_like(parameters[name])
            mine, other = (zero if one is None else one for one in (mine, other))
            assert_allclose(mine, other, err_msg=name, rtol=1e-7, atol=1e-10)
        reference.forget_where_from(split.train[: first + 7])


@settings(max_examples=20)
@given(splits())
def test_scores_are_distances(split: Split) -> None:
    model = prepared(split)
    with torch.no_grad():
        reference = OneByOne(model, split)
        events = split.events
        scores = model.score_each(events)
        for row, (source, target, time) in enumerate(
            zip(events.source.tolist(), events.target.tolist(), events.time.tolist(), strict=True)
        ):
            squares = reference.distances(source, time) ** 2
            # The score leaves out what is equal for all targets.
            assert_allclose(scores[row] - scores[row, 0], squares[0] - squares, atol=1e-8)
            reference.happen(source, target, time)
        assert_allclose(model.state_tensors()["source"], torch.stack(reference.source), **EXACT)
        assert_allclose(model.state_tensors()["target"], torch.stack(reference.target), **EXACT)


def test_the_error_of_a_prediction_without_writing_codes_out() -> None:
    random = torch.Generator().manual_seed(0)
    vector, true = torch.randn(2, 5, 3, generator=random, dtype=torch.float64)
    code = torch.randn(5, 4, generator=random, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 3, 3, 1, 2])
    ours = prediction_error(vector, code, true, target)
    look = torch.cat([true, functional.one_hot(target, 4).double()], dim=1)
    theirs = functional.mse_loss(torch.cat([vector, code], dim=1), look, reduction="none").mean(1)
    assert_allclose(ours.detach(), theirs.detach(), **EXACT)
    mine, other = (torch.autograd.grad(one.sum(), code)[0] for one in (ours, theirs))
    assert_allclose(mine, other, **EXACT)


def test_a_node_has_a_vector_in_either_role() -> None:
    stream = EventStream.from_columns(list("abca"), list("bcab"), [0.0, 1, 2, 3], kind="one-mode")
    model = JODIE(width=3, epochs=1).fit(as_split(stream, 3, 4))
    assert model.embed().shape == (3, 6)
    both = EventStream.from_columns(list("abca"), list("bcab"), [0.0, 1, 2, 3])
    model = JODIE(width=3, epochs=1).fit(as_split(both, 3, 4))
    assert model.embed(side="target").shape == (3, 3)
    # Sources drift until their next event, targets stay.
    assert (model.embed(at=9.0) != model.embed(at=4.0)).any()
    assert_array_equal(model.embed(side="target", at=9.0), model.embed(side="target", at=4.0))


def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    split = learnable()
    settings = {"width": 4, "epochs": 2, "batch_size": 512, "threads": 1}

    def stop(update: ProgressUpdate) -> None:
        if (update.epoch, update.batch) == (1, 3):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        JODIE(**settings).fit(split, run=tmp_path, progress=stop)
    resumed = JODIE(**settings).fit(split, run=tmp_path, resume=True)
    whole = JODIE(**settings).fit(split)
    for name, weight in whole.network.state_dict().items():
        assert torch.equal(weight, resumed.network.state_dict()[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    assert_learns(JODIE(epochs=6, width=16, threads=1), learnable(kind))
