"""Likelihood of a temporal point process: an event happens at its time, and none before it.

The intensity of a pair is SoftPlus of a line in time. Its integral has no elementary form and is
approximated with five Gauss-Legendre points, which, unlike random points, give repeatable results.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

_POINTS, _WEIGHTS = (values.tolist() for values in np.polynomial.legendre.leggauss(5))


def integrated_intensity(line: Tensor, slope: Tensor, span: Tensor) -> Tensor:
    """Return ∫ SoftPlus(line + slope · s) ds for s from 0 to span.

    >>> zero = torch.zeros(())
    >>> round(integrated_intensity(zero, zero, torch.tensor(2.0)).item(), 4)  # 2 ln 2
    1.3863
    """
    half = span / 2
    total = torch.zeros_like(line)
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        total = total + weight * functional.softplus(line + slope * half * (1 + point))
    return total * half


def log_intensity(line: Tensor) -> Tensor:
    """Return the logarithm of SoftPlus, also where SoftPlus itself would round to 0."""
    return torch.where(line < -20, line, functional.softplus(line.clamp_min(-20)).log())


def point_process_loss(
    line_at_event_B: Tensor,
    line_at_start_BC: Tensor,
    slope: Tensor,
    span_BC: Tensor,
    survival_weight: float,
) -> Tensor:
    """Return the negative log-likelihood, mean over events.

    `line_at_event_B` is the line of the true pair at the event. `line_at_start_BC` are the lines of
    the true pair and its negatives at the start of the spans in which they have no event. The
    integral over the spans is multiplied by `survival_weight`.
    """
    survival_B = integrated_intensity(line_at_start_BC, slope, span_BC).sum(1)
    return (survival_weight * survival_B - log_intensity(line_at_event_B)).mean()
