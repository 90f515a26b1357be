"""Evaluation on a log that continues the one on which the model was fitted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph import registry
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.stream import EventStream
from tclgraph.models.learned import LearnedModel
from tclgraph.testing.streams import cut
from tests.contracts.test_models import SMALL

NUM_EVENTS = 60


def log_with_new_nodes() -> EventStream:
    """Return a log in which new sources and targets appear until its end."""
    random = np.random.default_rng(3)
    newest = np.arange(NUM_EVENTS) // 5 + 3
    return EventStream.from_columns(
        random.integers(0, newest), random.integers(0, newest), np.arange(NUM_EVENTS) * 60.0
    )


@pytest.mark.parametrize("name", ["own-recency", "popularity", *SMALL])
def test_ranks_are_those_of_a_model_with_room_from_the_start(name: str) -> None:
    log = log_with_new_nodes()
    first_half = cut(log[: NUM_EVENTS // 2].compact(), 20, 25)
    split = cut(log, 40, 50)
    model = registry.build(name.split()[0], **SMALL.get(name, {})).fit(first_half)
    roomy = registry.build(name.split()[0], **SMALL.get(name, {})).fit(first_half)
    if isinstance(roomy, LearnedModel):
        roomy = roomy.extended(log)
    else:
        roomy.fit(cut(log, 20, 25))
    report = evaluate(model, split, with_heuristics=False)
    expected = evaluate(roomy, split, with_heuristics=False)
    # Different orders of sums can exchange targets of almost equal scores.
    assert_allclose(report.ranks, expected.ranks, atol=1)
    assert np.mean(report.ranks == expected.ranks) >= 0.8
    assert model.state.sources == log.sources
    assert_array_equal(evaluate(model, split, with_heuristics=False).ranks, report.ranks)
    # The log of training can be evaluated as before, though the model knows more nodes now.
    again = evaluate(model, first_half, with_heuristics=False)
    other = registry.build(name.split()[0], **SMALL.get(name, {})).fit(first_half)
    before = evaluate(other, first_half, with_heuristics=False)
    assert_allclose(again.ranks, before.ranks, atol=1)
    assert again["MR"] == pytest.approx(before["MR"], abs=0.5)


def test_another_log_is_refused() -> None:
    log = log_with_new_nodes()
    model = registry.build("own-recency").fit(cut(log, 40, 50))
    shorter = cut(log[:30].compact(), 20, 25)
    with pytest.raises(InputError, match="this log does not begin with the 11 sources of the log"):
        evaluate(model, shorter)
    other = EventStream.from_columns(log.source + 1, log.target, log.time)
    with pytest.raises(InputError, match="give that log, or one that continues it"):
        evaluate(model, cut(other, 40, 50))
    one_mode = EventStream.from_columns(log.source, log.target, log.time, kind="one-mode")
    with pytest.raises(InputError, match="of kind one-mode, but the model was fitted on a bip"):
        evaluate(model, cut(one_mode, 40, 50))
