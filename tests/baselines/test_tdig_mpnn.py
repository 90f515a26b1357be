"""TDIG-MPNN agrees with a recursive transcription of its equations, in double precision.

The reference handles one instance at a time. Streams have repeats, ties, self-loops and nodes
without events; every setting is drawn.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.baselines.tdig_mpnn import TDIGMPNN
from tclgraph.encoding.training_windows import SampledRoots
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing.streams import KINDS, cut, streams
from tests.learnable import assert_learns, learnable
from tests.reference.intervals import in_units, log_interval
from tests.reference.tcl import Instance, Past, softplus, without_past

Path = tuple[Instance, ...]
"""The instances from the root of a tree down to a row. Paths of the same level that end in the same
instance are the same row."""
Wait = tuple[float, float]
"""Time since a node's last event in mean intervals, and 1 if the node has an event, else 0."""

seeds = st.integers(0, 999)


class Reference:
    """The equations as recursive functions of the parameters of a model's network."""

    def __init__(self, model: TDIGMPNN, events: EventStream) -> None:
        self.past = Past(events)
        self.config = model.config
        self.scale = model.network.scale
        self.parameters = dict(model.network.named_parameters())
        num_true = len({target for _, target in self.past.parties})
        num_candidates = events.num_targets if num_true == 1 else num_true
        self.num_others = max(num_candidates - 1, 1)

    # Trees

    def children(self, path: Path) -> list[Path]:
        """Return the paths to both instances of the previous event, the own instance first."""
        event = self.past.previous_event(path[-1])
        if event is None or len(path) == self.config.levels:
            return []
        return [(*path, child) for child in self.past.instances(event, path[-1].node)]

    def rows(self, root: Instance) -> list[Path]:
        """Return a path to each row of a tree, level by level."""
        level: list[Path] = [(root,)]
        rows: list[Path] = []
        while level:
            rows += level
            next_level = {path[-1]: path for parent in level for path in self.children(parent)}
            level = list(next_level.values())
        return rows

    # States

    def interval(self, instance: Instance) -> float:
        """Return the scaled time since the previous event of the instance's node."""
        interval = self.past.interval(instance)
        return log_interval(interval, self.scale.mean) / self.scale.log_deviation

    def input(self, instance: Instance) -> Tensor:
        """Return the node embedding, with local attention to the neighbors if it is on."""
        embedding = self.parameters["node.weight"]
        own = embedding[instance.node]
        if not self.config.local_attention or instance.event is None:
            return own
        neighbors = [self.past.parties[instance.event][1 - instance.side]]
        previous = self.past.previous_event(instance)
        if previous is not None:
            neighbors += [child.node for child in self.past.instances(previous, instance.node)]
        values = [
            self.parameters[f"local.value.{kind}.weight"] @ embedding[node]
            for kind, node in enumerate(neighbors)
        ]
        logits = torch.stack(
            [
                self.parameters["local.by_own.weight"][kind] @ own
                + self.parameters["local.by_other"][kind] @ value
                + self.parameters["local.by_interval"][kind] * self.interval(instance)
                for kind, value in enumerate(values)
            ]
        )
        logits = torch.where(logits > 0, logits, 0.2 * logits)
        return own + torch.softmax(logits, 0) @ torch.stack(values)

    def gates(self, hidden: Sequence[dict[Path, Tensor]]) -> list[dict[Path, Tensor]]:
        """Return the gate of every row of both trees, computed by co-attention."""
        if not self.config.selection:
            return [{path: torch.tensor(1.0) for path in tree} for tree in hidden]
        weight = self.parameters["encoder.selection.match.weight"]
        by_summary = self.parameters["encoder.selection.by_summary.weight"][0]
        by_row = self.parameters["encoder.selection.by_row.weight"][0]
        gates = []
        for side, (own_tree, other_tree) in enumerate((hidden, hidden[::-1])):
            best = []
            for own in own_tree.values():
                pairs = [
                    (own, other) if side == 0 else (other, own) for other in other_tree.values()
                ]
                best.append(torch.stack([torch.tanh(a @ weight @ b) for a, b in pairs]).max())
            share = torch.softmax(torch.stack(best), 0)
            summary = share @ torch.stack(list(own_tree.values()))
            gates.append(
                {
                    path: torch.sigmoid(by_summary @ summary + by_row @ row)
                    for path, row in own_tree.items()
                }
            )
        return gates

    def cell(self, layer: int, path: Path, inputs: dict[Any, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the state and the memory of a row.

        `inputs` has the gated input of every (level, instance).
        """
        name = f"encoder.layers.{layer}"
        x = inputs[len(path), path[-1]]
        d = len(x)
        write = self.parameters[f"{name}.written.weight"] @ x
        write = write + self.parameters[f"{name}.written.bias"]
        keep = self.parameters[f"{name}.forget.weight"] @ x
        keep = keep + self.parameters[f"{name}.forget.bias"]
        remembered = torch.zeros_like(x)
        for party, child in enumerate(self.children(path)):
            child_state, child_memory = self.cell(layer, child, inputs)
            weight = self.parameters[f"{name}.{('from_own', 'from_partner')[party]}.weight"]
            from_child = weight @ child_state
            write = write + from_child[: 3 * d]
            f = keep[2 * d * party :][:d] + from_child[3 * d : 4 * d]
            g = keep[2 * d * party + d :][:d] + from_child[4 * d :]
            g = g + self.parameters[f"{name}.from_interval"][party] * self.interval(path[-1])
            remembered = remembered + torch.sigmoid(f) * torch.sigmoid(g) * child_memory
        z, o, s = write[:d], write[d : 2 * d], write[2 * d :]
        memory = torch.sigmoid(z) * torch.tanh(s) + remembered
        return torch.sigmoid(o) * torch.tanh(memory), memory

    def encode(self, roots: Sequence[Instance]) -> list[Tensor]:
        """Return the states of both parties of an event, mixed over all layers."""
        hidden = [{path: self.input(path[-1]) for path in self.rows(root)} for root in roots]
        root_states = [[tree[(root,)] for tree, root in zip(hidden, roots, strict=True)]]
        for layer in range(self.config.layers):
            skip = self.parameters[f"encoder.skips.{layer}.weight"]
            outputs = []
            for tree, gates in zip(hidden, self.gates(hidden), strict=True):
                inputs = {(len(path), path[-1]): gates[path] * row for path, row in tree.items()}
                outputs.append(
                    {
                        path: self.cell(layer, path, inputs)[0] + skip @ row
                        for path, row in tree.items()
                    }
                )
            hidden = outputs
            root_states.append([tree[(root,)] for tree, root in zip(hidden, roots, strict=True)])
        shares = torch.softmax(self.parameters["encoder.fusion"], 0)
        scale = self.parameters["encoder.fusion_scale"]
        return [
            scale
            * sum(share * states[side] for share, states in zip(shares, root_states, strict=True))
            for side in (0, 1)
        ]

    def vector(self, node: int, before_event: int) -> Tensor:
        """Return the vector of a node, made from the states of both parties of its last event."""
        event = self.past.last_event(node, before_event)
        if event is None:
            states = self.encode([without_past(node), without_past(self.past.num_nodes)])
        else:
            own, partner = self.past.instances(event, node)
            states = self.encode(sorted((own, partner), key=lambda instance: instance.side))
            states = states if own.side == 0 else states[::-1]
        return self.parameters["mix.weight"] @ torch.cat(states) + self.parameters["mix.bias"]

    # Point process

    def wait(self, node: int, before_event: int, time: float) -> Wait:
        """Return the time since the node's last event, or since the first event of all."""
        event = self.past.last_event(node, before_event)
        since = self.past.time[event or 0] if before_event else time
        return in_units(time - since, self.scale.mean), 0.0 if event is None else 1.0

    def rate(self, match: Tensor, waits: Sequence[Wait], ago: float = 0.0) -> Tensor:
        """Return the intensity of a pair, now or some mean intervals ago."""
        line = match + self.parameters["intensity.bias"]
        for slope, (waited, counts) in zip(self.parameters["intensity.slopes"], waits, strict=True):
            line = line + slope * counts * (waited - ago)
        return softplus(line)

    def survival(self, match: Tensor, waits: Sequence[Wait]) -> Tensor:
        """Return ∫ λ from the later of the two last events until now, at five Gauss points."""
        span = min(waited for waited, _ in waits)
        total = torch.zeros_like(match)
        for point, weight in zip(*np.polynomial.legendre.leggauss(5), strict=True):
            total = total + weight * self.rate(match, waits, span * (1 - point) / 2)
        return total * span / 2

    def pair(
        self, source: int, target: int, before_event: int, time: float
    ) -> tuple[Tensor, list[Wait]]:
        """Return the arguments of `rate`: the match of both vectors, and the wait of each node."""
        a, b = (self.vector(node, before_event) for node in (source, target))
        match = self.parameters["discriminator.additive"] @ (a + b)
        match = match + self.parameters["discriminator.multiplicative"] @ (a * b)
        return match, [self.wait(node, before_event, time) for node in (source, target)]

    def loss(self, event: int, negatives: Sequence[int]) -> Tensor:
        """Return the loss of an event, given the nodes that are its negatives."""
        source, target = self.past.parties[event]
        time = self.past.time[event]
        pairs = [self.pair(source, node, event, time) for node in (target, *negatives)]
        true, *others = [self.survival(*pair) for pair in pairs]
        weight = self.config.survival_weight or self.num_others / self.config.negatives
        return true + weight * torch.stack(others).sum() - self.rate(*pairs[0]).log()

    def scores(self, source: int, before_event: int, time: float) -> Tensor:
        """Return the scores of all targets."""
        scores = []
        for target in range(self.past.first_target, self.past.num_nodes):
            pair = self.pair(source, target, before_event, time)
            survived = self.survival(*pair) if self.config.rank_by == "density" else 0.0
            scores.append(self.rate(*pair).log() - survived)
        return torch.stack(scores)


@st.composite
def random_settings(draw: st.DrawFn) -> dict[str, Any]:
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
    """Draw a stream and its training part; the rest may have nodes unseen in training."""
    events = draw(streams(min_events=3, max_events=14))
    train_end = draw(st.integers(1, len(events)))
    return cut(events, train_end, train_end)


def untrained(chosen: dict[str, Any], split: Split, seed: int) -> TDIGMPNN:
    """Build TDIG-MPNN with random parameters, so that no error hides behind a zero or a one."""
    model = TDIGMPNN(**chosen)
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            if parameter.requires_grad:
                # Gentle slopes: hundreds of mean intervals may pass in these streams.
                deviation = 0.02 if name == "intensity.slopes" else 0.5
                parameter.normal_(std=deviation, generator=generator)
    model.forget()
    return model


def assert_near(ours: Tensor, theirs: Tensor, name: str = "") -> None:
    assert_close(ours, theirs, rtol=1e-8, atol=1e-8, msg=lambda text: f"{name} {text}")


@settings(max_examples=25)
@given(split=cut_streams(), chosen=random_settings(), seed=seeds, data=st.data())
def test_loss_and_every_gradient_equal_the_reference(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    model = untrained(chosen, split, seed)
    reference = Reference(model, split.train)
    events = data.draw(
        st.lists(st.integers(0, len(split.train) - 1), min_size=1, max_size=3, unique=True)
    )
    target_ids = st.integers(0, split.events.num_targets - 1)
    negatives = np.array([[data.draw(target_ids)] for _ in events])
    absent_node = model.network.absent_node
    ours = model.sampled_loss(model.windows.sampled_roots(np.array(events), negatives, absent_node))
    nodes = (negatives + reference.past.first_target).tolist()
    losses = [reference.loss(event, row) for event, row in zip(events, nodes, strict=True)]
    theirs = torch.stack(losses).mean()
    assert_near(ours, theirs)
    parameters = {
        name: parameter
        for name, parameter in model.network.named_parameters()
        if parameter.requires_grad
    }
    gradients, expected = (
        torch.autograd.grad(loss, [*parameters.values()], allow_unused=True, materialize_grads=True)
        for loss in (ours, theirs)
    )
    for name, gradient, expected_gradient in zip(parameters, gradients, expected, strict=True):
        assert_near(gradient, expected_gradient, name)


@settings(max_examples=20)
@given(split=cut_streams(), chosen=random_settings(), seed=seeds, data=st.data())
@torch.no_grad()
def test_scores_just_before_each_event_equal_the_reference(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    events = split.events
    model = untrained(chosen, split, seed)
    reference = Reference(model, events)
    start = data.draw(st.integers(max(len(events) - 4, 0), len(events) - 1))
    model.observe(events[:start])
    before_block = torch.from_numpy(model.score(events.source[start:], events.time[start:]))
    before_event = torch.from_numpy(model.score_each(events[start:]))
    for row, event in enumerate(range(start, len(events))):
        source, time = int(events.source[event]), float(events.time[event])
        assert_near(before_event[row], reference.scores(source, event, time))
        assert_near(before_block[row], reference.scores(source, start, time))
    nodes = range(reference.past.num_nodes)
    expected = torch.stack([reference.vector(node, len(events)) for node in nodes])
    assert_near(torch.from_numpy(model.vectors(np.arange(len(nodes)), 0.0)), expected)


@torch.no_grad()
def test_the_density_integrates_to_the_probability_of_an_event() -> None:
    """Integrated over time, the density gives 1 - exp(-∫ λ), the probability of an event by then.

    The pair is (a, x), whose last events are at times 3 and 4, so both integrals start at time 4.
    """
    stream = EventStream.from_columns(list("abab"), list("xyyx"), [0.0, 1.0, 3.0, 4.0])
    chosen = {"width": 3, "levels": 2, "rank_by": "density"}
    model = untrained(chosen, cut(stream, 4, 4), 0)
    model.observe(stream)
    time = np.linspace(4.0, 10.0, 20_001)
    middle = (time[1:] + time[:-1]) / 2
    source = np.zeros(len(middle), dtype=np.int64)
    mean_intervals = 6.0 / model.network.scale.mean
    density = np.exp(model.score(source, middle))[:, 0]
    object.__setattr__(model.config, "rank_by", "intensity")
    rate = np.exp(model.score(source, middle))[:, 0]
    survived = np.exp(-rate.mean() * mean_intervals)
    assert density.mean() * mean_intervals == pytest.approx(1 - survived, rel=1e-4)


def test_batches_hold_every_training_event_with_other_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    split = learnable()
    model = TDIGMPNN(batch_size=500)
    num_batches = model.prepare(split)
    node = model.windows.graph.node
    rows: list[list[int]] = []

    def record(roots: SampledRoots) -> Tensor:
        assert roots.event.tolist() == list(range(len(rows), len(rows) + len(roots.event)))
        instance = roots.instance
        nodes = np.where(instance >= 0, node[np.maximum(instance, 0)], -1 - instance)
        rows.extend(nodes.tolist())
        return torch.zeros(())

    monkeypatch.setattr(model, "sampled_loss", record)
    for batch in range(num_batches):
        model.loss(batch, np.random.default_rng(batch))
    assert [tuple(row[:2]) for row in rows] == Past(split.train).parties
    assert all(len(row) == 2 + 5 and row[1] not in row[2:] for row in rows)
    assert min(min(row[1:]) for row in rows) >= split.events.num_sources


def test_without_products_all_sources_have_the_same_order_of_targets() -> None:
    split = learnable()
    for personalized in (False, True):
        # The rate at the same time for all sources: a source adds the same to all targets.
        model = TDIGMPNN(
            levels=2, width=8, epochs=1, personalized=personalized, rank_by="intensity"
        )
        model.fit(split)
        sources = np.arange(split.events.num_sources)
        scores = model.score(sources, np.full(len(sources), split.events.time[-1]))
        orders = {tuple(np.argsort(row, kind="stable").tolist()) for row in scores}
        assert (len(orders) == 1) == (not personalized)


@pytest.mark.parametrize("kind", KINDS)
def test_training_beats_popularity_by_far(kind: GraphKind) -> None:
    model = TDIGMPNN(levels=3, width=16, epochs=12, learning_rate=5e-3, batch_size=128, threads=1)
    assert_learns(model, learnable(kind))
