"""Compare the sums over rows and pairs with the published sum over edges, with gradients."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.objectives.reconstruction import closeness_loss, row_loss


def edge_by_edge(
    predicted: Tensor, true: Tensor, code: Tensor, emphasis: float, alpha: float
) -> Tensor:
    total = torch.zeros((), dtype=predicted.dtype)
    degree = (true != 0).sum(1)
    b = 1 + (emphasis - 1) * (true != 0)
    for i, j in torch.nonzero(true).tolist():
        total = total + ((predicted[i] - true[i]) * b[i]).norm() ** 2 / degree[i]
        total = total + ((predicted[j] - true[j]) * b[j]).norm() ** 2 / degree[j]
        total = total + alpha * true[i, j] * (code[i] - code[j]).norm() ** 2
    return total


@given(
    num_nodes=st.integers(2, 7),
    seed=st.integers(0, 999),
    emphasis=st.sampled_from([1.0, 5.0]),
    alpha=st.sampled_from([0.0, 0.3]),
)
def test_rows_and_pairs_equal_the_published_sum_over_edges(
    num_nodes: int, seed: int, emphasis: float, alpha: float
) -> None:
    random = torch.Generator().manual_seed(seed)
    drawn = torch.randint(-3, 4, (num_nodes, num_nodes), generator=random).clamp_min(0).double()
    true = (drawn + drawn.T).fill_diagonal_(0)
    true[0, 1] = true[1, 0] = 2
    predicted, code = (
        torch.randn(num_nodes, width, dtype=torch.float64, generator=random).requires_grad_()
        for width in (num_nodes, 3)
    )
    rows = torch.nonzero(true.sum(1)).ravel()
    first, second = torch.nonzero(true).T
    closeness = closeness_loss(code[first], code[second], true[first, second])
    ours = 2 * row_loss(predicted[rows], true[rows], emphasis) + alpha * closeness
    theirs = edge_by_edge(predicted, true, code, emphasis, alpha)
    assert_close(ours, theirs)
    gradients = (torch.autograd.grad(loss, [predicted, code]) for loss in (ours, theirs))
    assert_close(next(gradients), next(gradients))
