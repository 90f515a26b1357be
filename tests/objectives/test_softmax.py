"""The chunked softmax loss against torch's cross-entropy."""

import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional

from tclgraph.objectives import softmax
from tclgraph.objectives.softmax import softmax_loss


@pytest.mark.parametrize("cells", [1, 12, 1 << 20])
def test_loss_and_gradients_equal_cross_entropy(
    monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    monkeypatch.setattr(softmax, "_CELLS_PER_CHUNK", cells)
    random = torch.Generator().manual_seed(0)
    query, target = (
        torch.randn(*shape, generator=random, dtype=torch.float64, requires_grad=True)
        for shape in ((7, 3), (5, 3))
    )
    true = torch.tensor([0, 4, 4, 2, 1, 3, 0])
    loss = softmax_loss(query, target, true)
    expected = functional.cross_entropy(query @ target.T, true, reduction="sum")
    assert_allclose(loss.detach(), expected.detach(), rtol=1e-12)
    for gradient, expected_gradient in zip(
        torch.autograd.grad(3 * loss, [query, target]),
        torch.autograd.grad(3 * expected, [query, target]),
        strict=True,
    ):
        assert_allclose(gradient, expected_gradient, rtol=1e-10, atol=1e-12)
