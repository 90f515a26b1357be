"""The generalized binary cross-entropy against torch's binary cross-entropy."""

import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional

from tclgraph.objectives.pairwise import gbce_loss


@pytest.mark.parametrize(
    ("num_others", "calibration", "positive_weight"),
    [(20, 0.0, 1.0), (20, 1.0, 0.2), (20, 0.75, 0.4), (3, 1.0, 1.0)],
)
def test_gbce_is_a_weighted_binary_cross_entropy(
    num_others: int, calibration: float, positive_weight: float
) -> None:
    random = torch.Generator().manual_seed(0)
    positive = torch.randn(6, generator=random, dtype=torch.float64)
    negative = torch.randn(6, 4, generator=random, dtype=torch.float64)
    score = torch.cat([positive[:, None], negative], dim=1)
    is_true = torch.zeros_like(score)
    is_true[:, 0] = 1.0
    weight = torch.ones_like(score)
    weight[:, 0] = positive_weight
    expected = functional.binary_cross_entropy_with_logits(score, is_true, weight)
    loss = gbce_loss(positive, negative, num_others=num_others, calibration=calibration)
    assert_allclose(loss, expected, rtol=1e-12)


def test_a_masked_negative_does_not_count() -> None:
    positive, negative = torch.zeros(2), torch.full((2, 3), -torch.inf, requires_grad=True)
    loss = gbce_loss(positive, negative, num_others=9, calibration=0.0)
    assert loss.item() == pytest.approx(0.6931 / 4, abs=1e-4)
    assert not torch.autograd.grad(loss, negative)[0].any()
