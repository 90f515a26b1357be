"""Reductions over lists of different lengths whose values are stored in one flat tensor."""

import torch
from torch import Tensor


def log_sum_exp(value_P: Tensor, list_P: Tensor, num_lists: int) -> Tensor:
    """Return the log-sum-exp of each list, and a large negative number for an empty list.

    `list_P` holds the list that each value belongs to.

    >>> log_sum_exp(torch.zeros(3), torch.tensor([0, 0, 2]), 3).exp()
    tensor([2., 0., 1.])
    """
    lowest = torch.finfo(value_P.dtype).min
    highest = value_P.new_full((num_lists,), lowest)
    highest = highest.scatter_reduce(0, list_P, value_P.detach(), "amax")
    total = value_P.new_zeros(num_lists)
    total = total.index_add(0, list_P, (value_P - highest[list_P]).exp())
    # The highest value adds 1 to its list's total, so the clamp changes the total of empty lists
    # only, from 0.
    return total.clamp_min(torch.finfo(value_P.dtype).tiny).log() + highest
