"""Test the point-process likelihood against numerical integrals and known optima."""

import numpy as np
import pytest
import torch

from tclgraph.objectives.point_process import (
    integrated_intensity,
    log_intensity,
    point_process_loss,
)


@pytest.mark.parametrize("line", [-3.0, 0.0, 4.0])
@pytest.mark.parametrize("slope", [-2.0, 0.0, 1.5])
@pytest.mark.parametrize("span", [0.0, 0.3, 5.0])
def test_the_integral_is_the_area_under_the_intensity(
    line: float, slope: float, span: float
) -> None:
    edges = np.linspace(0, span, 20_001)
    middles = (edges[1:] + edges[:-1]) / 2
    area = np.logaddexp(0, line + slope * middles).mean() * span
    integral = integrated_intensity(*torch.tensor([line, slope, span], dtype=torch.float64))
    assert integral.item() == pytest.approx(area, rel=2e-3, abs=1e-9)


def test_the_log_intensity_does_not_underflow() -> None:
    line = torch.tensor([-200.0, -21.0, -19.0, 0.0, 50.0], dtype=torch.float64, requires_grad=True)
    log_value = log_intensity(line)
    expected = [-200.0, -21.0, np.log(np.log1p(np.exp(-19.0))), np.log(np.log(2)), np.log(50.0)]
    assert log_value.tolist() == pytest.approx(expected, rel=1e-9)
    log_value.sum().backward()  # type: ignore[no-untyped-call]
    assert line.grad is not None
    assert torch.isfinite(line.grad).all()


def test_the_loss_of_a_constant_rate_is_minimal_at_the_true_rate() -> None:
    # Three events after 4 units each: a rate of 1/4 has the highest likelihood.
    span = torch.full((3, 1), 4.0)

    def loss(rate: float) -> float:
        line = torch.tensor(np.log(np.expm1(rate)), dtype=torch.float32)
        return point_process_loss(
            line.expand(3), line.expand(3, 1), torch.tensor(0.0), span, 1.0
        ).item()

    assert loss(0.25) == pytest.approx(4 * 0.25 - np.log(0.25), rel=1e-4)
    assert loss(0.25) < min(loss(0.2), loss(0.3))
