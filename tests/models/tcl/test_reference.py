"""TCL agrees with a slow transcription of the paper's equations, in double precision.

Streams have repeats, ties, self-loops and unseen nodes; every setting is drawn.
"""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from torch import Tensor
from torch.testing import assert_close

from tclgraph.arrays import IntArray
from tclgraph.encoding.roots import root_pairs
from tclgraph.encoding.training_windows import SampledRoots
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.models.learned import LearnedModel
from tclgraph.models.tcl.model import TCL
from tclgraph.sampling.dependency_subgraphs import singleton
from tclgraph.testing.streams import cut, streams
from tests.reference.intervals import log_interval
from tests.reference.tcl import Instance, Past, ReferenceTCL, without_past

# Few, as a kernel is compiled for each (heads, head width).
SHAPES: tuple[dict[str, Any], ...] = (
    {"width": 4, "heads": 1},
    {"width": 8, "heads": 2},
    {"width": 8, "heads": 4},
    {"width": 8, "heads": 4, "attention_scale": "width"},
    {"width": 6, "heads": 3},
    {"width": 4, "heads": 1, "head_width": "full"},
    {"width": 5, "heads": 2, "head_width": "full"},
)

seeds = st.integers(0, 999)


@st.composite
def tcl_settings(draw: st.DrawFn, /, **fixed: Any) -> dict[str, Any]:
    chosen = {
        **draw(st.sampled_from(SHAPES)),
        "levels": draw(st.integers(1, 5)),
        "blocks": draw(st.integers(1, 3)),
        "time_embedding": draw(st.booleans()),
        "depth_embedding": draw(st.booleans()),
        "cross_attention": draw(st.booleans()),
        "objective": draw(st.sampled_from(["contrastive", "point-process"])),
        "residual": draw(st.sampled_from(["query", "input"])),
        "feed_forward_width": draw(st.sampled_from([None, 3])),
        "negatives": draw(st.integers(1, 3)),
        "batch_size": draw(st.integers(1, 6)),
        "input_dropout": draw(st.sampled_from([0.0, 0.25, 0.6])),
        **fixed,
    }
    if chosen["negatives"] != "all":
        chosen["negative_pool"] = draw(st.sampled_from([None, 2, 3]))
    if chosen["time_embedding"]:
        chosen["interval_scale"] = draw(st.sampled_from(["linear", "log"]))
    if chosen["objective"] == "point-process":
        chosen["rank_by"] = draw(st.sampled_from(["density", "intensity"]))
        chosen["survival_weight"] = draw(st.sampled_from([1.0, 0.5]))
    return chosen


@st.composite
def cut_streams(draw: st.DrawFn) -> Split:
    """Draw a stream and its training part; the rest may have nodes unseen in training."""
    # Mostly long ones: in short ones no sub-graph is ever cut at its last level.
    fewest = draw(st.sampled_from([20, 16, 3]))
    events = draw(streams(min_events=fewest, max_events=28))
    train_end = draw(st.integers(1, len(events)))
    return cut(events, train_end, train_end)


def untrained(chosen: dict[str, Any], split: Split, seed: int) -> TCL:
    """Build TCL with random parameters, so that no error hides behind a zero or a one."""
    model = TCL(**chosen)
    model.prepare(split)
    model.network.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            # Gentle slopes: hundreds of mean gaps may pass in these streams.
            parameter.normal_(std=0.05 if name == "intensity.slopes" else 0.5, generator=generator)
    model.forget()
    return model


def reference_of(model: TCL, events: EventStream, **options: Any) -> ReferenceTCL:
    parameters = {
        name.removeprefix("encoder."): parameter
        for name, parameter in model.network.named_parameters()
    }
    return ReferenceTCL(events, parameters, model.config, model.network.scale, **options)


def all_vectors(model: TCL) -> Tensor:
    sides = [model.embed(side="source")]
    if model.graph.space.kind == "bipartite":
        sides.append(model.embed(side="target"))
    return torch.from_numpy(np.concatenate(sides))


def draw_roots(model: TCL, window: int, random: np.random.Generator) -> SampledRoots:
    """Draw the roots of a training window, as `TCL.loss` does."""
    event = model.windows.events(window)
    negatives = model.draw_negatives(event, random)
    return model.windows.sampled_roots(event, negatives, model.network.encoder.absent_node)


def nodes_of(model: TCL, roots: SampledRoots) -> list[list[int]]:
    """Return the nodes of each event: source, target, negatives."""
    instance = roots.instance
    node = model.windows.graph.node
    nodes: list[list[int]] = np.where(
        instance >= 0, node[np.maximum(instance, 0)], -1 - instance
    ).tolist()
    return nodes


def gradients(model: LearnedModel, loss: Tensor) -> dict[str, Tensor]:
    named = dict(model.network.named_parameters())
    values = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for (name, parameter), gradient in zip(named.items(), values, strict=True)
    }


def assert_near(ours: Tensor, theirs: Tensor, name: str = "", *, within: float = 1e-8) -> None:
    """Compare with an absolute and relative tolerance."""
    assert_close(ours, theirs, rtol=within, atol=within, msg=lambda text: f"{name} {text}")


def assert_same_loss(model: LearnedModel, ours: Tensor, theirs: Tensor) -> None:
    assert_near(ours, theirs)
    expected = gradients(model, theirs)
    for name, gradient in gradients(model, ours).items():
        # torch's SoftPlus is linear above 20, where this changes a derivative by e^-20 = 2e-9.
        assert_near(gradient, expected[name], name, within=1e-7)


@settings(max_examples=40)
@given(split=cut_streams(), chosen=tcl_settings(), seed=seeds, data=st.data())
@torch.no_grad()
def test_every_vector_after_every_step(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    model = untrained(chosen, split, seed)
    reference = reference_of(model, split.events)
    seen = 0
    while True:  # vectors are kept in between, so staleness would show
        nodes = range(reference.past.num_nodes)
        expected = torch.stack([reference.predictive_vector(node, seen) for node in nodes])
        assert_near(all_vectors(model), expected)
        if seen == len(split.events):
            break
        step = data.draw(st.integers(1, 12))
        model.observe(split.events[seen : seen + step])
        seen = min(seen + step, len(split.events))


@settings(max_examples=30)
@given(split=cut_streams(), chosen=tcl_settings(), seed=seeds, data=st.data())
@torch.no_grad()
def test_scores_of_all_targets(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    model = untrained(chosen, split, seed)
    reference = reference_of(model, split.events)
    seen = data.draw(st.integers(0, len(split.events)))
    model.observe(split.events[:seen])
    sources = np.arange(split.events.num_sources)
    later = split.events.time[max(seen - 1, 0)] + np.arange(len(sources)) / 2
    expected = torch.stack(
        [
            reference.score_all_targets(source, seen, time)
            for source, time in zip(sources.tolist(), later.tolist(), strict=True)
        ]
    )
    assert_near(torch.from_numpy(model.score(sources, later)), expected)


@settings(max_examples=30)
@given(split=cut_streams(), chosen=tcl_settings(), seed=seeds, data=st.data())
@torch.no_grad()
def test_scores_just_before_each_event_of_a_block(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    events = split.events
    model = untrained(chosen, split, seed)
    reference = reference_of(model, events)
    start = data.draw(st.integers(0, len(events) - 1))
    model.observe(events[:start])
    ours = model.score_each(events[start:])
    expected = [
        reference.score_all_targets(int(events.source[event]), event, float(events.time[event]))
        for event in range(start, len(events))
    ]
    assert_near(torch.from_numpy(ours), torch.stack(expected))
    # The vectors that the block leaves behind are used from now on.
    nodes = range(reference.past.num_nodes)
    left = torch.stack([reference.predictive_vector(node, len(events)) for node in nodes])
    assert_near(all_vectors(model), left)


@settings(max_examples=25)
@given(
    split=cut_streams(), chosen=tcl_settings(objective="contrastive"), seed=seeds, data=st.data()
)
@torch.no_grad()
def test_recommendations_at_a_time_are_by_sim(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    events = split.events
    model = untrained(chosen, split, seed)
    model.observe(events)
    reference = reference_of(model, events)
    at = data.draw(st.sampled_from(events.time.tolist()))
    source = data.draw(st.integers(0, events.num_sources - 1))
    strictly_before = sum(time < at for time in events.time.tolist())
    expected = reference.similarity_to_all_targets(source, strictly_before)
    listed = model.recommend(events.sources.key(source), top=events.num_targets, at=at)
    order = events.targets.ids([entry.target for entry in listed])
    ours = torch.tensor([entry.score for entry in listed], dtype=torch.float64)
    assert_near(ours, expected[torch.from_numpy(order)])
    assert sorted(order.tolist()) == list(range(events.num_targets))


@settings(max_examples=40)
@given(split=cut_streams(), chosen=tcl_settings(), seed=seeds, data=st.data())
def test_loss_and_every_gradient(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    model = untrained(chosen, split, seed)
    window = data.draw(st.integers(0, len(model.windows) - 1))
    roots = draw_roots(model, window, np.random.default_rng(seed))
    nodes = nodes_of(model, roots)
    reference = reference_of(model, split.train)
    expected = reference.loss(roots.event.tolist(), [row[2:] for row in nodes])
    assert_same_loss(model, model.sampled_loss(roots), expected)


@settings(max_examples=30)
@given(
    split=cut_streams(),
    chosen=tcl_settings(objective="contrastive", negatives="all", input_dropout=0.0),
    seed=seeds,
    data=st.data(),
)
def test_all_targets_as_negatives(
    split: Split, chosen: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    model = untrained(chosen, split, seed)
    window = data.draw(st.integers(0, len(model.windows) - 1))
    event = model.windows.events(window)
    candidates = set((model.windows.candidates + model.graph.space.first_target).tolist())
    true = (model.windows.targets(event) + model.graph.space.first_target).tolist()
    reference = reference_of(model, split.train)
    negatives = [sorted(candidates - {target}) for target in true]
    ours = model.loss(window, np.random.default_rng(seed))
    assert_same_loss(model, ours, reference.loss(event.tolist(), negatives))


@settings(max_examples=40)
@given(
    split=cut_streams(),
    chosen=tcl_settings(input_dropout=0.5),
    share=st.sampled_from([0.0, 0.4]),
    seed=seeds,
    data=st.data(),
)
def test_loss_and_every_gradient_with_input_dropout_and_hidden_nodes(
    split: Split, chosen: dict[str, Any], share: float, seed: int, data: st.DataObject
) -> None:
    model = untrained({**chosen, "hidden_share": share}, split, seed)
    window = data.draw(st.integers(0, len(model.windows) - 1))
    ours = model.loss(window, np.random.default_rng(seed))

    # Negatives are drawn first, then the dropout mask, then the hidden nodes.
    random = np.random.default_rng(seed)
    roots = draw_roots(model, window, random)
    (inputs,) = model.network.encoder.inputs(model.windows.graph, roots.pairs, random)
    packed, mask = inputs.packed, inputs.dropout
    assert mask is not None
    dropout, hidden = {}, set()
    for row, instance in enumerate(packed.row_instance.tolist()):
        node = int(packed.row_node[row])
        is_real = instance >= 0
        member = Instance(instance // 2, instance % 2, node) if is_real else without_past(node)
        dropout[member, int(packed.row_depth[row])] = torch.from_numpy(
            mask.is_kept_RD[row]
        ).double()
        if inputs.row_node[row] != node:
            hidden.add(node)
    assert share > 0 or not hidden
    nodes = nodes_of(model, roots)
    reference = reference_of(model, split.train, dropout=dropout, hidden=hidden)
    expected = reference.loss(roots.event.tolist(), [row[2:] for row in nodes])
    assert_same_loss(model, ours, expected)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_share_of_the_nodes_is_hidden_and_the_absent_node_never(share: float) -> None:
    stream = EventStream.from_columns(range(2_000), range(2_000), range(2_000))
    model = TCL(width=4, heads=2, hidden_share=share)
    model.prepare(cut(stream, 2_000, 2_000))
    encoder, graph = model.network.encoder, model.windows.graph

    def hidden(node: IntArray) -> IntArray:
        pairs, _ = root_pairs(singleton(node), encoder.absent_node)
        (inputs,) = encoder.inputs(graph, pairs, np.random.default_rng(5))
        is_hidden = inputs.row_node != inputs.packed.row_node
        assert (inputs.row_node[is_hidden] == encoder.absent_node + 1).all()
        return np.unique(inputs.packed.row_node[is_hidden])

    everywhere = hidden(np.arange(4_000))
    assert abs(len(everywhere) / 4_000 - share) < 0.03
    assert encoder.absent_node not in everywhere
    # Which nodes a batch hides does not depend on what else is encoded.
    assert_array_equal(hidden(np.arange(1_000)), everywhere[everywhere < 1_000])


@given(split=cut_streams(), chosen=tcl_settings(), seed=seeds)
def test_windows_hold_every_training_event_with_other_targets(
    split: Split, chosen: dict[str, Any], seed: int
) -> None:
    past = Past(split.train)
    model = untrained(chosen, split, seed)
    random = np.random.default_rng(seed)
    rows = [
        row
        for window in range(len(model.windows))
        for row in nodes_of(model, draw_roots(model, window, random))
    ]
    assert [tuple(row[:2]) for row in rows] == past.parties
    targets = {target for _, target in past.parties}
    if len(targets) == 1:
        targets = set(range(past.first_target, past.num_nodes))
    for row in rows:
        assert set(row[2:]) <= targets - {row[1]}
        assert len(row) == (2 if len(targets) == 1 else 2 + chosen["negatives"])


@given(split=cut_streams(), chosen=tcl_settings())
def test_intervals_are_scaled_by_training_statistics(split: Split, chosen: dict[str, Any]) -> None:
    model = untrained(chosen, split, 0)
    past = Past(split.train)
    instances = [
        instance for event in range(len(past.time)) for instance in past.instances(event, -1)
    ]
    intervals = [
        past.interval(instance)
        for instance in instances
        if past.previous_event(instance) is not None
    ]
    mean = float(np.mean(intervals or [0.0]))
    deviation = float(np.std([log_interval(interval, mean) for interval in intervals or [0.0]]))
    spread = deviation if deviation > 1e-9 else 1.0
    assert model.network.scale.mean == pytest.approx(mean)
    assert model.network.scale.log_deviation == pytest.approx(spread)


@settings(max_examples=25)
@given(split=cut_streams(), chosen=tcl_settings(width=8, heads=2, head_width="split"), seed=seeds)
def test_single_precision_is_near_double(split: Split, chosen: dict[str, Any], seed: int) -> None:
    double, single = (untrained(chosen, split, seed) for _ in range(2))
    single.network.float()
    single.forget()
    for model in (double, single):
        model.observe(split.events)
    assert_near(all_vectors(single).double(), all_vectors(double), within=1e-4)
    roots = draw_roots(double, 0, np.random.default_rng(seed))
    assert_near(single.sampled_loss(roots).double(), double.sampled_loss(roots), within=1e-4)
