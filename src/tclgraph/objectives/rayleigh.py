"""The Rayleigh point process of DeepCoevolve: who has not met for long is ever likelier to meet.

The intensity of a pair is c · Δ, where Δ is the time since either of the two last had an event. Its
rate c is given by its logarithm. Time is in whatever unit the rate is in.
"""

from torch import Tensor


def log_intensity(log_rate: Tensor, interval: Tensor) -> Tensor:
    """log(c Δ).

    >>> import torch
    >>> log_intensity(torch.tensor(2.0), torch.tensor(1.0)).item()
    2.0
    """
    return log_rate + interval.log()


def integrated_intensity(log_rate: Tensor, interval: Tensor) -> Tensor:
    """What has been expected since, c Δ² / 2: nothing happens with the probability e to minus this.

    >>> import torch
    >>> integrated_intensity(torch.tensor(0.0), torch.tensor(2.0)).item()
    2.0
    """
    return log_rate.exp() * interval.square() / 2


def log_density(log_rate: Tensor, interval: Tensor) -> Tensor:
    """Of the next event coming just then: log(c Δ) - c Δ² / 2.

    >>> import torch
    >>> log_density(torch.tensor(0.0), torch.tensor(1.0)).item()
    -0.5
    """
    return log_intensity(log_rate, interval) - integrated_intensity(log_rate, interval)


def rayleigh_loss(
    log_rate_B: Tensor, log_rate_BC: Tensor, interval_BC: Tensor, weight_C: Tensor
) -> Tensor:
    """Negative log-likelihood, mean over events, less log Δ, which nothing learned can change.

    The first is of the pairs that met. The others are of all pairs, these included, that are known
    not to have met within the intervals given; each counts by its weight.

    >>> import torch
    >>> zero = torch.zeros(3)
    >>> rayleigh_loss(zero, zero[:, None], torch.ones(3, 1), torch.ones(1)).item()
    0.5
    """
    return (integrated_intensity(log_rate_BC, interval_BC) @ weight_C - log_rate_B).mean()
