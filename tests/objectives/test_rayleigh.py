"""Test the Rayleigh process against numerical integrals and known optima."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tclgraph.objectives.rayleigh import (
    integrated_intensity,
    log_density,
    log_intensity,
    rayleigh_loss,
)


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize("log_rate", [-2.0, 0.0, 3.0])
@pytest.mark.parametrize("interval", [0.01, 0.7, 4.0])
def test_the_integral_is_the_area_under_the_intensity(log_rate: float, interval: float) -> None:
    edges = torch.linspace(0, interval, 2001, dtype=torch.float64)
    middles = (edges[1:] + edges[:-1]) / 2
    area = log_intensity(number(log_rate), middles).exp().mean() * interval
    integral = integrated_intensity(number(log_rate), number(interval))
    assert integral.item() == pytest.approx(area.item(), rel=1e-9)


@pytest.mark.parametrize("log_rate", [-2.0, 0.0, 3.0])
def test_the_density_is_minus_the_derivative_of_the_survival_function(
    log_rate: float,
) -> None:
    edges = torch.linspace(0, 12 * np.exp(-log_rate / 2), 40_001, dtype=torch.float64)
    survival = (-integrated_intensity(number(log_rate), edges)).exp()
    middles = (edges[1:] + edges[:-1]) / 2
    density = log_density(number(log_rate), middles).exp()
    derivative = (survival[:-1] - survival[1:]) / (edges[1:] - edges[:-1])
    assert torch.allclose(density, derivative, rtol=1e-5, atol=1e-9)
    assert (density.mean() * edges[-1]).item() == pytest.approx(1.0, abs=1e-6)


def test_the_loss_is_minimal_at_the_true_rate() -> None:
    # Events after 1, 2 and 3 units: the maximum-likelihood rate is 2 / mean of the squares.
    interval = torch.tensor([[1.0], [2.0], [3.0]])
    log_rate = torch.tensor(np.log(2 / (14 / 3)), dtype=torch.float32, requires_grad=True)
    loss = rayleigh_loss(log_rate.expand(3), log_rate.expand(3, 1), interval, torch.ones(1))
    loss.backward()  # type: ignore[no-untyped-call]
    assert log_rate.grad is not None
    assert log_rate.grad.item() == pytest.approx(0.0, abs=1e-6)


def test_the_loss_is_the_likelihood_without_its_constant_term() -> None:
    log_rate = torch.tensor([[0.3, -1.0, 0.5]], dtype=torch.float64)
    interval = torch.tensor([[0.8, 2.0, 0.1]], dtype=torch.float64)
    likelihood = log_density(log_rate[0, 0], interval[0, 0])
    weight = torch.tensor([1.0, 4.0, 7.0], dtype=torch.float64)
    others = integrated_intensity(log_rate[0, 1:], interval[0, 1:])
    likelihood = likelihood - 4 * others[0] - 7 * others[1]
    loss = rayleigh_loss(log_rate[:, 0], log_rate, interval, weight)
    assert loss.item() == pytest.approx((np.log(0.8) - likelihood).item(), rel=1e-12)
