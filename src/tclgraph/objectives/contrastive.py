"""The paper's contrastive objective (InfoNCE)."""

import torch
from torch import Tensor


def contrastive_loss(positive_B: Tensor, negative_BN: Tensor) -> Tensor:
    """Return the cross-entropy of picking the true target among its negatives, mean over events.

    >>> round(contrastive_loss(torch.zeros(2), torch.zeros(2, 5)).item(), 4)  # a guess among six
    1.7918
    """
    score_BC = torch.cat([positive_B[:, None], negative_BN], dim=1)
    return -score_BC.log_softmax(dim=1)[:, 0].mean()
