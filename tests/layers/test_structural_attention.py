"""Compare attention over an edge list with plain loops and with torch_geometric."""

import warnings
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.layers.structural_attention import StructuralAttention, WeightedEdges, drop

NUM_NODES = 5


def layer_of(heads: int, seed: int) -> StructuralAttention:
    torch.manual_seed(seed)
    return StructuralAttention(heads * 3, heads).double()


def random_edges(seed: int, num_rows: int = 6) -> WeightedEdges:
    """Return random edges in random order; rows have an edge to themselves and may share a node."""
    random = torch.Generator().manual_seed(seed)
    node = torch.randint(NUM_NODES, (num_rows,), generator=random)
    is_edge = torch.rand(num_rows, NUM_NODES, generator=random) < 0.5
    is_edge[torch.arange(num_rows), node] = True
    row, neighbor = torch.nonzero(is_edge).T
    order = torch.randperm(len(row), generator=random)
    weight = torch.rand(len(row), generator=random, dtype=torch.float64)
    return WeightedEdges(row[order], neighbor[order], weight, node)


def attention_by_loops(layer: StructuralAttention, value: Tensor, edges: WeightedEdges) -> Tensor:
    heads, head_width = layer.asking.shape
    rows = []
    for row, node in enumerate(edges.node.tolist()):
        row_edges = torch.nonzero(edges.row == row).ravel().tolist()
        parts = []
        for head in range(heads):
            columns = slice(head * head_width, (head + 1) * head_width)
            logits = []
            for edge in row_edges:
                other = value[edges.neighbor[edge], columns]
                logit = value[node, columns] @ layer.asking[head] + other @ layer.answering[head]
                logit = edges.weight[edge] * logit
                logits.append(torch.where(logit > 0, logit, 0.2 * logit))
            share = torch.stack(logits).exp() / torch.stack(logits).exp().sum()
            attended = share @ value[edges.neighbor[row_edges]][:, columns]
            parts.append(torch.where(attended > 0, attended, attended.exp() - 1))
        rows.append(torch.cat(parts))
    return torch.stack(rows)


@given(heads=st.integers(1, 3), seed=st.integers(0, 999))
def test_values_and_gradients_equal_plain_loops(heads: int, seed: int) -> None:
    layer, edges = layer_of(heads, seed), random_edges(seed)
    value = torch.randn(NUM_NODES, heads * 3, dtype=torch.float64, requires_grad=True)
    learned = [value, layer.asking, layer.answering]
    ours, theirs = layer(value, edges), attention_by_loops(layer, value, edges)
    assert_close(ours, theirs)
    weight = torch.linspace(-1, 1, ours.numel(), dtype=torch.float64).reshape(ours.shape)
    gradients = (torch.autograd.grad((output * weight).sum(), learned) for output in (ours, theirs))
    assert_close(next(gradients), next(gradients))


def test_attention_with_unit_weights_equals_that_of_torch_geometric() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch_geometric itself
        nn: Any = pytest.importorskip("torch_geometric.nn")
    layer, edges = layer_of(2, seed=0), random_edges(seed=0)
    # In torch_geometric a row is a node, so every node has one row.
    is_edge = torch.eye(NUM_NODES, dtype=torch.bool)
    is_edge[edges.node[edges.row], edges.neighbor] = True
    row, neighbor = torch.nonzero(is_edge).T
    edges = WeightedEdges(row, neighbor, torch.ones(len(row)).double(), torch.arange(NUM_NODES))
    value = torch.randn(NUM_NODES, 6, dtype=torch.float64)
    other = nn.GATConv(6, 3, heads=2, add_self_loops=False, bias=False).double()
    with torch.no_grad():
        other.lin.weight.copy_(torch.eye(6))
        other.att_dst.copy_(layer.asking[None])
        other.att_src.copy_(layer.answering[None])
    theirs = torch.nn.functional.elu(other(value, torch.stack([neighbor, row])))
    assert_close(layer(value, edges), theirs)


def test_a_row_without_other_neighbors_keeps_its_value() -> None:
    layer = layer_of(2, seed=0)
    value = torch.randn(1, 6, dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.int64)
    alone = WeightedEdges(zero, zero, torch.ones(1).double(), zero)
    assert_close(layer(value, alone), torch.nn.functional.elu(value))


def test_logits_that_would_overflow_an_exponential() -> None:
    layer, edges = layer_of(2, seed=0), random_edges(seed=0)
    value = (1e4 * torch.randn(NUM_NODES, 6, dtype=torch.float64)).requires_grad_()
    output = layer(value, edges)
    output.sum().backward()
    assert value.grad is not None
    assert torch.isfinite(output).all()
    assert torch.isfinite(value.grad).all()


def test_dropout_depends_on_its_generator_only() -> None:
    layer, edges = layer_of(2, seed=0), random_edges(seed=0)
    value = torch.randn(NUM_NODES, 6, dtype=torch.float64)

    def dropped_output(seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        dropped: Tensor = layer(value, edges, dropout=0.5, generator=generator)
        return dropped

    assert torch.equal(dropped_output(1), dropped_output(1))
    assert not torch.equal(dropped_output(1), dropped_output(2))
    assert torch.equal(layer(value, edges, dropout=0.5), layer(value, edges))
    ones = drop(torch.ones(100_000), 0.1, torch.Generator().manual_seed(0))
    assert set(ones.tolist()) == {0.0, ones.max().item()}
    assert ones.mean().item() == pytest.approx(1, abs=0.01)
