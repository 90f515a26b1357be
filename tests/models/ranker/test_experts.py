"""Experts raise the scores of new targets by their formula, and are saved with the ranker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tclgraph as tg
from tclgraph.arrays import ScoreArray
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import validate
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.ranker import trust
from tclgraph.models.ranker.model import Ranker

TINY: dict[str, Any] = {"epochs": 1, "batch_size": 64, "threads": 1, "encoder": None}
TCL = "tcl:epochs=2:width=8:heads=2:levels=2:batch_size=64"


@pytest.fixture(scope="module")
def split() -> Split:
    config = SyntheticConfig(events=600, sources=15, targets=30, seed=2)
    return synthesize(config).split(0.6, 0.2)


@pytest.fixture(scope="module")
def fitted(split: Split) -> Ranker:
    return Ranker(**TINY, experts=f"{TCL}, popularity").fit(split)


@pytest.fixture
def model(fitted: Ranker, split: Split) -> Iterator[Ranker]:
    """Return a ranker that trusts two experts, with the state after the training events."""
    fitted.measured["trust"] = [0.6, 0.3]
    fitted.forget()
    fitted.observe(split.train)
    yield fitted
    fitted.measured["trust"] = [0.0, 0.0]


def slow_scores(model: Ranker, split: Split, event: int) -> ScoreArray:
    """Return the log-probabilities of an event from those without experts, target by target."""
    query = split.events[event : event + 1]
    shares, model.measured["trust"] = model.measured["trust"], [0.0, 0.0]
    alone = model.score(query.source, query.time)[0].astype(np.float64)
    model.measured["trust"] = shares
    experts = [expert.score(query.source, query.time)[0] for expert in model.experts.models]
    past = split.events[:event]
    interacted = set(past.target[past.source == query.source[0]].tolist())
    new = [target for target in range(len(alone)) if target not in interacted]
    raised = {
        target: alone[target]
        + sum(share * float(scores[target]) for share, scores in zip(shares, experts, strict=True))
        for target in new
    }
    total = np.log(sum(np.exp(alone[target]) for target in new))
    raised_total = np.log(sum(np.exp(score) for score in raised.values()))
    expected: ScoreArray = alone.copy()
    for target in new:
        expected[target] = raised[target] - raised_total + total
    return expected


def test_scores_of_new_targets_are_raised_by_the_experts(model: Ranker, split: Split) -> None:
    block = split.valid[:40]
    for number in range(len(block)):
        expected = slow_scores(model, split, split.train_end + number)
        event = block[number : number + 1]
        assert_allclose(model.score(event.source, event.time)[0], expected, atol=2e-5)
        model.observe(event)
    model.forget()
    model.observe(split.train)
    together = model.score_each(block)
    assert_allclose(together[-1], expected, atol=2e-5)


def test_the_trust_is_the_best_on_validation(model: Ranker, split: Split) -> None:
    """The trust in an expert is that with which validation is best, given those before it."""
    chosen: list[float] = []
    for _ in model.experts.models:
        metrics = []
        for value in trust.VALUES:
            others = [0.0] * (len(model.experts.models) - len(chosen) - 1)
            model.measured["trust"] = [*chosen, value, *others]
            metrics.append(validate(model, split.without_test())["MRR"])
        chosen.append(trust.VALUES[int(np.argmax(metrics))])
    assert trust.choose_trust(model, split) == chosen


def test_choosing_the_trust_leaves_the_state_after_training(model: Ranker, split: Split) -> None:
    query = split.valid[:9]
    before = model.score(query.source, query.time)
    trust.choose_trust(model, split)
    assert_array_equal(model.score(query.source, query.time), before)


def test_a_saved_ranker_has_its_experts(model: Ranker, split: Split, tmp_path: Path) -> None:
    model.observe(split.valid[:20])
    model.save(tmp_path)
    loaded = tg.load_model(tmp_path)
    rest = split.events[split.train_end + 20 : split.valid_end]
    assert_array_equal(loaded.score_each(rest), model.score_each(rest))
    assert_array_equal(loaded.embed(), model.embed())


def test_an_answer_about_the_past_does_not_change_the_experts(model: Ranker, split: Split) -> None:
    query = split.valid[:5]
    before = model.score(query.source, query.time)
    model.recommend(0, at=float(split.train.time[100]))
    assert_array_equal(model.score(query.source, query.time), before)


def test_vectors_come_from_the_first_expert_that_has_any(model: Ranker, split: Split) -> None:
    assert_array_equal(model.embed([3, 4]), model.experts.models[0].embed([3, 4]))
    without = Ranker(**TINY, experts="popularity").fit(split)
    with pytest.raises(InputError, match="without an expert that has vectors"):
        without.embed([3])


def test_an_expert_is_given_as_a_model_or_by_name(split: Split) -> None:
    by_name = Ranker(**TINY, experts="tcl:levels=3")
    as_model = Ranker(**TINY, experts=[tg.TCL(levels=3)])
    assert by_name.config == as_model.config


def test_a_learned_expert_has_the_seed_of_the_ranker() -> None:
    (expert,) = Ranker(**TINY, experts="tcl", seed=5).config.experts
    assert (expert["settings"]["seed"], expert["settings"]["threads"]) == (5, 1)


@pytest.mark.parametrize(
    ("experts", "message"),
    [
        ("tlc", "unknown model 'tlc'; did you mean \"tcl\""),
        ("tcl:wdith=8", "unknown setting 'wdith'; did you mean \"width\""),
        (7, "experts=7"),
    ],
)
def test_unknown_experts_are_refused(experts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ranker(experts=experts)


def test_training_resumes_where_it_stopped(split: Split, tmp_path: Path) -> None:
    """An interruption while an expert is trained loses nothing."""
    uninterrupted = Ranker(**TINY, experts=TCL).fit(split, run=tmp_path / "once")
    calls = 0

    def stop(_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Ranker(**TINY, experts=TCL).fit(split, run=tmp_path / "twice", progress=stop)
    resumed = Ranker(**TINY, experts=TCL).fit(split, run=tmp_path / "twice", resume=True)
    assert resumed.measured == uninterrupted.measured
    resumed.measured["trust"] = uninterrupted.measured["trust"] = [0.5]
    assert_array_equal(resumed.score_each(split.valid), uninterrupted.score_each(split.valid))
