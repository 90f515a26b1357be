"""The product against the equations written down one instance at a time, in double precision."""

from collections.abc import Sequence
from math import log1p
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.baselines.tdig_mpnn import TDIGMPNN
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tests.learnable import assert_learns, learnable
from tests.reference.tcl import Instance, Past, softplus, without_past
from tests.streams import KINDS, as_split, streams

Path = tuple[Instance, ...]
"""From a root down to an instance of its tree; paths of one level that end alike are one row."""
seeds = st.integers(0, 999)


class Reference:
    """Recursive, of given parameters that are named as the product's network names them."""

    def __init__(self, model: TDIGMPNN, events: EventStream) -> None:
        self.past = Past(events)
        self.config = model.config
        self.units = model.network.units
        self.named = dict(model.network.named_parameters())
        met = len({target for _, target in self.past.parties})
        self.num_others = (events.num_targets if met == 1 else met) - 1 or 1

    # Trees

    def below(self, path: Path) -> list[Path]:
        event = self.past.previous_event(path[-1])
        if event is None or len(path) == self.config.levels:
            return []
        return [(*path, one) for one in self.past.instances(event, path[-1].node)]

    def rows(self, root: Instance) -> list[Path]:
        """All paths of a tree, one for each instance of a level."""
        level: list[Path] = [(root,)]
        found: list[Path] = []
        while level:
            found += level
            following = {path[-1]: path for above in level for path in self.below(above)}
            level = list(following.values())
        return found

    # States

    def interval(self, instance: Instance) -> float:
        return float(log1p(self.past.interval(instance)) / self.units.log_deviation)

    def input(self, instance: Instance) -> Tensor:
        table = self.named["node.weight"]
        own = table[instance.node]
        if not self.config.local_attention or instance.event is None:
            return own
        others = [self.past.parties[instance.event][1 - instance.side]]
        event = self.past.previous_event(instance)
        if event is not None:
            others += [one.node for one in self.past.instances(event, instance.node)]
        values = [
            self.named[f"local.value.{kind}.weight"] @ table[node]
            for kind, node in enumerate(others)
        ]
        logits = torch.stack(
            [
                self.named["local.by_own.weight"][kind] @ own
                + self.named["local.by_other"][kind] @ value
                + self.named["local.by_interval"][kind] * self.interval(instance)
                for kind, value in enumerate(values)
            ]
        )
        logits = torch.where(logits > 0, logits, 0.2 * logits)
        return own + torch.softmax(logits, 0) @ torch.stack(values)

    def gates(self, hidden: Sequence[dict[Path, Tensor]]) -> list[dict[Path, Tensor]]:
        """Of the rows of both trees, by co-attention."""
        if not self.config.selection:
            return [{path: torch.tensor(1.0) for path in tree} for tree in hidden]
        weight = self.named["encoder.selection.match.weight"]
        found = []
        for side, (own, other) in enumerate((hidden, hidden[::-1])):
            best = []
            for mine in own.values():
                pairs = [(mine, one) if side == 0 else (one, mine) for one in other.values()]
                best.append(torch.stack([torch.tanh(a @ weight @ b) for a, b in pairs]).max())
            summary = torch.softmax(torch.stack(best), 0) @ torch.stack(list(own.values()))
            told = self.named["encoder.selection.by_summary.weight"][0] @ summary
            by_row = self.named["encoder.selection.by_row.weight"][0]
            found.append({path: torch.sigmoid(told + by_row @ h) for path, h in own.items()})
        return found

    def unit(self, layer: int, path: Path, given: dict[Any, Tensor]) -> tuple[Tensor, Tensor]:
        """State and cell; `given` has the gated input of every (level, instance)."""
        name = f"encoder.layers.{layer}"
        x = given[len(path), path[-1]]
        below = [self.unit(layer, one, given) for one in self.below(path)]
        write = self.named[f"{name}.written.weight"] @ x + self.named[f"{name}.written.bias"]
        keep = self.named[f"{name}.forget.weight"] @ x + self.named[f"{name}.forget.bias"]
        d = len(x)
        remembered = torch.zeros_like(x)
        for party, (h, c) in enumerate(below):
            told = self.named[f"{name}.{('from_own', 'from_partner')[party]}.weight"] @ h
            write = write + told[: 3 * d]
            f = keep[2 * d * party :][:d] + told[3 * d : 4 * d]
            g = keep[2 * d * party + d :][:d] + told[4 * d :]
            g = g + self.named[f"{name}.from_interval"][party] * self.interval(path[-1])
            remembered = remembered + torch.sigmoid(f) * torch.sigmoid(g) * c
        z, o, s = write[:d], write[d : 2 * d], write[2 * d :]
        cell = torch.sigmoid(z) * torch.tanh(s) + remembered
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def encode(self, roots: Sequence[Instance]) -> list[Tensor]:
        """Fused states of the two parties of an event."""
        hidden = [{path: self.input(path[-1]) for path in self.rows(root)} for root in roots]
        of_roots = [[tree[(root,)] for tree, root in zip(hidden, roots, strict=True)]]
        for layer in range(self.config.layers):
            following = []
            for tree, gates in zip(hidden, self.gates(hidden), strict=True):
                given = {(len(path), path[-1]): gates[path] * h for path, h in tree.items()}
                skip = self.named[f"encoder.skips.{layer}.weight"]
                following.append(
                    {path: self.unit(layer, path, given)[0] + skip @ h for path, h in tree.items()}
                )
            hidden = following
            of_roots.append([tree[(root,)] for tree, root in zip(hidden, roots, strict=True)])
        share = torch.softmax(self.named["encoder.fusion"], 0)
        scale = self.named["encoder.fusion_scale"]
        return [
            scale * sum(part * layer[side] for part, layer in zip(share, of_roots, strict=True))
            for side in (0, 1)
        ]

    def vector(self, node: int, before_event: int) -> Tensor:
        event = self.past.last_event(node, before_event)
        if event is None:
            both = self.encode([without_past(node), without_past(self.past.num_nodes)])
        else:
            own, partner = self.past.instances(event, node)
            both = self.encode(sorted((own, partner), key=lambda one: one.side))
            both = both if own.side == 0 else both[::-1]
        return self.named["mix.weight"] @ torch.cat(both) + self.named["mix.bias"]

    # Point process

    def waited(self, node: int, before_event: int, time: float) -> tuple[float, float]:
        """In mean gaps since the node's last event, or since the first of all; and a 1, or a 0."""
        event = self.past.last_event(node, before_event)
        since = self.past.time[event or 0] if before_event else time
        return (time - since) / self.units.mean, 0.0 if event is None else 1.0

    def rate(self, match: Tensor, waits: Sequence[tuple[float, float]], ago: float = 0.0) -> Tensor:
        line = match + self.named["intensity.bias"]
        for slope, (waited, acted) in zip(self.named["intensity.slopes"], waits, strict=True):
            line = line + slope * acted * (waited - ago)
        return softplus(line)

    def survival(self, match: Tensor, waits: Sequence[tuple[float, float]]) -> Tensor:
        """∫ λ from the later of the two last events until now, at five Gauss-Legendre points."""
        span = min(waited for waited, _ in waits)
        total = torch.zeros_like(match)
        for point, weight in zip(*np.polynomial.legendre.leggauss(5), strict=True):
            total = total + weight * self.rate(match, waits, span * (1 - point) / 2)
        return total * span / 2

    def pair(
        self, source: int, target: int, event: int, time: float
    ) -> tuple[Tensor, list[tuple[float, float]]]:
        a, b = (self.vector(node, event) for node in (source, target))
        match = self.named["discriminator.additive"] @ (a + b)
        match = match + self.named["discriminator.multiplicative"] @ (a * b)
        return match, [self.waited(node, event, time) for node in (source, target)]

    def loss(self, event: int, nodes: Sequence[int]) -> Tensor:
        source, *columns = nodes
        pairs = [self.pair(source, one, event, self.past.time[event]) for one in columns]
        true, *others = [self.survival(*one) for one in pairs]
        weight = self.config.survival_weight or self.num_others / self.config.negatives
        return true + weight * torch.stack(others).sum() - self.rate(*pairs[0]).log()

    def scores(self, source: int, event: int, time: float) -> Tensor:
        found = []
        for target in range(self.past.first_target, self.past.num_nodes):
            pair = self.pair(source, target, event, time)
            survived = self.survival(*pair) if self.config.rank_by == "density" else 0.0
            found.append(self.rate(*pair).log() - survived)
        return torch.stack(found)


@st.composite
def chosen_settings(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "width": 3,
        "levels": draw(st.integers(1, 4)),
        "layers": draw(st.integers(1, 2)),
        "selection": draw(st.booleans()),
        "local_attention": draw(st.booleans()),
        "personalized": draw(st.booleans()),
        "rank_by": draw(st.sampled_from(["density", "intensity"])),
        "survival_weight": draw(st.sampled_from([None, 0.5])),
        "negatives": 2,
        "batch_size": 4,
    }


@st.composite
def cut_streams(draw: st.DrawFn) -> Split:
    """Trained on a part, so that the rest has nodes which training never met."""
    events = draw(streams(min_events=3, max_events=14))
    train_end = draw(st.integers(1, len(events)))
    return as_split(events, train_end, train_end)


def untrained(chosen: dict[str, Any], split: Split, seed: int) -> TDIGMPNN:
    """With random values everywhere, so that nothing hides behind a zero or a one."""
    model = TDIGMPNN(**chosen)
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            if parameter.requires_grad:
                # Gentle slopes: hundreds of mean gaps may pass in these streams.
                deviation = 0.02 if name == "intensity.slopes" else 0.5
                parameter.normal_(std=deviation, generator=generator)
    model.forget()
    return model


def assert_near(ours: Tensor, theirs: Tensor, what: str = "") -> None:
    assert_close(ours, theirs, rtol=1e-8, atol=1e-8, msg=lambda told: f"{what} {told}")


@settings(max_examples=25)
@given(split=cut_streams(), chosen=chosen_settings(), seed=seeds, data=st.data())
def test_loss_and_every_gradient(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    model = untrained(chosen, split, seed)
    reference = Reference(model, split.train)
    events = data.draw(
        st.lists(st.integers(0, len(split.train) - 1), min_size=1, max_size=3, unique=True)
    )
    others = st.integers(reference.past.first_target, reference.past.num_nodes - 1)
    rows = [[*reference.past.parties[event], data.draw(others)] for event in events]
    ours = model.loss_of(np.array(events), np.array(rows))
    losses = [reference.loss(event, row) for event, row in zip(events, rows, strict=True)]
    theirs = torch.stack(losses).mean()
    assert_near(ours, theirs)
    named = {name: one for name, one in model.network.named_parameters() if one.requires_grad}
    found, expected = (
        torch.autograd.grad(loss, [*named.values()], allow_unused=True, materialize_grads=True)
        for loss in (ours, theirs)
    )
    for name, one, other in zip(named, found, expected, strict=True):
        assert_near(one, other, name)


@settings(max_examples=20)
@given(split=cut_streams(), chosen=chosen_settings(), seed=seeds, data=st.data())
@torch.no_grad()
def test_scores_of_all_targets_just_before_each_event(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    events = split.events
    model = untrained(chosen, split, seed)
    reference = Reference(model, events)
    start = data.draw(st.integers(max(len(events) - 4, 0), len(events) - 1))
    model.observe(events[:start])
    alone = torch.from_numpy(model.score(events.source[start:], events.time[start:]))
    ours = torch.from_numpy(model.score_each(events[start:]))
    for row, event in enumerate(range(start, len(events))):
        source, time = int(events.source[event]), float(events.time[event])
        assert_near(ours[row], reference.scores(source, event, time))
        assert_near(alone[row], reference.scores(source, start, time))
    nodes = range(reference.past.num_nodes)
    left = torch.stack([reference.vector(node, len(events)) for node in nodes])
    assert_near(torch.from_numpy(model.vectors(np.arange(len(nodes)), 0.0)), left)


@torch.no_grad()
def test_the_density_leaves_what_has_not_happened_yet() -> None:
    """Summed over time since the last event, it is the chance that the pair has met by then."""
    stream = EventStream.from_columns(list("abab"), list("xyyx"), [0.0, 1.0, 3.0, 4.0])
    chosen = {"width": 3, "levels": 2, "rank_by": "density"}
    model = untrained(chosen, as_split(stream, 4, 4), 0)
    model.observe(stream)
    time = np.linspace(4.0, 10.0, 20_001)
    middle = (time[1:] + time[:-1]) / 2
    density = np.exp(model.score(np.zeros(len(middle), dtype=np.int64), middle))
    met = density.mean(axis=0) * 6.0 / model.network.units.mean
    object.__setattr__(model.config, "rank_by", "intensity")
    rate = np.exp(model.score(np.zeros(len(middle), dtype=np.int64), middle))
    # Of x alone, whom b met last: a and x count from time 3 on and from time 4 on.
    survived = np.exp(-rate.mean(axis=0) * 6.0 / model.network.units.mean)
    assert met[0] == pytest.approx(1 - survived[0], rel=1e-4)


def test_batches_hold_every_training_event_with_other_targets() -> None:
    split = learnable()
    model = TDIGMPNN(batch_size=500)
    num_batches = model.prepare(split)
    drawn: list[list[int]] = []

    def note(event: Any, node: Any) -> Tensor:
        assert event.tolist() == list(range(len(drawn), len(drawn) + len(event)))
        drawn.extend(node.tolist())
        return torch.zeros(())

    model.loss_of = note  # type: ignore[method-assign]
    for batch in range(num_batches):
        model.loss(batch, np.random.default_rng(batch))
    assert [row[:2] for row in drawn] == [list(pair) for pair in Past(split.train).parties]
    assert all(len(row) == 2 + 5 and row[1] not in row[2:] for row in drawn)
    assert min(min(row[1:]) for row in drawn) >= split.events.num_sources


def test_without_products_all_sources_prefer_the_same() -> None:
    split = learnable()
    for personalized in (False, True):
        # By the rate, and at one time: what is left of a source is the same for all targets.
        model = TDIGMPNN(
            levels=2, width=8, epochs=1, personalized=personalized, rank_by="intensity"
        )
        model.fit(split)
        sources = np.arange(split.events.num_sources)
        scores = model.score(sources, np.full(len(sources), split.events.time[-1]))
        orders = {tuple(np.argsort(row, kind="stable").tolist()) for row in scores}
        assert (len(orders) == 1) == (not personalized)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = TDIGMPNN(levels=3, width=16, epochs=12, learning_rate=5e-3, batch_size=128, threads=1)
    assert_learns(model, learnable(kind))
