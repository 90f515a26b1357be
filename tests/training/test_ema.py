from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from tclgraph.training.ema import WeightEMA


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.PReLU())


def after_batches(one: nn.Module, num_batches: int) -> Iterator[int]:
    """Weights that jump about, as a batch would leave them."""
    for batch in range(1, num_batches + 1):
        with torch.no_grad():
            for parameter in one.parameters():
                parameter.copy_(torch.randn_like(parameter))
        yield batch


def copied(one: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in one.named_parameters()}


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.999])
def test_it_is_the_recursion_written_out(kept: float) -> None:
    one = network()
    average, expected = WeightEMA(one, kept), copied(one)
    for batch in after_batches(one, 120):
        average.follow(batch)
        # 1/11 after one batch, 1/2 after ten, and in the end what was asked for.
        share = min(kept, batch / (batch + 10))
        for name, now in copied(one).items():
            expected[name] = share * expected[name] + (1 - share) * now
        assert_close(average.weights, expected)


def test_initial_weights_are_soon_forgotten() -> None:
    one = network()
    average = WeightEMA(one, 0.999)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.zero_()
    initial = average.weights["0.weight"].clone()
    average.follow(1)
    assert_close(average.weights["0.weight"], initial / 11)


def test_to_follow_leaves_the_network_alone() -> None:
    one = network()
    average = WeightEMA(one, 0.9)
    for batch in after_batches(one, 3):
        own = copied(one)
        average.follow(batch)
        assert_close(copied(one), own, rtol=0, atol=0)


def test_the_average_stays_when_the_network_learns() -> None:
    one = network()
    average, initial = WeightEMA(one, 0.9), copied(one)
    list(after_batches(one, 1))
    assert_close(average.weights, initial, rtol=0, atol=0)


def test_the_network_has_it_for_a_while() -> None:
    one = network()
    average = WeightEMA(one, 0.9)
    for batch in after_batches(one, 3):
        average.follow(batch)
    own, averaged = copied(one), {name: x.clone() for name, x in average.weights.items()}
    assert not torch.equal(own["0.weight"], averaged["0.weight"])
    with average.in_place():
        assert_close(copied(one), averaged, rtol=0, atol=0)
    assert_close(copied(one), own, rtol=0, atol=0)
    assert_close(average.weights, averaged, rtol=0, atol=0)


def test_its_own_weights_come_back_after_an_error() -> None:
    one = network()
    average = WeightEMA(one, 0.9)
    for batch in after_batches(one, 3):
        average.follow(batch)
    own = copied(one)

    def fail_inside() -> None:
        with average.in_place():
            assert not torch.equal(copied(one)["0.weight"], own["0.weight"])
            raise RuntimeError("by hand")

    with pytest.raises(RuntimeError, match="by hand"):
        fail_inside()
    assert_close(copied(one), own, rtol=0, atol=0)
