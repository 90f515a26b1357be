"""The exponential moving average of weights."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from tclgraph.training.ema import WeightEMA


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.PReLU())


def after_batches(module: nn.Module, num_batches: int) -> Iterator[int]:
    """Yield batch numbers, after setting the weights at random as a batch might."""
    for batch in range(1, num_batches + 1):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(torch.randn_like(parameter))
        yield batch


def copied(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.999])
def test_the_average_follows_its_recursion(decay: float) -> None:
    module = network()
    average, expected = WeightEMA(module, decay), copied(module)
    for batch in after_batches(module, 120):
        average.update(batch)
        # The decay is 1/11 after the first batch, 1/2 after ten, and the given one in the end.
        share = min(decay, batch / (batch + 10))
        for name, now in copied(module).items():
            expected[name] = share * expected[name] + (1 - share) * now
        assert_close(average.weights, expected)


def test_initial_weights_are_soon_forgotten() -> None:
    module = network()
    average = WeightEMA(module, 0.999)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    initial = average.weights["0.weight"].clone()
    average.update(1)
    assert_close(average.weights["0.weight"], initial / 11)


def test_updating_leaves_the_network_unchanged() -> None:
    module = network()
    average = WeightEMA(module, 0.9)
    for batch in after_batches(module, 3):
        own = copied(module)
        average.update(batch)
        assert_close(copied(module), own, rtol=0, atol=0)


def test_training_does_not_change_the_average() -> None:
    module = network()
    average, initial = WeightEMA(module, 0.9), copied(module)
    list(after_batches(module, 1))
    assert_close(average.weights, initial, rtol=0, atol=0)


def test_the_network_has_the_average_within_the_block() -> None:
    module = network()
    average = WeightEMA(module, 0.9)
    for batch in after_batches(module, 3):
        average.update(batch)
    own, averaged = copied(module), {name: x.clone() for name, x in average.weights.items()}
    assert not torch.equal(own["0.weight"], averaged["0.weight"])
    with average.applied():
        assert_close(copied(module), averaged, rtol=0, atol=0)
    assert_close(copied(module), own, rtol=0, atol=0)
    assert_close(average.weights, averaged, rtol=0, atol=0)


def test_the_original_weights_return_after_an_error() -> None:
    module = network()
    average = WeightEMA(module, 0.9)
    for batch in after_batches(module, 3):
        average.update(batch)
    own = copied(module)

    def fail_inside() -> None:
        with average.applied():
            assert not torch.equal(copied(module)["0.weight"], own["0.weight"])
            raise RuntimeError("by hand")

    with pytest.raises(RuntimeError, match="by hand"):
        fail_inside()
    assert_close(copied(module), own, rtol=0, atol=0)


def test_buffers_are_copied_and_not_averaged() -> None:
    module = nn.BatchNorm1d(2)
    average = WeightEMA(module, 0.9)
    assert module.running_mean is not None
    assert module.num_batches_tracked is not None
    for batch in after_batches(module, 2):
        module.running_mean.fill_(batch)
        module.num_batches_tracked.fill_(batch)
        average.update(batch)
    assert average.weights["running_mean"].tolist() == [2.0, 2.0]
    assert average.weights["num_batches_tracked"].item() == 2
