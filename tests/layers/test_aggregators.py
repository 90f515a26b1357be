"""Every aggregator beside the plain loops that it stands for."""

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


def made(kind: str) -> nn.Module:
    """In double precision, with no weight left at a special value."""
    torch.manual_seed(3)
    layer = KINDS[kind]().double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return layer


def drawn(num_nodes: int, samples: int) -> tuple[Tensor, Tensor, Tensor]:
    """States of seven rows, and nodes with samples; some are drawn twice, or are the node."""
    torch.manual_seed(5)
    state = torch.randn(7, WIDTH, dtype=torch.float64, requires_grad=True)
    return state, torch.randint(7, (num_nodes,)), torch.randint(7, (num_nodes, samples))


def by_loops(kind: str, layer: nn.Module, state: Tensor, own: Tensor, neighbor: Tensor) -> Tensor:
    weights: dict[str, Tensor] = dict(layer.named_parameters())
    rows = []
    for node, members in zip(own.tolist(), neighbor.tolist(), strict=True):
        found = [state[one] for one in members]
        if kind == "gcn":
            everyone = [state[node], *found]
            rows.append(weights["project.weight"] @ (sum(everyone, 0 * state[0]) / len(everyone)))
        elif kind == "gat":
            rows.append(torch.cat(attended(weights, state[node], found)))
        else:
            known = {"mean": mean, "max": highest, "lstm": read}[kind](weights, found)
            halves = weights["halves.own.weight"], weights["halves.neighbors.weight"]
            rows.append(torch.cat([halves[0] @ state[node], halves[1] @ known]))
    return torch.stack(rows)


def mean(weights: dict[str, Tensor], found: list[Tensor]) -> Tensor:
    return sum(found, 0 * found[0]) / len(found)


def highest(weights: dict[str, Tensor], found: list[Tensor]) -> Tensor:
    best = torch.relu(weights["pool.weight"] @ found[0] + weights["pool.bias"])
    for one in found[1:]:
        pooled = torch.relu(weights["pool.weight"] @ one + weights["pool.bias"])
        best = torch.where(pooled > best, pooled, best)
    return best


def read(weights: dict[str, Tensor], found: list[Tensor]) -> Tensor:
    size = weights["recall.weight"].shape[1]
    hidden = cell = torch.zeros(size, dtype=torch.float64)
    for one in found:
        told = weights["read.weight"] @ one + weights["read.bias"]
        told = told + weights["recall.weight"] @ hidden
        let_in, kept, let_out, new = (told[part * size : (part + 1) * size] for part in range(4))
        cell = torch.sigmoid(kept) * cell + torch.sigmoid(let_in) * torch.tanh(new)
        hidden = torch.sigmoid(let_out) * torch.tanh(cell)
    return hidden


def attended(weights: dict[str, Tensor], node: Tensor, found: list[Tensor]) -> list[Tensor]:
    """Equations 1 to 5 of "Graph Attention Networks", with what each head sees on its own."""
    size = WIDTH // HEADS
    heads = []
    for head in range(HEADS):
        project = weights["project.weight"][head * size : (head + 1) * size]
        values = [project @ one for one in (node, *found)]
        both = torch.cat([weights["own"][head], weights["neighbor"][head]])
        match = [both @ torch.cat([values[0], value]) for value in values]
        odds = [torch.exp(torch.where(one > 0, one, 0.2 * one)) for one in match]
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
def test_values_and_gradients_are_those_of_the_loops(kind: str, samples: int) -> None:
    layer = made(kind)
    state, own, neighbor = drawn(9, samples)
    told = torch.linspace(-1, 2, 9 * WIDTH, dtype=torch.float64).view(9, WIDTH)
    inputs = [state, *layer.parameters()]
    ours = layer(state, own, neighbor)
    theirs = by_loops(kind, layer, state, own, neighbor)
    assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    slopes = torch.autograd.grad((ours * told).sum(), inputs, allow_unused=True)
    expected = torch.autograd.grad((theirs * told).sum(), inputs, allow_unused=True)
    for slope, other in zip(slopes, expected, strict=True):
        assert slope is not None
        assert_close(slope, torch.zeros_like(slope) if other is None else other)


@every_kind
def test_only_the_sequence_minds_the_order_of_neighbors(kind: str) -> None:
    layer = made(kind)
    state, own, neighbor = drawn(20, 5)
    turned = layer(state, own, neighbor.flip(1))
    same = torch.allclose(layer(state, own, neighbor), turned, rtol=1e-9, atol=1e-9)
    assert same is (kind != "lstm")


def test_the_sequence_is_read_as_torch_reads_it() -> None:
    layer = made("lstm")
    assert isinstance(layer, LSTMAggregator)
    hidden = layer.hidden
    theirs = nn.LSTM(WIDTH, hidden, batch_first=True).double()
    # Theirs has the candidate before the output gate.
    order = torch.arange(4 * hidden).view(4, hidden)[[0, 1, 3, 2]].flatten()
    with torch.no_grad():
        nothing = torch.zeros_like(layer.read.bias)  # they have two biases
        weights = layer.read.weight, layer.recall.weight, layer.read.bias, nothing
        for other, weight in zip(theirs.parameters(), weights, strict=True):
            other.copy_(weight[order])
    state, own, neighbor = drawn(9, 4)
    _, (last, _) = theirs(state[neighbor])
    expected = layer.halves(state[own], last[0])
    assert_close(layer(state, own, neighbor), expected, rtol=1e-10, atol=1e-10)


def test_attention_stays_finite_where_matches_are_huge() -> None:
    layer = made("gat")
    state, own, neighbor = drawn(4, 3)
    assert torch.isfinite(layer(1e4 * state, own, neighbor)).all()


def test_an_odd_width_is_split_as_evenly_as_it_can_be() -> None:
    state, own, neighbor = torch.randn(7, 5), torch.arange(3), torch.randint(7, (3, 2))
    for layer in (MeanAggregator(5), MaxAggregator(5), LSTMAggregator(5)):
        assert layer(state, own, neighbor).shape == (3, 5)


def test_attention_is_that_of_torch_geometric() -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    layer = made("gat")
    assert isinstance(layer, GATAggregator)
    theirs = geometric.GATConv(
        WIDTH, WIDTH // HEADS, heads=HEADS, add_self_loops=False, bias=False
    ).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(layer.project.weight)
        theirs.att_src.copy_(layer.neighbor[None])
        theirs.att_dst.copy_(layer.own[None])
    state, _, neighbor = drawn(7, 4)
    own = torch.arange(7)
    # Links lead from what is seen to who sees it.
    seen = torch.cat([own[:, None], neighbor], dim=1)
    link = torch.stack([seen.flatten(), own.repeat_interleave(seen.shape[1])])
    assert_close(layer(state, own, neighbor), theirs(state, link), rtol=1e-10, atol=1e-10)
