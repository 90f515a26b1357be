"""The table of scores of all queries and candidates, and the cells of repeat targets in it.

Shapes: B queries, K candidates, T targets, P pairs.
"""

import torch
from torch import Tensor

from tclgraph.arrays import IntArray
from tclgraph.features.block import HistoryFeatures
from tclgraph.models.ranker import score_table_kernels as kernels


def fill_neighbors(
    score_BK: Tensor, features: HistoryFeatures, column_of: IntArray, value: float
) -> None:
    """Set the scores of all neighbors in place; `column_of` has the column of each target, or -1.

    On the CPU autograd does not notice. So what follows must give these cells no gradient.
    """
    if score_BK.device.type != "cpu":
        fill_neighbors_by_steps(score_BK, features, column_of, value)
        return
    table = score_BK.detach().numpy()
    start, target = features.neighbor_start, features.neighbor_target
    kernels.fill_cells(start, target, column_of, table.dtype.type(value), table)


def fill_neighbors_by_steps(
    score_BK: Tensor, features: HistoryFeatures, column_of: IntArray, value: float
) -> None:
    """Do the same as `fill_neighbors` on any device, in plain torch."""
    column = column_of[features.neighbor_target]
    cell = (features.neighbor_query * score_BK.shape[1] + column)[column >= 0]
    score_BK.view(-1).index_fill_(0, torch.from_numpy(cell).to(score_BK.device), value)


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
