"""The ranker's scores agree with their formula, written down candidate by candidate.

Features and vectors have references of their own; this one is about how they are combined.
"""

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.columns import NUM_ACTIVITY_FEATURES
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState
from tclgraph.features.time_scale import TimeScale
from tclgraph.models.ranker.model import Ranker
from tclgraph.models.ranker.windows import Window
from tests.models.tcl.test_reference import assert_near, assert_same_loss, cut_streams, seeds
from tests.reference.tcl import ReferenceTCL


@st.composite
def ranker_settings(draw: st.DrawFn, /, **fixed: Any) -> dict[str, Any]:
    names = ("repeat_head", "activity_features", "source_features", "nearby_features")
    chosen = {
        **{name: draw(st.booleans()) for name in names},
        "batch_size": draw(st.integers(1, 9)),
        **fixed,
    }
    if chosen["repeat_head"]:
        chosen["gate"] = draw(st.booleans())
        if chosen["gate"]:
            chosen["repeat_bias"] = draw(st.sampled_from([0.0, 1.0, -0.5]))
    if draw(st.booleans()):
        return {**chosen, "encoder": None}
    return {
        **chosen,
        "encoder.centered": draw(st.booleans()),
        "encoder.width": 8,
        "encoder.heads": 2,
        "encoder.levels": draw(st.integers(1, 3)),
    }


def untrained(chosen: dict[str, Any], split: Split, seed: int) -> Ranker:
    """Build a ranker with random parameters, so that no error hides behind a zero or a one."""
    model = Ranker(**chosen)
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.normal_(std=0.4, generator=generator)
        if model.network.match is not None and model.network.match.config.centered:
            model.network.match.mean_source.normal_(generator=generator)
    model.forget()
    return model


def features_before(
    time_scale: TimeScale, events: EventStream, event: int, source: int, time: float
) -> HistoryFeatures:
    """Return the features from a graph that ends just before the event."""
    graph = DependencyGraph(NodeSpace.of(events))
    graph.append(events[:event])
    log = InteractionLog(graph, time_scale)
    return HistoryState(log).features(np.array([source]), np.array([time]))


class SlowScores:
    """Computes log p of every candidate, one at a time, from the parameters by name."""

    def __init__(self, model: Ranker, events: EventStream) -> None:
        self.config = model.config
        self.time_scale = TimeScale(**model.measured["time_scale"])
        self.events = events
        heads = model.network.heads
        self.heads: dict[str, Tensor] = {**dict(heads.named_parameters())}
        self.heads |= dict(heads.named_buffers())
        self.match = match = model.network.match
        if match is not None:
            parameters = {
                name.removeprefix("encoder."): parameter
                for name, parameter in match.named_parameters()
            }
            self.reference = ReferenceTCL(events, parameters, match.config, match.encoder.scale)

    @property
    def mean_source(self) -> Tensor | None:
        if self.match is None or not self.match.config.centered:
            return None
        return self.match.mean_source

    def scaled(self, name: str, features: np.ndarray[Any, Any]) -> Tensor:
        values = torch.from_numpy(features).double()
        return (values - self.heads[f"{name}.mean"]) * self.heads[f"{name}.inverse_deviation"]

    def layers(self, name: str, value: Tensor) -> Tensor:
        """Apply the linear layers of a Sequential with GELU between them."""
        numbers = sorted(
            {int(key.split(".")[1]) for key in self.heads if key.startswith(f"{name}.")}
        )
        for number in numbers:
            weight, bias = (self.heads[f"{name}.{number}.{part}"] for part in ("weight", "bias"))
            value = weight @ value + bias
            if number != numbers[-1]:
                value = functional.gelu(value)
        return value[0]

    def explore_score(self, candidate: Tensor, source_features: Tensor) -> Tensor:
        weight = self.heads["explore.shared_weight"] + (
            self.heads["explore.source_weight.weight"] @ source_features
            + self.heads["explore.source_weight.bias"]
        )
        hidden = functional.relu(
            self.heads["explore.hidden.weight"] @ candidate + self.heads["explore.hidden.bias"]
        )
        return (weight * hidden).sum()

    def match_score(
        self, source: int, target: int, event: int, mean_source: Tensor | None
    ) -> Tensor | float:
        if self.match is None:
            return 0.0
        source_vector = self.reference.predictive_vector(source, event)
        node = target + self.reference.past.first_target
        target_vector = self.reference.predictive_vector(node, event)
        if mean_source is not None:
            multiplicative = self.reference.parameters["discriminator.multiplicative"]
            return (multiplicative * (source_vector - mean_source) * target_vector).sum()
        zero = torch.zeros_like(source_vector)  # subtracts a constant, which a softmax drops
        match = self.reference.match
        return match(source_vector, target_vector) - match(source_vector, zero)

    def log_probabilities(
        self,
        source: int,
        time: float,
        event: int,
        weights: dict[int, float],
        *,
        repeat_bias: float,
        mean_source: Tensor | None,
    ) -> dict[int, Tensor]:
        """Return log p of the targets in `weights`, each of which stands for so many targets."""
        features = features_before(self.time_scale, self.events, event, source, time)
        source_features = self.scaled("source_scaling", features.source[0])
        candidates = features.candidate.to_dense()[0]
        repeat, new = {}, {}
        if self.config.repeat_head:
            for row, target in enumerate(features.pair_target.tolist()):
                candidate = self.scaled("candidate_scaling", candidates[:, target])
                pair = self.scaled("pair_scaling", features.pair[row])
                inputs = torch.cat([pair, candidate, source_features])
                repeat[target] = self.layers("repeat", inputs)
        for target, weight in weights.items():
            if target in repeat:
                continue
            candidate = self.scaled("candidate_scaling", candidates[:, target])
            score = self.explore_score(candidate, source_features) + np.log(weight)
            new[target] = score + self.match_score(source, target, event, mean_source)
        if not repeat or not self.config.gate:
            total = torch.stack([*repeat.values(), *new.values()]).logsumexp(0)
            return {target: score - total for target, score in (repeat | new).items()}
        gate = self.layers("gate", source_features) + repeat_bias
        log_repeat, log_new = functional.logsigmoid(gate), functional.logsigmoid(-gate)
        if len(repeat) == self.events.num_targets:
            log_repeat = torch.zeros_like(gate)
        total = torch.stack(list(repeat.values())).logsumexp(0)
        result = {target: log_repeat + score - total for target, score in repeat.items()}
        if new:
            total = torch.stack(list(new.values())).logsumexp(0)
            result |= {target: log_new + score - total for target, score in new.items()}
        return result

    def of_all_targets(self, source: int, time: float, event: int) -> Tensor:
        count = self.events.num_targets
        result = self.log_probabilities(
            source,
            time,
            event,
            dict.fromkeys(range(count), 1.0),
            repeat_bias=self.config.repeat_bias,
            mean_source=self.mean_source,
        )
        return torch.stack([result[target] for target in range(count)])


@settings(max_examples=25)
@given(split=cut_streams(), chosen=ranker_settings(), seed=seeds, data=st.data())
@torch.no_grad()
def test_scores_are_log_probabilities_just_before_each_event(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    events = split.events
    model = untrained(chosen, split, seed)
    slow = SlowScores(model, events)
    start = data.draw(st.integers(0, len(events) - 1))
    model.observe(events[:start])
    ours = torch.from_numpy(model.score_each(events[start:]))
    expected = [
        slow.of_all_targets(int(events.source[event]), float(events.time[event]), event)
        for event in range(start, len(events))
    ]
    assert_near(ours, torch.stack(expected), within=1e-6)
    assert_near(ours.exp().sum(dim=1), torch.ones(len(ours), dtype=torch.float64), within=1e-6)
    # And at a later time, without further events.
    sources = np.arange(events.num_sources)
    later = events.time[-1] + 5_000.0 * np.arange(len(sources))
    expected = [
        slow.of_all_targets(source, time, len(events))
        for source, time in zip(sources.tolist(), later.tolist(), strict=True)
    ]
    assert_near(torch.from_numpy(model.score(sources, later)), torch.stack(expected), within=1e-6)


def columns_of(window: Window) -> set[int]:
    targets: list[int] = np.flatnonzero(window.candidates.column_of >= 0).tolist()
    return set(targets)


def draw_window(model: Ranker, number: int, seed: int) -> Window:
    match = model.network.match
    absent_node = None if match is None else match.encoder.absent_node
    return model.windows.draw(number, np.random.default_rng(seed), absent_node)


@settings(max_examples=30)
@given(
    split=cut_streams(),
    chosen=ranker_settings(),
    limit=st.sampled_from([2, 3, 99]),
    seed=seeds,
    data=st.data(),
)
def test_loss_and_every_gradient(
    split: Split, chosen: dict[str, Any], limit: int, seed: int, data: st.DataObject
) -> None:
    model = untrained({**chosen, "max_candidates": limit}, split, seed)
    train, count = split.train, split.train.num_targets
    number = data.draw(st.integers(0, len(model.windows) - 1))
    window = draw_window(model, number, seed)
    sample = np.random.default_rng(seed).choice(count, size=min(limit, count), replace=False)
    slow = SlowScores(model, train)
    first = number * model.config.batch_size
    num_events = len(window.true_target)
    mean_source = None
    compared = (first + window.features.candidate_query).tolist()
    if slow.mean_source is not None and compared:
        mean_source = torch.stack(
            [
                slow.reference.predictive_vector(int(train.source[event]), event)
                for event in compared
            ]
        ).mean(dim=0)
    losses = []
    for event in range(first, first + num_events):
        true = int(train.target[event])
        others = [target for target in sorted(sample.tolist()) if target != true]
        weight = (count - 1) / max(len(others), 1)
        result = slow.log_probabilities(
            int(train.source[event]),
            float(train.time[event]),
            event,
            {true: 1.0, **dict.fromkeys(others, weight)},
            repeat_bias=0.0,
            mean_source=mean_source,
        )
        losses.append(-result[true])
    if limit < count:
        assert columns_of(window) >= set(sample.tolist())
    assert_same_loss(model, model.window_loss(window), torch.stack(losses).mean())


@given(split=cut_streams(), chosen=ranker_settings())
def test_dropped_features_change_no_score(split: Split, chosen: dict[str, Any]) -> None:
    heads = untrained(chosen, split, 0).network.heads
    for name, scaling, columns in (
        ("source_features", heads.source_scaling, slice(None)),
        ("activity_features", heads.candidate_scaling, slice(0, NUM_ACTIVITY_FEATURES)),
        ("nearby_features", heads.candidate_scaling, slice(NUM_ACTIVITY_FEATURES, None)),
    ):
        is_dropped = bool((scaling.inverse_deviation[columns] == 0).all())
        assert is_dropped is not chosen[name]


def test_without_an_encoder_nothing_is_encoded() -> None:
    """No part of an encoder exists, neither in the network nor in training nor in the state."""
    stream = EventStream.from_columns(list("abab" * 5), list("xyzx" * 5), range(20))
    model = Ranker(encoder=None, epochs=1, threads=1).fit(stream.split(0.6, 0.2))
    assert model.network.match is None
    assert all(name.startswith("heads.") for name in model.network.state_dict())
    assert draw_window(model, 0, 0).roots is None
    assert model.state_tensors() == {}
