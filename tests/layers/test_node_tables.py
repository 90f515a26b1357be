"""Extended tables: what was there stays, and what is added depends on nothing else."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn

from tclgraph.layers.node_tables import (
    AddedNodes,
    NodeEmbedding,
    NodeModule,
    NodeTable,
    extend_tables,
    extended,
    normal_rows,
)

# Node 0 stays, node 1 is new, nodes 1 and 2 become nodes 2 and 3, node 4 is new.
ADDED = AddedNodes(np.array([0, 2, 3]), np.array([1, 4]), np.array([17, 3], dtype=np.uint64))


def test_entries_of_known_nodes_move_and_those_of_no_node_stay_at_the_ends() -> None:
    tensor = torch.arange(10.0, 22.0).reshape(2, 6)  # columns: 2 of no node, 3 nodes, 1 of no node
    larger = extended(tensor, NodeTable(name="", dim=1, first=2, fill=7.0), ADDED)
    assert larger.tolist() == [
        [10, 11, 12, 7, 13, 14, 7, 15],
        [16, 17, 18, 7, 19, 20, 7, 21],
    ]


def test_random_rows_depend_on_their_seed_alone() -> None:
    table = NodeTable(name="", deviation=0.5)
    larger = extended(torch.zeros(4, 3), table, ADDED)  # the last row belongs to no node
    rows = 0.5 * normal_rows(np.array([3, 17], dtype=np.uint64), 3)
    np.testing.assert_allclose(larger[[4, 1]], rows, rtol=1e-6)
    assert not larger[[0, 2, 3, 5]].any()


def test_new_rows_can_be_those_of_the_unknown_node() -> None:
    embedding = NodeEmbedding(5, 2, unknown=-1)  # three nodes, the absent node, the unknown node
    before = embedding.weight.detach().clone()
    extend_tables(embedding, {"sources": ADDED, "targets": ADDED, "nodes": ADDED})
    rows = [before[row].tolist() for row in (0, 4, 1, 2, 4, 3, 4)]
    assert embedding.weight.tolist() == rows


@pytest.mark.parametrize("width", [1, 4, 5])
def test_random_rows_are_standard_normal_and_differ(width: int) -> None:
    rows = normal_rows(np.arange(20_000, dtype=np.uint64), width)
    assert rows.shape == (20_000, width)
    assert np.abs(rows.mean(axis=0)).max() < 0.03
    np.testing.assert_allclose(np.cov(rows.T), np.eye(width).squeeze(), atol=0.03)
    assert len(np.unique(rows[:, 0])) == 20_000
    assert_array_equal(normal_rows(np.array([7], dtype=np.uint64), width)[0], rows[7])


class Network(NodeModule):
    """A network with a table of its own, one in a submodule, and a weight of no node."""

    def __init__(self) -> None:
        super().__init__()
        self.node = NodeEmbedding(3, 2)
        self.output = nn.Linear(2, 3)
        self.register_buffer("count", torch.ones(3, dtype=torch.int64))

    def node_tables(self) -> list[NodeTable]:
        names = ("output.weight", "output.bias", "count")
        return [NodeTable(name=name) for name in names]


def test_parameters_and_buffers_of_all_submodules_are_extended() -> None:
    network = Network()
    network.output.weight.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    extend_tables(network, {"nodes": ADDED})
    after = network.state_dict()
    for name, tensor in before.items():
        assert torch.equal(after[name][ADDED.old], tensor), name
        assert len(after[name]) == 5, name
    assert not after["output.weight"][ADDED.new].any()
    assert after["node.weight"][ADDED.new].all()
    assert {name: parameter.requires_grad for name, parameter in network.named_parameters()} == {
        "node.weight": True,
        "output.weight": False,
        "output.bias": True,
    }
    assert network.output(torch.zeros(1, 2)).shape == (1, 5)


def test_without_added_nodes_nothing_is_copied() -> None:
    network = Network()
    tensors = dict(network.named_parameters())
    nothing = AddedNodes(np.arange(3), np.empty(0, np.int64), np.empty(0, np.uint64))
    extend_tables(network, {"nodes": nothing})
    assert all(tensor is tensors[name] for name, tensor in network.named_parameters())
