"""Compare the reductions over lists with torch's functions on single lists."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.arrays import IntArray
from tclgraph.layers import lists as module
from tclgraph.layers.lists import log_sum_exp, log_sum_exp_by_steps
from tclgraph.threads import use_torch_threads

LOWEST = torch.finfo(torch.float64).min


def as_values(lists: list[list[float]]) -> tuple[Tensor, IntArray]:
    """Return the values of all lists, and where each list starts."""
    values = [value for members in lists for value in members]
    lengths = [len(members) for members in lists]
    return (
        torch.tensor(values, dtype=torch.float64, requires_grad=True),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )


def weigh(output: Tensor) -> Tensor:
    return (output * torch.linspace(-1, 2, len(output), dtype=output.dtype)).sum()


# Far enough apart that a plain sum of exponentials would underflow or overflow.
extreme_values = st.one_of(st.floats(-5, 5), st.sampled_from((-2e3, -800.0, 0.0, 800.0, 2e3)))


@pytest.mark.parametrize("function", [log_sum_exp, log_sum_exp_by_steps])
@given(lists=st.lists(st.lists(extreme_values, max_size=5), min_size=1, max_size=6))
def test_log_sum_exp_equals_that_of_every_list(
    function: Callable[[Tensor, IntArray], Tensor], lists: list[list[float]]
) -> None:
    value, start = as_values(lists)
    output = function(value, start)
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
        assert_close(gradient[start[number] : start[number + 1]], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_single_precision_is_as_exact_as_torchs(
    num_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MIN_VALUES_PER_THREAD", 1)
    table = torch.randn(7, 400, generator=torch.Generator().manual_seed(0)) * 20
    table[:, ::9] = -1e9
    table.requires_grad_()
    with use_torch_threads(num_threads):
        output = log_sum_exp(table.flatten(), 400 * np.arange(8))
        (gradient,) = torch.autograd.grad(weigh(output), table)
    expected = table.logsumexp(dim=1)
    assert_close(output, expected, rtol=1e-6, atol=1e-6)
    assert_close(gradient, torch.autograd.grad(weigh(expected), table)[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ([0.3, -1.0, 2.0, 0.3], [0, 4]),
        # With ties.
        ([0.5, 0.5, -2.0, 1.0, 0.0], [0, 2, 4, 5]),
    ],
)
def test_gradients_equal_finite_differences(value: list[float], start: list[int]) -> None:
    values = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda values: log_sum_exp(values, np.array(start)), (values,))


def test_all_lists_may_be_empty() -> None:
    value, start = as_values([[], []])
    output = log_sum_exp(value, start)
    assert output.exp().tolist() == [0.0, 0.0]
    (gradient,) = torch.autograd.grad(output.sum(), value)
    assert gradient.shape == (0,)
