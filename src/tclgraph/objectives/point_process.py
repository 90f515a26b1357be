"""Likelihood of a temporal point process: an event at its time, and none before.

A pair's intensity is SoftPlus of a line in time. Its integral has no elementary form and is taken
at five Gauss-Legendre points, which unlike random points make the result repeatable.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

_POINTS, _WEIGHTS = (values.tolist() for values in np.polynomial.legendre.leggauss(5))


def integrated_intensity(line: Tensor, slope: Tensor, span: Tensor) -> Tensor:
    """∫ SoftPlus(line + slope · s) ds for s from 0 to span.

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
    """The logarithm of SoftPlus, also where SoftPlus itself is too small to be told from 0."""
    return torch.where(line < -20, line, functional.softplus(line.clamp_min(-20)).log())


def point_process_loss(
    line_at_event_B: Tensor,
    line_at_start_BC: Tensor,
    slope: Tensor,
    span_BC: Tensor,
    survival_weight: float,
) -> Tensor:
    """Negative log-likelihood, mean over events.

    The first is the true pair's line at the event. The others are of the true pair and of its
    negatives, over the spans in which they did not meet.
    """
    survival_B = integrated_intensity(line_at_start_BC, slope, span_BC).sum(1)
    return (survival_weight * survival_B - log_intensity(line_at_event_B)).mean()
