"""Sums over lists of different lengths that lie one after the other."""

import torch
from torch import Tensor


def log_sum_exp(value_P: Tensor, list_P: Tensor, num_lists: int) -> Tensor:
    """Of the values of each list; next to -inf of an empty one.

    >>> log_sum_exp(torch.zeros(3), torch.tensor([0, 0, 2]), 3).exp()
    tensor([2., 0., 1.])
    """
    lowest = torch.finfo(value_P.dtype).min
    highest = value_P.new_full((num_lists,), lowest)
    highest = highest.scatter_reduce(0, list_P, value_P.detach(), "amax")
    total = value_P.new_zeros(num_lists)
    total = total.index_add(0, list_P, (value_P - highest[list_P]).exp())
    # A list that is not empty has at least 1, from its highest; below that is only 0.
    return total.clamp_min(torch.finfo(value_P.dtype).tiny).log() + highest
