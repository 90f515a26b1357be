"""Compare every aggregator with plain loops, with torch's LSTM and with torch_geometric."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from tclgraph.layers.aggregators import (
    GATAggregator,
    GCNAggregator,
    LSTMAggregator,
    MaxAggregator,
    MeanAggregator,
)

WIDTH, HEADS = 6, 3
KINDS: dict[str, Callable[[], nn.Module]] = {
    "gcn": partial(GCNAggregator, WIDTH),
    "mean": partial(MeanAggregator, WIDTH),
    "max": partial(MaxAggregator, WIDTH),
    "lstm": partial(LSTMAggregator, WIDTH),
    "gat": partial(GATAggregator, WIDTH, HEADS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def random_layer(kind: str) -> nn.Module:
    """Return an aggregator in double precision, with no weight at a special value such as 0."""
    torch.manual_seed(3)
    layer = KINDS[kind]().double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return layer


def random_inputs(num_nodes: int, samples: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the states of seven rows, the row of each node, and the rows of its neighbors.

    A row may be drawn twice, and a node may be its own neighbor.
    """
    torch.manual_seed(5)
    state = torch.randn(7, WIDTH, dtype=torch.float64, requires_grad=True)
    return state, torch.randint(7, (num_nodes,)), torch.randint(7, (num_nodes, samples))


def by_loops(kind: str, layer: nn.Module, state: Tensor, own: Tensor, neighbor: Tensor) -> Tensor:
    weights: dict[str, Tensor] = dict(layer.named_parameters())
    rows = []
    for node, members in zip(own.tolist(), neighbor.tolist(), strict=True):
        neighbors = [state[member] for member in members]
        if kind == "gcn":
            members_and_node = [state[node], *neighbors]
            rows.append(weights["project.weight"] @ mean(weights, members_and_node))
        elif kind == "gat":
            rows.append(torch.cat(attended(weights, state[node], neighbors)))
        else:
            aggregate = {"mean": mean, "max": highest, "lstm": read}[kind](weights, neighbors)
            halves = weights["halves.own.weight"], weights["halves.neighbors.weight"]
            rows.append(torch.cat([halves[0] @ state[node], halves[1] @ aggregate]))
    return torch.stack(rows)


def mean(weights: dict[str, Tensor], neighbors: list[Tensor]) -> Tensor:
    return sum(neighbors, 0 * neighbors[0]) / len(neighbors)


def highest(weights: dict[str, Tensor], neighbors: list[Tensor]) -> Tensor:
    best = torch.relu(weights["pool.weight"] @ neighbors[0] + weights["pool.bias"])
    for neighbor in neighbors[1:]:
        pooled = torch.relu(weights["pool.weight"] @ neighbor + weights["pool.bias"])
        best = torch.where(pooled > best, pooled, best)
    return best


def read(weights: dict[str, Tensor], neighbors: list[Tensor]) -> Tensor:
    size = weights["recall.weight"].shape[1]
    hidden = cell = torch.zeros(size, dtype=torch.float64)
    for neighbor in neighbors:
        gates = weights["read.weight"] @ neighbor + weights["read.bias"]
        gates = gates + weights["recall.weight"] @ hidden
        enter, keep, leave, new = (gates[part * size : (part + 1) * size] for part in range(4))
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(cell)
    return hidden


def attended(weights: dict[str, Tensor], node: Tensor, neighbors: list[Tensor]) -> list[Tensor]:
    """Return the output of each head by equations 1 to 5 of "Graph Attention Networks"."""
    size = WIDTH // HEADS
    heads = []
    for head in range(HEADS):
        project = weights["project.weight"][head * size : (head + 1) * size]
        values = [project @ member for member in (node, *neighbors)]
        weight = torch.cat([weights["own"][head], weights["neighbor"][head]])
        logits = [weight @ torch.cat([values[0], value]) for value in values]
        odds = [torch.exp(torch.where(logit > 0, logit, 0.2 * logit)) for logit in logits]
        total = sum(odds, torch.zeros((), dtype=torch.float64))
        heads.append(
            sum(
                (odd / total * value for odd, value in zip(odds, values, strict=True)),
                0 * values[0],
            )
        )
    return heads


@every_kind
@pytest.mark.parametrize("samples", [1, 4])
def test_values_and_gradients_equal_plain_loops(kind: str, samples: int) -> None:
    layer = random_layer(kind)
    state, own, neighbor = random_inputs(9, samples)
    weight = torch.linspace(-1, 2, 9 * WIDTH, dtype=torch.float64).view(9, WIDTH)
    inputs = [state, *layer.parameters()]
    ours = layer(state, own, neighbor)
    theirs = by_loops(kind, layer, state, own, neighbor)
    assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    slopes = torch.autograd.grad((ours * weight).sum(), inputs, allow_unused=True)
    expected = torch.autograd.grad((theirs * weight).sum(), inputs, allow_unused=True)
    for slope, other in zip(slopes, expected, strict=True):
        assert slope is not None
        assert_close(slope, torch.zeros_like(slope) if other is None else other)


@every_kind
def test_only_the_lstm_depends_on_the_order_of_neighbors(kind: str) -> None:
    layer = random_layer(kind)
    state, own, neighbor = random_inputs(20, 5)
    flipped = layer(state, own, neighbor.flip(1))
    same = torch.allclose(layer(state, own, neighbor), flipped, rtol=1e-9, atol=1e-9)
    assert same is (kind != "lstm")


def test_the_lstm_equals_that_of_torch() -> None:
    layer = random_layer("lstm")
    assert isinstance(layer, LSTMAggregator)
    hidden = layer.hidden
    theirs = nn.LSTM(WIDTH, hidden, batch_first=True).double()
    # torch has the candidate before the output gate.
    order = torch.arange(4 * hidden).view(4, hidden)[[0, 1, 3, 2]].flatten()
    with torch.no_grad():
        nothing = torch.zeros_like(layer.read.bias)  # torch has two biases
        weights = layer.read.weight, layer.recall.weight, layer.read.bias, nothing
        for other, weight in zip(theirs.parameters(), weights, strict=True):
            other.copy_(weight[order])
    state, own, neighbor = random_inputs(9, 4)
    _, (last, _) = theirs(state[neighbor])
    expected = layer.halves(state[own], last[0])
    assert_close(layer(state, own, neighbor), expected, rtol=1e-10, atol=1e-10)


def test_attention_stays_finite_with_huge_logits() -> None:
    layer = random_layer("gat")
    state, own, neighbor = random_inputs(4, 3)
    assert torch.isfinite(layer(1e4 * state, own, neighbor)).all()


def test_an_odd_width_is_split_into_unequal_halves() -> None:
    state, own, neighbor = torch.randn(7, 5), torch.arange(3), torch.randint(7, (3, 2))
    for layer in (MeanAggregator(5), MaxAggregator(5), LSTMAggregator(5)):
        assert layer(state, own, neighbor).shape == (3, 5)


def test_attention_equals_that_of_torch_geometric() -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    layer = random_layer("gat")
    assert isinstance(layer, GATAggregator)
    theirs = geometric.GATConv(
        WIDTH, WIDTH // HEADS, heads=HEADS, add_self_loops=False, bias=False
    ).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(layer.project.weight)
        theirs.att_src.copy_(layer.neighbor[None])
        theirs.att_dst.copy_(layer.own[None])
    state, _, neighbor = random_inputs(7, 4)
    own = torch.arange(7)
    # Edges lead from the attended node to the node that attends.
    attended_rows = torch.cat([own[:, None], neighbor], dim=1)
    edge = torch.stack([attended_rows.flatten(), own.repeat_interleave(attended_rows.shape[1])])
    assert_close(layer(state, own, neighbor), theirs(state, edge), rtol=1e-10, atol=1e-10)
