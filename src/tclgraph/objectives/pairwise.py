"""Binary classification of single pairs: true pairs against negative pairs."""

from torch import Tensor
from torch.nn import functional


def logistic_loss(positive_B: Tensor, negative: Tensor, negative_weight: float = 1.0) -> Tensor:
    """Return the logistic loss: mean of -log σ(s) over positives, and of -log σ(-s) over negatives.

    The mean over negatives is multiplied by `negative_weight`.

    >>> import torch
    >>> round(logistic_loss(torch.zeros(2), torch.zeros(2, 5)).item(), 4)  # twice log 2
    1.3863
    """
    loss = functional.softplus(-positive_B).mean()
    if negative.numel():
        loss = loss + negative_weight * functional.softplus(negative).mean()
    return loss
