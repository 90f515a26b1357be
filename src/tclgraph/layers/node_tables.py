"""Tensors of a network that have an entry per node, and how they grow when nodes are added.

A network is trained on the nodes of the training events. To rank nodes that occur later, its tables
are extended: entries of known nodes keep their values, and a new node gets defined values. These
depend on the seed and the key of the node, or on nothing, so neither what was learned nor the value
of another node depends on which nodes are added, how many, or in which order.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.random_bits import STEP, mixed

Side: TypeAlias = Literal["sources", "targets", "nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTable:
    """A parameter or buffer of a module that has an entry per node along a dimension."""

    name: str
    """Name in the state dict of the module."""
    side: Side = "nodes"
    dim: int = 0
    first: int = 0
    """Index of the first node's entry. Entries before it belong to no node, and neither do those
    after the last node's."""
    fill: float = 0.0
    """Value of the entries of a new node."""
    deviation: float = 0.0
    """Deviation of the normal distribution that a new node's entries are drawn from, if not 0."""
    unknown: int | None = None
    """Row whose values a new node's row takes, counted from the end (-1 is the last row). None: the
    values are those of `fill` or `deviation`."""


class NodeModule(nn.Module, ABC):
    """A module with node tables of its own; those of its submodules do not count."""

    @abstractmethod
    def node_tables(self) -> list[NodeTable]:
        """Return all tensors of this module that have an entry per node."""


class NodeEmbedding(nn.Embedding, NodeModule):
    """Embeddings of nodes, drawn from a normal distribution. Further rows may follow the nodes'.

    `unknown` is the row of these that nodes take which are added later, see `NodeTable`.
    """

    def __init__(
        self,
        num_rows: int,
        width: int,
        *,
        side: Side = "nodes",
        deviation: float = 1.0,
        unknown: int | None = None,
    ) -> None:
        self.side: Side = side
        self.deviation = deviation
        self.unknown = unknown
        super().__init__(num_rows, width)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.deviation)

    def node_tables(self) -> list[NodeTable]:
        deviation, unknown = self.deviation, self.unknown
        return [NodeTable(name="weight", side=self.side, deviation=deviation, unknown=unknown)]


@dataclass(frozen=True, slots=True)
class AddedNodes:
    """How the nodes of one side are numbered after nodes were added."""

    old: IntArray
    """Number of each node that was there before, in the order of the numbers before."""
    new: IntArray
    """Number of each added node."""
    seed: NDArray[np.uint64]
    """Seed of the random numbers of each added node."""


Growth: TypeAlias = Mapping[Side, AddedNodes]
"""The added nodes of each side."""


@torch.no_grad()
def extend_tables(network: nn.Module, growth: Growth) -> None:
    """Replace all node tables of a network and its submodules by extended ones."""
    for module in network.modules():
        if not isinstance(module, NodeModule):
            continue
        for table in module.node_tables():
            added = growth[table.side]
            if not len(added.new):
                continue
            path, _, name = table.name.rpartition(".")
            owner: Any = module.get_submodule(path)
            tensor = getattr(owner, name)
            larger = extended(tensor, table, added)
            if isinstance(tensor, nn.Parameter):
                larger = nn.Parameter(larger, requires_grad=tensor.requires_grad)
            setattr(owner, name, larger)


def extended(tensor: Tensor, table: NodeTable, added: AddedNodes) -> Tensor:
    """Return a table with entries for added nodes, in the new numbering.

    >>> added = AddedNodes(np.array([0, 2]), np.array([1]), np.array([7], dtype=np.uint64))
    >>> extended(torch.tensor([1.0, 2.0, 9.0]), NodeTable(name="", fill=5.0), added).tolist()
    [1.0, 5.0, 2.0, 9.0]
    """
    dim, first = table.dim, table.first
    shape = list(tensor.shape)
    shape[dim] += len(added.new)
    larger = tensor.new_full(shape, table.fill)
    after = np.arange(first + len(added.old) + len(added.new), shape[dim])
    index = np.concatenate([np.arange(first), first + added.old, after])
    larger.index_copy_(dim, torch.from_numpy(index).to(larger.device), tensor.detach())
    new = torch.from_numpy(first + added.new).to(larger.device)
    if table.unknown is not None:
        assert dim == 0, "copied entries are rows"
        larger[new] = tensor[table.unknown].detach()
    elif table.deviation:
        assert dim == 0, "random entries are rows"
        rows = table.deviation * normal_rows(added.seed, shape[1])
        larger.index_copy_(0, new, torch.from_numpy(rows).to(larger))
    return larger


def normal_rows(seed: NDArray[np.uint64], width: int) -> FloatArray:
    """Return standard normal numbers, a row per seed; a row depends on its own seed only."""
    half = -(-width // 2)
    bits = mixed(seed[:, None] + STEP * np.arange(1, 2 * half + 1, dtype=np.uint64))
    uniform = ((bits >> np.uint64(11)) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2 * np.log(uniform[:, :half])), 2 * np.pi * uniform[:, half:]
    rows: FloatArray = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return rows[:, :width]
