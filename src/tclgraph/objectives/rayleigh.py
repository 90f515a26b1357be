"""The Rayleigh point process of DeepCoevolve, whose intensity grows linearly with time.

The intensity of a pair is c · Δ, where Δ is the time since the last event of either party. The rate
c is given by its logarithm. Times may be in any unit; the rate is in the same unit.
"""

from torch import Tensor


def log_intensity(log_rate: Tensor, interval: Tensor) -> Tensor:
    """Return the log of the intensity, log(c Δ).

    >>> import torch
    >>> log_intensity(torch.tensor(2.0), torch.tensor(1.0)).item()
    2.0
    """
    return log_rate + interval.log()


def integrated_intensity(log_rate: Tensor, interval: Tensor) -> Tensor:
    """Return the integral of the intensity over the interval, c Δ² / 2.

    The probability that no event happens within the interval is exp(-c Δ² / 2).

    >>> import torch
    >>> integrated_intensity(torch.tensor(0.0), torch.tensor(2.0)).item()
    2.0
    """
    return log_rate.exp() * interval.square() / 2


def log_density(log_rate: Tensor, interval: Tensor) -> Tensor:
    """Return the log density of the next event's time, log(c Δ) - c Δ² / 2.

    >>> import torch
    >>> log_density(torch.tensor(0.0), torch.tensor(1.0)).item()
    -0.5
    """
    return log_intensity(log_rate, interval) - integrated_intensity(log_rate, interval)


def rayleigh_loss(
    log_rate_B: Tensor, log_rate_BC: Tensor, interval_BC: Tensor, weight_C: Tensor
) -> Tensor:
    """Return the negative log-likelihood, mean over events, without the constant term log Δ.

    `log_rate_B` belongs to the true pairs. `log_rate_BC` and `interval_BC` belong to all pairs,
    including the true ones, that have no event within the interval; `weight_C` weighs their
    integrals.

    >>> import torch
    >>> zero = torch.zeros(3)
    >>> rayleigh_loss(zero, zero[:, None], torch.ones(3, 1), torch.ones(1)).item()
    0.5
    """
    return (integrated_intensity(log_rate_BC, interval_BC) @ weight_C - log_rate_B).mean()
