import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.layers.lists import log_sum_exp

LOWEST = torch.finfo(torch.float64).min


def as_values(lists: list[list[float]]) -> tuple[Tensor, Tensor]:
    """All values, and the list of each."""
    values = [value for one in lists for value in one]
    places = [place for place, one in enumerate(lists) for _ in one]
    return (
        torch.tensor(values, dtype=torch.float64, requires_grad=True),
        torch.tensor(places, dtype=torch.int64),
    )


def weigh(output: Tensor) -> Tensor:
    return (output * torch.linspace(-1, 2, len(output), dtype=output.dtype)).sum()


# Far enough apart that a sum of bare exponentials would be 0 or beyond all numbers.
numbers = st.one_of(st.floats(-5, 5), st.sampled_from((-2e3, -800.0, 0.0, 800.0, 2e3)))


@given(st.lists(st.lists(numbers, max_size=5), min_size=1, max_size=6))
def test_it_is_that_of_every_list(lists: list[list[float]]) -> None:
    value, place = as_values(lists)
    output = log_sum_exp(value, place, len(lists))
    (slope,) = torch.autograd.grad(weigh(output), value)
    assert torch.isfinite(output).all()
    assert torch.isfinite(slope).all()

    weights = torch.linspace(-1, 2, len(lists), dtype=torch.float64)
    for at, one in enumerate(lists):
        own = torch.tensor(one, dtype=torch.float64)
        if not one:
            assert output[at] < LOWEST / 2
            continue
        assert_close(output[at], torch.logsumexp(own, dim=0), rtol=1e-12, atol=1e-12)
        share = torch.softmax(own, dim=0) * weights[at]
        assert_close(slope[place == at], share, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([0.3, -1.0, 2.0, 0.3], [1, 1, 1, 1]),
        # Out of order, and with ties.
        ([0.5, 0.5, -2.0, 1.0, 0.0], [3, 1, 3, 1, 4]),
    ],
)
def test_gradients_are_slopes(value: list[float], place: list[int]) -> None:
    values = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    used = torch.tensor(sorted(set(place)))

    def of_used_lists(values: Tensor) -> Tensor:
        # An empty list has no slope, but its value is too large to take differences of.
        return log_sum_exp(values, torch.tensor(place), 6)[used]

    assert torch.autograd.gradcheck(of_used_lists, (values,))


def test_nothing_but_empty_lists() -> None:
    value, place = as_values([[], []])
    output = log_sum_exp(value, place, 2)
    assert output.exp().tolist() == [0.0, 0.0]
    (slope,) = torch.autograd.grad(output.sum(), value)
    assert slope.shape == (0,)
