"""What every model promises, whatever it learns and however it computes.

A check takes a function that builds an unfitted model and a kind of graph, and raises an
AssertionError if the promise is broken. Small settings make it quick; what is promised does not
depend on size:

    import pytest
    from tclgraph.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS)
    @pytest.mark.parametrize("kind", ["bipartite", "one-mode"])
    def test_contract(check, kind):
        check(lambda: MyModel(width=4), kind)
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph.answers.recommendations import seen_targets
from tclgraph.arrays import ScoreArray
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.evaluation.ranking import rank
from tclgraph.events.identifiers import Identifiers, Key
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.models.interface import Model
from tclgraph.testing.streams import FIRST_TIME, KINDS, cut, splits, with_another_future
from tclgraph.training.trainable import Trainable

Build: TypeAlias = Callable[[], Model]
Check: TypeAlias = Callable[[Build, GraphKind], None]

# A trained model is fitted for every example, a rule is cheap.
_EXAMPLES_TRAINED, _EXAMPLES_RULE = 15, 60


class Clock(NamedTuple):
    """A clock shows the time factor · (time - origin)."""

    factor: float
    origin: float


_CLOCKS = (
    # Drawn times are quarter seconds since 1970, so these clocks are exact, and so are intervals.
    Clock(1000.0, 0.0),
    Clock(2.0**-10, 0.0),
    Clock(1.0, -1e6),
    Clock(1.0, FIRST_TIME),
    # This one rounds.
    Clock(0.001, FIRST_TIME),
)
_CLOCK_TOLERANCE = 1e-6


def check_contract(build: Build, kinds: tuple[GraphKind, ...] = KINDS) -> None:
    """Run all checks on a model."""
    for kind in kinds:
        for check in CHECKS:
            check(build, kind)


def check_future_never_changes_a_score(build: Build, kind: GraphKind) -> None:
    """No score and no vector depends on its own event, on a later one, or on their nodes."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        # From event `now` on everything changes, also which nodes occur and how many; the source
        # and time of the query at `now` stay.
        now = data.draw(st.integers(split.valid_end, len(split.events) - 1))
        random = np.random.default_rng(data.draw(st.integers(0, 99)))
        other = replace(split, events=with_another_future(split.events, now, random))
        model, other_model = _ready_for_test(build, split), _ready_for_test(build, other)
        sources = _shared(split.events.sources, other.events.sources)
        targets = _shared(split.events.targets, other.events.targets)
        vectors = _vectors(model, sources, targets)
        _assert_same(model, vectors, _vectors(other_model, sources, targets))
        rows = slice(0, now - split.valid_end + 1)
        scores = model.score_each(split.test)[rows][:, split.events.targets.ids(targets)]
        other_scores = other_model.score_each(other.test)[rows]
        _assert_same(model, scores, other_scores[:, other.events.targets.ids(targets)])

    _for_examples(build, check)


def check_block_equals_single_events(build: Build, kind: GraphKind) -> None:
    """Scoring a block equals scoring and observing one event at a time, states included."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        block, single = _ready_for_test(build, split), _ready_for_test(build, split)
        expected = Model.score_each(single, split.test)
        _assert_same(block, block.score_each(split.test), expected)
        _assert_same(block, _scores_of_all(block, split), _scores_of_all(single, split))

    _for_examples(build, check)


def check_queries_are_independent(build: Build, kind: GraphKind) -> None:
    """Many queries at once equal one by one, and asking changes nothing."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        model, test = _ready_for_test(build, split), split.test
        together = model.score(test.source, test.time)
        for row in range(len(test)):
            alone = model.score(test.source[row : row + 1], test.time[row : row + 1])
            _assert_same(model, alone[0], together[row])
        assert_array_equal(model.score(test.source, test.time), together)

    _for_examples(build, check)


def check_appending_equals_rebuilding(build: Build, kind: GraphKind) -> None:
    """Observing events one by one equals forgetting and observing all at once."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        appended, rebuilt = build().fit(split), build().fit(split)
        for event in range(split.train_end, len(split.events)):
            appended.observe(split.events[event : event + 1])
        rebuilt.forget()
        rebuilt.observe(split.events)
        _assert_same(appended, _scores_of_all(appended, split), _scores_of_all(rebuilt, split))

    _for_examples(build, check)


def check_the_clock_changes_no_rank(build: Build, kind: GraphKind) -> None:
    """Ranks do not depend on the unit in which a log counts time, or on where it starts to count.

    In one clock the times are rounded, and intervals that were equal no longer are.
    """

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        clock, events = data.draw(st.sampled_from(_CLOCKS)), split.events
        time = clock.factor * (events.time - clock.origin)
        other_split = replace(split, events=replace(events, time=time))
        model, other = _ready_for_test(build, split), _ready_for_test(build, other_split)
        target, scores = split.test.target, model.score_each(split.test).astype(np.float64)
        ranks = rank(other.score_each(other_split.test), target).middle
        for row, other_rank in enumerate(ranks.tolist()):
            tolerance = _CLOCK_TOLERANCE if isinstance(model, Trainable) else 0.0
            _assert_rank(other_rank, scores[row] - scores[row, target[row]], tolerance)

    _for_examples(build, check)


def check_nodes_can_be_added(build: Build, kind: GraphKind) -> None:
    """A model that grows with the stream answers like one that had room from the start.

    The nodes of test are added in one block, event by event, and by ranking the block.
    """

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        known, test = split.without_test(), split.test
        roomy = _ready_for_test(build, split)
        grown, single, ranking = (_ready_for_test(build, known) for _ in range(3))
        grown.observe(test)
        for row in range(len(test)):
            with TemporaryDirectory() as folder:
                single.save(folder)
                single = type(single).load(folder, device="cpu")
            single.observe(test[row : row + 1])
        _assert_same(roomy, ranking.score_each(test), roomy.score_each(test))
        for model in (grown, single, ranking):
            assert model.state.has_vocabulary_of(split.events)
            _assert_same(roomy, _scores_of_all(model, split), _scores_of_all(roomy, split))

    _for_examples(build, check)


def check_new_sources_get_answers(build: Build, kind: GraphKind) -> None:
    """A source that the model has never seen gets an answer; asking changes nothing."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        known = split.without_test()
        roomy, model = _ready_for_test(build, split), _ready_for_test(build, known)
        before, state = _scores_of_all(model, known), model.state
        targets = state.targets.keys.to_list()
        sources = split.events.sources.keys.to_list()
        many = model.recommend_many(sources, candidates=targets, top=len(targets))
        expected = roomy.recommend_many(sources, candidates=targets, top=len(targets))
        for source in sources:
            _assert_same_ranking(roomy, many[source], expected[source])
        ranking = model.recommend(1_000, top=len(targets))
        assert sorted(entry.target for entry in ranking) == sorted(targets)
        assert np.isfinite([entry.score for entry in ranking]).all()
        assert model.state is state
        assert_array_equal(_scores_of_all(model, known), before)

    _for_examples(build, check)


def check_saving_changes_nothing(build: Build, kind: GraphKind) -> None:
    """A loaded model scores, observes and forgets like the one that was saved, bit for bit."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        model = _ready_for_test(build, split)
        with TemporaryDirectory() as folder:
            model.save(Path(folder) / "run")
            loaded = type(model).load(Path(folder) / "run", device="cpu")
        assert_array_equal(loaded.score_each(split.test), model.score_each(split.test))
        loaded.forget()
        loaded.observe(split.train)
        refitted = build().fit(split)
        assert_array_equal(loaded.score_each(split.test), refitted.score_each(split.test))

    _for_examples(build, check)


def check_fitting_is_repeatable(build: Build, kind: GraphKind) -> None:
    """Fitting twice gives the same scores, bit for bit."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        once, twice = (_ready_for_test(build, split).score_each(split.test) for _ in range(2))
        assert_array_equal(once, twice)

    _for_examples(build, check)


def check_events_of_a_time_are_revealed_together(build: Build, kind: GraphKind) -> None:
    """If simultaneous events are revealed together, events know those of earlier times only."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        model = build().fit(split)
        ranks = evaluate(model, split, simultaneous="together", with_heuristics=False).ranks
        candidates = np.unique(split.events.target)
        for row, event_rank in enumerate(ranks.tolist()):
            event = split.test[row : row + 1]
            model.forget()
            model.observe(split.events.before(event.time[0]))
            scores = model.score(event.source, event.time)[0].astype(np.float64)
            ahead = scores[candidates] - scores[event.target[0]]
            _assert_rank(event_rank, ahead, _tolerance(model, scores))

    _for_examples(build, check)


def check_nodes_without_history_are_scored(build: Build, kind: GraphKind) -> None:
    """Every source gets finite scores for every target, also nodes without events."""
    stream = EventStream.from_columns(list("abcd"), list("wxyz"), range(4), kind=kind)
    model = build().fit(cut(stream, 1, 2))
    scores = model.score(np.arange(stream.num_sources), np.full(stream.num_sources, 9.0))
    assert scores.shape == (stream.num_sources, stream.num_targets)
    assert np.isfinite(scores).all()


def check_a_stream_of_one_training_event(build: Build, kind: GraphKind) -> None:
    """One training event is enough to fit, and an empty history to score."""
    stream = EventStream.from_columns(list("aa"), list("bb"), [7.0, 8.0], kind=kind)
    model = build().fit(cut(stream, 1, 2))
    assert np.isfinite(model.score(stream.source, stream.time)).all()
    model.forget()
    assert model.score_each(stream).shape == (2, stream.num_targets)


def check_recommendations_follow_scores(build: Build, kind: GraphKind) -> None:
    """Recommendations are sorted, restricted and filtered as asked, for one source as for many."""

    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        model = _ready_for_test(build, split)
        state = model.state
        sources, targets = state.sources.keys.to_list(), state.targets.keys.to_list()
        many = model.recommend_many(sources, top=len(targets))
        for source in sources:
            ranking = many[source]
            scores = [entry.score for entry in ranking]
            assert scores == sorted(scores, reverse=True)
            assert sorted(entry.target for entry in ranking) == sorted(targets)
            _assert_same_ranking(model, model.recommend(source, top=len(targets)), ranking)
        allowed = targets[: data.draw(st.integers(1, len(targets)))]
        chosen = model.recommend(sources[0], candidates=allowed, top=len(targets))
        assert sorted(entry.target for entry in chosen) == sorted(allowed)
        seen = {targets[target] for target in seen_targets(state, 0).tolist()}
        unseen = model.recommend(sources[0], exclude_seen=True, top=len(targets))
        assert {entry.target for entry in unseen} == set(targets) - seen
        # At the time of the first event nothing is known yet.
        model.recommend(sources[0], at=float(split.events.time[0]))

    _for_examples(build, check)


CHECKS: tuple[Check, ...] = (
    check_future_never_changes_a_score,
    check_block_equals_single_events,
    check_queries_are_independent,
    check_appending_equals_rebuilding,
    check_the_clock_changes_no_rank,
    check_nodes_can_be_added,
    check_new_sources_get_answers,
    check_saving_changes_nothing,
    check_fitting_is_repeatable,
    check_events_of_a_time_are_revealed_together,
    check_nodes_without_history_are_scored,
    check_a_stream_of_one_training_event,
    check_recommendations_follow_scores,
)
"""All checks; each takes a function that builds a model, and a kind of graph."""


def _for_examples(build: Build, check: Callable[[st.DataObject], None]) -> None:
    is_trained = isinstance(build(), Trainable)
    num_examples = _EXAMPLES_TRAINED if is_trained else _EXAMPLES_RULE
    run: Callable[[], Any] = settings(max_examples=num_examples, deadline=None)(
        given(st.data())(check)
    )
    run()


def _ready_for_test(build: Build, split: Split) -> Model:
    model = build().fit(split)
    model.observe(split.valid)
    return model


def _scores_of_all(model: Model, split: Split) -> ScoreArray:
    sources = np.arange(split.events.num_sources)
    return model.score(sources, np.full(len(sources), split.events.time[-1]))


def _shared(ours: Identifiers, theirs: Identifiers) -> list[Key]:
    """Return the keys that two id spaces have in common."""
    known = set(theirs.keys.to_list())
    return [key for key in ours.keys.to_list() if key in known]


def _vectors(model: Model, sources: list[Key], targets: list[Key]) -> ScoreArray:
    """Return the vectors of these nodes, none if the model has no vectors."""
    try:
        return np.concatenate([model.embed(sources), model.embed(targets, side="target")])
    except InputError:
        return np.empty(0)


def _tolerance(model: Model, scores: ScoreArray) -> float:
    return 1e-5 + 1e-4 * float(np.abs(scores).max()) if isinstance(model, Trainable) else 0.0


def _assert_rank(event_rank: float, ahead: ScoreArray, tolerance: float) -> None:
    """Compare a rank with the scores of all candidates minus that of the true target.

    Scores within the tolerance may be in any order. Without a tolerance, equal ones share a rank.
    """
    num_equal = (np.abs(ahead) <= tolerance).sum()
    best = 1 + (ahead > tolerance).sum()
    assert best <= event_rank <= best + num_equal - 1
    assert tolerance or event_rank == best + (num_equal - 1) / 2


def _assert_same(model: Model, scores: ScoreArray, expected: ScoreArray) -> None:
    """Compare exactly; a trained model may take sums in another order."""
    if isinstance(model, Trainable):
        assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    else:
        assert_array_equal(scores, expected)


def _assert_same_ranking(model: Model, ranking: Any, expected: Any) -> None:
    scores = {entry.target: entry.score for entry in ranking}
    expected_scores = {entry.target: entry.score for entry in expected}
    assert scores.keys() == expected_scores.keys()
    order = list(scores)
    _assert_same(
        model,
        np.array([scores[target] for target in order]),
        np.array([expected_scores[target] for target in order]),
    )
