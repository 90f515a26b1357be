"""Batches that are drawn ahead are those that would be drawn in turn."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.ranker.model import Ranker
from tclgraph.threads import use_torch_threads
from tclgraph.training.drawing import drawn_batches

NUM_BATCHES = 9


@pytest.fixture(scope="module")
def split() -> Split:
    return synthesize(SyntheticConfig(events=900, sources=20, targets=30)).split(0.6, 0.2)


class Slow(Ranker):
    """Draws the later batches faster, so that they are finished first."""

    def draw_batch(self, batch: int, random: np.random.Generator) -> Any:
        time.sleep(0.002 * (NUM_BATCHES - batch))
        return batch, random.random()


@pytest.mark.parametrize("encoder", [None, {}])
@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_batches_come_in_order_with_their_own_numbers(
    num_threads: int, encoder: dict[str, int] | None
) -> None:
    model = Slow(encoder=None) if encoder is None else Slow()
    batches = [(batch, np.random.default_rng(batch)) for batch in range(NUM_BATCHES)]
    with use_torch_threads(num_threads):
        drawn = [(item.batch, item.random.random()) for item in drawn_batches(model, batches)]
        assert torch.get_num_threads() == num_threads
    for batch, ((number, first), second) in enumerate(drawn):
        random = np.random.default_rng(batch)
        assert (number, first, second) == (batch, random.random(), random.random())


def test_an_error_in_another_thread_reaches_the_caller() -> None:
    class Failing(Ranker):
        def draw_batch(self, batch: int, random: np.random.Generator) -> Any:
            raise ValueError("no batch")

    with use_torch_threads(2), pytest.raises(ValueError, match="no batch"):
        list(drawn_batches(Failing(encoder=None), [(0, np.random.default_rng(0))]))


class Recording(Ranker):
    """Records its losses."""

    def loss(self, batch: Any, random: np.random.Generator) -> Tensor:
        loss = super().loss(batch, random)
        self.losses = [*getattr(self, "losses", []), loss.item()]
        return loss


@pytest.mark.parametrize("settings", [{"encoder": None}, {"encoder.width": 16}])
def test_training_does_not_depend_on_drawing_ahead(split: Split, settings: dict[str, Any]) -> None:
    in_turn, ahead = (
        Recording(epochs=2, batch_size=64, threads=number, **settings) for number in (1, 2)
    )
    for model in (in_turn, ahead):
        model.fit(split)
    assert_allclose(ahead.losses, in_turn.losses, rtol=1e-4)
