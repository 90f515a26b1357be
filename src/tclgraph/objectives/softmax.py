"""Cross-entropy over all targets, without the scores of all queries in memory.

Shapes: R queries, T targets, D width.
"""

from typing import Any

import torch
from torch import Tensor

# Scores are computed for some queries at a time: 8 MB in single precision.
_CELLS_PER_CHUNK = 1 << 21


def softmax_loss(query_RD: Tensor, target_TD: Tensor, true_R: Tensor) -> Tensor:
    """Return the sum over queries of the cross-entropy of picking the true target among all.

    The score of a target is the product of its vector with the query.

    >>> round(softmax_loss(torch.zeros(2, 3), torch.zeros(6, 3), torch.tensor([4, 5])).item(), 4)
    3.5835
    """
    loss: Tensor = _SoftmaxLoss.apply(query_RD, target_TD, true_R)  # type: ignore[no-untyped-call]
    return loss


class _SoftmaxLoss(torch.autograd.Function):
    """Compute the gradients with the loss, so that no score is needed again."""

    @staticmethod
    def forward(context: Any, query_RD: Tensor, target_TD: Tensor, true_R: Tensor) -> Tensor:
        loss = query_RD.new_zeros(())
        query_gradient, target_gradient = torch.empty_like(query_RD), torch.zeros_like(target_TD)
        size = max(1, _CELLS_PER_CHUNK // len(target_TD))
        for start in range(0, len(query_RD), size):
            rows = slice(start, start + size)
            true_R1 = true_R[rows, None]
            log_share_RT = (query_RD[rows] @ target_TD.T).log_softmax(dim=1)
            loss -= log_share_RT.gather(1, true_R1).sum()
            gradient_RT = log_share_RT.exp_()
            gradient_RT.scatter_add_(1, true_R1, gradient_RT.new_full(true_R1.shape, -1.0))
            torch.mm(gradient_RT, target_TD, out=query_gradient[rows])
            target_gradient.addmm_(gradient_RT.T, query_RD[rows])
        context.save_for_backward(query_gradient, target_gradient)
        return loss

    @staticmethod
    def backward(context: Any, loss_gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        query_gradient, target_gradient = context.saved_tensors
        return loss_gradient * query_gradient, loss_gradient * target_gradient, None
