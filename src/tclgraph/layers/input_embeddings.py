"""The sum of the node, depth and time-interval embeddings of rows, with dropout.

Shapes: R rows, N nodes, L depths, D width.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.layers import embedding_kernels as kernels
from tclgraph.threads import even_cuts, num_parts, run_in_parts

# Starting a second thread for fewer numbers takes longer than processing them.
_MIN_NUMBERS_PER_THREAD = 65_536


@dataclass(frozen=True, slots=True)
class EmbeddingTables:
    """Learned embeddings; None stands for one that the network does not have."""

    node_ND: Tensor
    depth_LD: Tensor | None
    interval_D1: Tensor | None
    """Embedding of an interval of 1, which is multiplied by the interval."""


@dataclass(frozen=True, slots=True)
class RowInputs:
    """What every row is embedded by."""

    node: IntArray
    depth: IntArray
    interval: FloatArray


@dataclass(frozen=True, slots=True)
class Dropout:
    """Numbers that remain after dropout, and the share of numbers that do."""

    is_kept_RD: NDArray[np.bool_]
    keep_rate: float


def embed_rows(tables: EmbeddingTables, inputs: RowInputs, dropout: Dropout | None) -> Tensor:
    """Return the sum of the embeddings of every row, [R, D].

    >>> tables = EmbeddingTables(torch.tensor([[1.0], [2.0]]), None, torch.tensor([[10.0]]))
    >>> inputs = RowInputs(np.array([1, 0]), np.array([0, 0]), np.array([0.5, 0.0]))
    >>> embed_rows(tables, inputs, None).tolist()
    [[7.0], [1.0]]
    """
    if tables.node_ND.device.type != "cpu":
        return embed_by_gathering(tables, inputs, dropout)
    node_ND = tables.node_ND
    width = node_ND.shape[1]
    depth_LD = tables.depth_LD
    if depth_LD is None:
        depth_LD = node_ND.new_zeros(int(inputs.depth.max(initial=0)) + 1, width)
    interval_D1 = tables.interval_D1
    if interval_D1 is None:
        interval_D1 = node_ND.new_zeros(width, 1)
    embedded: Tensor = _EmbedRows.apply(node_ND, depth_LD, interval_D1, inputs, dropout)  # type: ignore[no-untyped-call]
    return embedded


def embed_by_gathering(
    tables: EmbeddingTables, inputs: RowInputs, dropout: Dropout | None
) -> Tensor:
    """Return the same as `embed_rows` on any device, in plain torch."""
    device, dtype = tables.node_ND.device, tables.node_ND.dtype
    embedded = functional.embedding(torch.from_numpy(inputs.node).to(device), tables.node_ND)
    if tables.depth_LD is not None:
        depth = torch.from_numpy(inputs.depth).to(device)
        embedded = embedded + functional.embedding(depth, tables.depth_LD)
    if tables.interval_D1 is not None:
        # To single precision on the host, because not every device has float64.
        interval = torch.from_numpy(inputs.interval).to(dtype).to(device)
        embedded = embedded + interval[:, None] * tables.interval_D1.T
    if dropout is not None:
        mask = torch.from_numpy(dropout.is_kept_RD).to(device, dtype)
        embedded = embedded * (mask / dropout.keep_rate)
    return embedded


class _EmbedRows(torch.autograd.Function):
    """Run the compiled kernels, divided among threads: by rows, and backward by columns."""

    @staticmethod
    def forward(
        context: Any,
        node_ND: Tensor,
        depth_LD: Tensor,
        interval_D1: Tensor,
        inputs: RowInputs,
        dropout: Dropout | None,
    ) -> Tensor:
        tables = kernels.Tables(
            node_ND.detach().numpy(),
            depth_LD.detach().numpy(),
            interval_D1.detach().numpy().reshape(1, -1),
        )
        number = tables.node.dtype.type
        rows = kernels.Rows(
            inputs.node,
            inputs.depth,
            inputs.interval.astype(number),
            np.empty((0, 0), dtype=bool) if dropout is None else dropout.is_kept_RD,
        )
        scale = number(1.0 if dropout is None else 1.0 / dropout.keep_rate)
        output = np.empty((len(rows.node), node_ND.shape[1]), number)
        embed = kernels.forward_kernel(node_ND.shape[1])
        run_in_parts(
            even_cuts(len(output), num_parts(output.size, _MIN_NUMBERS_PER_THREAD)),
            lambda _, *part: embed(*part, tables, rows, scale, output),
        )
        context.rows, context.scale = rows, scale
        context.tables = node_ND, depth_LD, interval_D1
        return torch.from_numpy(output)

    @staticmethod
    def backward(context: Any, gradient_RD: Tensor) -> Any:
        totals = [torch.zeros_like(table) for table in context.tables]
        node, depth, interval = (total.numpy() for total in totals)
        columns = kernels.Tables(node, depth, interval.reshape(1, -1))
        gradient = gradient_RD.contiguous().numpy()
        rows, scale = context.rows, context.scale
        width = gradient.shape[1]
        size = kernels.columns_at_once(width)
        parts = min(width // size, num_parts(gradient.size, _MIN_NUMBERS_PER_THREAD))
        cuts = [size * block for block in even_cuts(width // size, parts)]
        embed_backward = kernels.backward_kernel(width)
        run_in_parts(cuts, lambda _, *part: embed_backward(*part, gradient, rows, scale, columns))
        return *totals, None, None
