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


def gbce_loss(
    positive_B: Tensor, negative_BN: Tensor, *, num_others: int, calibration: float
) -> Tensor:
    """Return the generalized binary cross-entropy (gBCE), mean over events.

    The loss of an event is -(β log σ(s⁺) + Σ log σ(-s⁻)) / (N + 1) with β = 1 - t (1 - α), where α
    is the share of the `num_others` other targets that are drawn as negatives, and t the
    calibration. It is the ordinary binary cross-entropy with t = 0. With t = 1 the scores are not
    raised by the small number of negatives.

    >>> import torch
    >>> positive, negative = torch.zeros(1), torch.zeros(1, 3)
    >>> losses = [gbce_loss(positive, negative, num_others=6, calibration=t) for t in (0.0, 1.0)]
    >>> [round(loss.item(), 4) for loss in losses]  # log 2, and 7/8 of it
    [0.6931, 0.6065]
    """
    num_negatives = negative_BN.shape[1]
    sampling_rate = min(1.0, num_negatives / max(1, num_others))
    positive_weight = 1 - calibration * (1 - sampling_rate)
    loss_B = positive_weight * functional.softplus(-positive_B)
    loss_B = loss_B + functional.softplus(negative_BN).sum(dim=1)
    return loss_B.mean() / (num_negatives + 1)
