"""The table of scores of all queries and candidates, and the cells of repeat targets in it.

Shapes: B queries, R of them with candidate features, K candidates, T targets, P pairs.
"""

import numpy as np
import torch
from torch import Tensor

from tclgraph.arrays import IntArray
from tclgraph.features.block import HistoryFeatures
from tclgraph.models.ranker import score_table_kernels as kernels


def fill_neighbors(
    score_RK: Tensor, features: HistoryFeatures, column_of: IntArray, value: float
) -> None:
    """Set the scores of all neighbors in place; `column_of` has the column of each target, or -1.

    On the CPU autograd does not notice. So what follows must give these cells no gradient.
    """
    if score_RK.device.type != "cpu":
        fill_neighbors_by_steps(score_RK, features, column_of, value)
        return
    table = score_RK.detach().numpy()
    query, start = features.candidate_query, features.neighbor_start
    target = features.neighbor_target
    kernels.fill_cells(query, start, target, column_of, table.dtype.type(value), table)


def fill_neighbors_by_steps(
    score_RK: Tensor, features: HistoryFeatures, column_of: IntArray, value: float
) -> None:
    """Do the same as `fill_neighbors` on any device, in plain torch."""
    row_of_query = np.full(len(features.source), -1)
    row_of_query[features.candidate_query] = np.arange(len(score_RK))
    row = row_of_query[features.neighbor_query]
    column = column_of[features.neighbor_target]
    cell = (row * score_RK.shape[1] + column)[(row >= 0) & (column >= 0)]
    score_RK.view(-1).index_fill_(0, torch.from_numpy(cell).to(score_RK.device), value)


def normalize(
    score_BT: Tensor,
    features: HistoryFeatures,
    repeat_P: Tensor,
    log_repeat_B: Tensor,
    log_new_B: Tensor,
) -> None:
    """Turn scores into log-probabilities in place, given what to add to repeats and to the rest.

    Targets are columns, and there is no gradient.
    """
    if score_BT.device.type != "cpu":
        normalize_by_steps(score_BT, features, repeat_P, log_repeat_B, log_new_B)
        return
    arrays = (tensor.numpy() for tensor in (repeat_P, log_repeat_B, log_new_B, score_BT))
    kernels.normalize(features.pair_start, features.pair_target, *arrays)


def normalize_by_steps(
    score_BT: Tensor,
    features: HistoryFeatures,
    repeat_P: Tensor,
    log_repeat_B: Tensor,
    log_new_B: Tensor,
) -> None:
    """Do the same as `normalize` on any device, in plain torch."""
    query_P, target_P = (
        torch.from_numpy(array).to(score_BT.device)
        for array in (features.pair_query, features.pair_target)
    )
    score_BT += log_new_B[:, None]
    cell_P = query_P * score_BT.shape[1] + target_P
    score_BT.view(-1).index_put_((cell_P,), repeat_P + log_repeat_B[query_P])
