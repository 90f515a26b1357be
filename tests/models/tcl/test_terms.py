"""The score of the default preset against its formula written down, candidate by candidate.

HistoryFeatures have a reference of their own, and so have vectors: here it is how they are put together.
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
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState
from tclgraph.models.tcl.model import TCL
from tclgraph.models.tcl.terms import Scale
from tclgraph.models.tcl.windows import FullWindow
from tests.models.tcl.test_reference import (
    assert_near,
    assert_same_loss,
    cut_streams,
    reference_of,
    seeds,
)

SWITCHES = ("centered", "pair_history", "candidate_state", "source_state", "nearby", "embeddings")


@st.composite
def full_settings(draw: st.DrawFn, /, **fixed: Any) -> dict[str, Any]:
    return {
        **{name: draw(st.booleans()) for name in SWITCHES},
        "repeat_gate": draw(st.booleans()),
        "repeat_bias": draw(st.sampled_from([0.0, 1.0, -0.5])),
        "width": 8,
        "heads": 2,
        "levels": draw(st.integers(1, 3)),
        "batch_size": draw(st.integers(1, 9)),
        **fixed,
    }


def untrained(chosen: dict[str, Any], split: Split, seed: int) -> TCL:
    """With random values everywhere, so that nothing hides behind a zero or a one."""
    model = TCL("default", **chosen)
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.normal_(std=0.4, generator=generator)
        if model.config.centered:
            model.network.usual.normal_(generator=generator)
    model.forget()
    return model


def facts_before(events: EventStream, event: int, source: int, time: float) -> HistoryFeatures:
    """From a graph that ends just before the event."""
    graph = DependencyGraph(NodeSpace.of(events))
    graph.append(events[:event])
    state = HistoryState(InteractionLog(graph))
    return state.features(np.array([source]), np.array([time]))


class SlowScores:
    """log p of every candidate, one at a time, from the parameters by name."""

    def __init__(self, model: TCL, events: EventStream) -> None:
        self.config = model.config
        self.events = events
        self.reference = reference_of(model, events)
        self.usual = model.network.usual if model.config.centered else None
        assert model.network.terms is not None
        self.known: dict[str, Tensor] = {**dict(model.network.terms.named_parameters())}
        self.known |= dict(model.network.terms.named_buffers())

    def scaled(self, name: str, facts: np.ndarray[Any, Any]) -> Tensor:
        wide = torch.from_numpy(facts).double()
        return (wide - self.known[f"{name}.mean"]) * self.known[f"{name}.inverse"]

    def layers(self, name: str, value: Tensor) -> Tensor:
        """Linear layers of a Sequential with GELU between."""
        own = [one.split(".") for one in self.known if one.startswith(f"{name}.")]
        numbers = sorted({int(parts[1]) for parts in own})
        for number in numbers:
            weight, bias = (self.known[f"{name}.{number}.{one}"] for one in ("weight", "bias"))
            value = weight @ value + bias
            if number != numbers[-1]:
                value = functional.gelu(value)
        return value[0]

    def log_probabilities(
        self,
        source: int,
        time: float,
        event: int,
        among: list[int],
        stands_for: Tensor,
        *,
        bias: float,
        usual: Tensor | None,
    ) -> dict[int, Tensor]:
        """Of the targets in `among`, each standing for so many, the gate moved by so much.

        `usual` is the mean vector of sources.
        """
        facts = facts_before(self.events, event, source, time)
        about_source = self.scaled("source_scale", facts.source[0])
        by = self.known["by_all"] + (
            self.known["by_source.weight"] @ about_source + self.known["by_source.bias"]
        )
        asking = self.reference.predictive_vector(source, event)
        met = {}
        if self.config.pair_history:
            for row, target in enumerate(facts.pair_target.tolist()):
                about = self.scaled("candidate_scale", facts.candidate[0, :, target])
                pair = self.scaled("pair_scale", facts.pair[row])
                met[target] = self.layers("pair", torch.cat([pair, about, about_source]))
        new = {}
        for target, weight in zip(among, stands_for, strict=True):
            if target in met:
                continue
            about = self.scaled("candidate_scale", facts.candidate[0, :, target])
            hidden = functional.relu(
                self.known["candidate.weight"] @ about + self.known["candidate.bias"]
            )
            new[target] = (by * hidden).sum() + weight.log()
            if self.config.embeddings:
                node = target + self.reference.past.first_target
                other = self.reference.predictive_vector(node, event)
                if usual is not None:
                    multiplicative = self.reference.parameters["discriminator.multiplicative"]
                    new[target] = new[target] + (multiplicative * (asking - usual) * other).sum()
                else:
                    nobody = torch.zeros_like(asking)  # a constant, which a softmax drops
                    match = self.reference.match
                    new[target] = new[target] + match(asking, other) - match(asking, nobody)
        if met and self.config.repeat_gate:
            gate = self.layers("gate", about_source) + bias
            will, will_not = functional.logsigmoid(gate), functional.logsigmoid(-gate)
            if len(met) == self.events.num_targets:
                will = torch.zeros_like(gate)
            all_met = torch.stack(list(met.values())).logsumexp(0)
            found = {one: will + value - all_met for one, value in met.items()}
            if new:
                all_new = torch.stack(list(new.values())).logsumexp(0)
                found |= {one: will_not + value - all_new for one, value in new.items()}
            return found
        every = torch.stack([*met.values(), *new.values()]).logsumexp(0)
        return {one: value - every for one, value in (met | new).items()}

    def of_all(self, source: int, time: float, event: int) -> Tensor:
        count = self.events.num_targets
        found = self.log_probabilities(
            source,
            time,
            event,
            list(range(count)),
            torch.ones(count, dtype=torch.float64),
            bias=self.config.repeat_bias,
            usual=self.usual,
        )
        return torch.stack([found[target] for target in range(count)])


@settings(max_examples=25)
@given(split=cut_streams(), chosen=full_settings(), seed=seeds, data=st.data())
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
        slow.of_all(int(events.source[event]), float(events.time[event]), event)
        for event in range(start, len(events))
    ]
    assert_near(ours, torch.stack(expected), within=1e-6)
    assert_near(ours.exp().sum(dim=1), torch.ones(len(ours), dtype=torch.float64), within=1e-6)
    # And at a later time, when nothing else has happened.
    sources = np.arange(events.num_sources)
    later = events.time[-1] + 5_000.0 * np.arange(len(sources))
    expected = [
        slow.of_all(source, time, len(events))
        for source, time in zip(sources.tolist(), later.tolist(), strict=True)
    ]
    assert_near(torch.from_numpy(model.score(sources, later)), torch.stack(expected), within=1e-6)


def columns_of(window: FullWindow) -> list[int]:
    targets: list[int] = np.flatnonzero(window.column_of >= 0).tolist()
    return targets


@settings(max_examples=30)
@given(
    split=cut_streams(),
    chosen=full_settings(contrast_limit=3),
    limit=st.sampled_from([2, 3, 99]),
    seed=seeds,
    data=st.data(),
)
def test_loss_and_every_gradient(
    split: Split, chosen: dict[str, Any], limit: int, seed: int, data: st.DataObject
) -> None:
    model = untrained({**chosen, "contrast_limit": limit}, split, seed)
    train, count = split.train, split.train.num_targets
    num_windows = model.prepare(split)
    model = untrained({**chosen, "contrast_limit": limit}, split, seed)
    at = data.draw(st.integers(0, num_windows - 1))
    window = model._windows.draw_full(at, np.random.default_rng(seed))
    sample = np.random.default_rng(seed).choice(count, size=min(limit, count), replace=False)
    slow = SlowScores(model, train)
    first = at * model.config.batch_size
    sources = train.source[first : first + len(window.true_column)].tolist()
    asking = [slow.reference.predictive_vector(one, first + row) for row, one in enumerate(sources)]
    usual = torch.stack(asking).mean(dim=0) if chosen["centered"] else None
    losses = []
    for row in range(len(window.true_column)):
        true = int(train.target[first + row])
        others = [one for one in sorted(sample.tolist()) if one != true]
        each = (count - 1) / max(len(others), 1)
        found = slow.log_probabilities(
            int(train.source[first + row]),
            float(train.time[first + row]),
            first + row,
            [true, *others],
            torch.tensor([1.0, *[each] * len(others)], dtype=torch.float64),
            bias=0.0,
            usual=usual,
        )
        losses.append(-found[true])
    if limit < count:
        assert set(columns_of(window)) >= set(sample.tolist())
    assert_same_loss(model, model.full_loss_of(window), torch.stack(losses).mean())


@given(split=cut_streams(), chosen=full_settings())
def test_what_is_switched_off_changes_no_score(split: Split, chosen: dict[str, Any]) -> None:
    model = untrained(chosen, split, 0)
    assert model.network.terms is not None
    scales = dict(model.network.terms.named_modules())
    for name, scale, facts in (
        ("source_state", "source_scale", slice(None)),
        ("candidate_state", "candidate_scale", slice(0, 15)),
        ("nearby", "candidate_scale", slice(15, None)),
    ):
        found = scales[scale]
        assert isinstance(found, Scale)
        assert bool((found.inverse[facts] == 0).all()) is not chosen[name]
