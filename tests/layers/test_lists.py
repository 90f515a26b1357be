"""Compare the reductions over lists with torch's functions on single lists."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.layers.lists import log_sum_exp

LOWEST = torch.finfo(torch.float64).min


def as_values(lists: list[list[float]]) -> tuple[Tensor, Tensor]:
    """Return the values of all lists, and the list of each value."""
    values = [value for members in lists for value in members]
    numbers = [number for number, members in enumerate(lists) for _ in members]
    return (
        torch.tensor(values, dtype=torch.float64, requires_grad=True),
        torch.tensor(numbers, dtype=torch.int64),
    )


def weigh(output: Tensor) -> Tensor:
    return (output * torch.linspace(-1, 2, len(output), dtype=output.dtype)).sum()


# Far enough apart that a plain sum of exponentials would underflow or overflow.
extreme_values = st.one_of(st.floats(-5, 5), st.sampled_from((-2e3, -800.0, 0.0, 800.0, 2e3)))


@given(st.lists(st.lists(extreme_values, max_size=5), min_size=1, max_size=6))
def test_log_sum_exp_equals_that_of_every_list(lists: list[list[float]]) -> None:
    value, list_number = as_values(lists)
    output = log_sum_exp(value, list_number, len(lists))
    (gradient,) = torch.autograd.grad(weigh(output), value)
    assert torch.isfinite(output).all()
    assert torch.isfinite(gradient).all()

    weights = torch.linspace(-1, 2, len(lists), dtype=torch.float64)
    for number, members in enumerate(lists):
        values = torch.tensor(members, dtype=torch.float64)
        if not members:
            assert output[number] < LOWEST / 2
            continue
        assert_close(output[number], torch.logsumexp(values, dim=0), rtol=1e-12, atol=1e-12)
        expected = torch.softmax(values, dim=0) * weights[number]
        assert_close(gradient[list_number == number], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "list_number"),
    [
        ([0.3, -1.0, 2.0, 0.3], [1, 1, 1, 1]),
        # Lists out of order, and with ties.
        ([0.5, 0.5, -2.0, 1.0, 0.0], [3, 1, 3, 1, 4]),
    ],
)
def test_gradients_equal_finite_differences(value: list[float], list_number: list[int]) -> None:
    values = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    used = torch.tensor(sorted(set(list_number)))

    def of_used_lists(values: Tensor) -> Tensor:
        # The value of an empty list is too large for finite differences.
        return log_sum_exp(values, torch.tensor(list_number), 6)[used]

    assert torch.autograd.gradcheck(of_used_lists, (values,))


def test_all_lists_may_be_empty() -> None:
    value, list_number = as_values([[], []])
    output = log_sum_exp(value, list_number, 2)
    assert output.exp().tolist() == [0.0, 0.0]
    (gradient,) = torch.autograd.grad(output.sum(), value)
    assert gradient.shape == (0,)
