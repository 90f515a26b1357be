"""What every model promises, checked for every model there is, on both kinds of graph.

A new model joins by being in the registry.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph import registry
from tclgraph.arrays import ScoreArray
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.models.interface import Model
from tests.streams import KINDS, as_split, splits

# Small enough to be fitted hundreds of times; what is promised does not depend on size.
TINY = {"epochs": 1, "batch_size": 8, "width": 4, "threads": 1}
TWO_HEADS = {**TINY, "heads": 2}
SMALL: dict[str, dict[str, Any]] = {
    "tcl": {**TWO_HEADS, "levels": 3},
    "tcl paper": {**TWO_HEADS, "levels": 3, "preset": "paper"},
    "graphsage": TWO_HEADS,
    "graphsage gcn": {**TINY, "aggregator": "gcn"},
    "graphsage mean": {**TINY, "aggregator": "mean"},
    "graphsage max": {**TINY, "aggregator": "max"},
    "graphsage lstm": {**TINY, "aggregator": "lstm"},
    "graphsage gat": {**TWO_HEADS, "aggregator": "gat"},
    "ctdne": {**TINY, "walks_per_node": 2, "walk_length": 6, "window": 2},
    "dyngem": {**TINY, "hidden_widths": (6, 5), "snapshots": 2},
    "dysat": {**TWO_HEADS, "snapshots": 2},
    "deepcoevolve": TINY,
    "jodie": TINY,
    "tgat": {**TWO_HEADS, "neighbors": 3},
    "tgn": {**TWO_HEADS, "neighbors": 3},
    "tdig-mpnn": {**TINY, "levels": 3},
}
"""Settings of learned models; a model's name, and what is told of it after a space."""


def enough(name: str) -> settings:
    """Examples of streams: fewer where a model has to be fitted for each."""
    return settings(max_examples=15 if name in SMALL else 60)


def cases() -> Iterator[tuple[str, GraphKind]]:
    one_mode_only = set(heuristics_for("one-mode")) - set(heuristics_for("bipartite"))
    for name in {**dict.fromkeys(registry.names()), **SMALL}:
        for graph in KINDS:
            if graph == "one-mode" or name not in {heuristic.name for heuristic in one_mode_only}:
                yield name, graph


every_model = pytest.mark.parametrize(("name", "kind"), list(cases()))


def fitted(name: str, split: Split) -> Model:
    return registry.build(name.split()[0], **SMALL.get(name, {})).fit(split)


def ready_for_test(name: str, split: Split) -> Model:
    model = fitted(name, split)
    model.observe(split.valid)
    return model


def assert_same(name: str, ours: ScoreArray, theirs: ScoreArray) -> None:
    """Exact for rules; a learned model's sums may be taken in another order."""
    if name in SMALL:
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    else:
        assert_array_equal(ours, theirs)


@every_model
def test_the_future_never_changes_a_score(name: str, kind: GraphKind) -> None:
    @enough(name)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        events = split.events
        # From event `now` on, everything happens otherwise; the query at `now` itself stays.
        now = data.draw(st.integers(split.valid_end, len(events) - 1))
        random = np.random.default_rng(data.draw(st.integers(0, 99)))
        num_changed = len(events) - now
        source, target, time = events.source.copy(), events.target.copy(), events.time.copy()
        target[now:] = random.integers(events.num_targets, size=num_changed)
        source[now + 1 :] = random.integers(events.num_sources, size=num_changed - 1)
        time[now + 1 :] += np.sort(random.uniform(0, 100, size=num_changed - 1))
        other = replace(split, events=replace(events, source=source, target=target, time=time))

        rows = slice(0, now - split.valid_end + 1)
        ours = ready_for_test(name, split).score_each(split.test)[rows]
        theirs = ready_for_test(name, other).score_each(other.test)[rows]
        assert_same(name, ours, theirs)

    check()


@every_model
def test_a_block_equals_one_event_at_a_time(name: str, kind: GraphKind) -> None:
    @enough(name)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        block = ready_for_test(name, split)
        single = ready_for_test(name, split)
        assert_same(name, block.score_each(split.test), Model.score_each(single, split.test))
        # And both stand where the other does afterwards.
        sources = np.arange(split.events.num_sources)
        now = np.full(len(sources), split.events.time[-1])
        assert_same(name, block.score(sources, now), single.score(sources, now))

    check()


@every_model
def test_many_queries_equal_one_by_one_and_change_nothing(name: str, kind: GraphKind) -> None:
    @enough(name)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        model = ready_for_test(name, split)
        test = split.test
        together = model.score(test.source, test.time)
        for row in range(len(test)):
            alone = model.score(test.source[row : row + 1], test.time[row : row + 1])
            assert_same(name, alone[0], together[row])
        assert_array_equal(model.score(test.source, test.time), together)

    check()


@every_model
def test_appending_equals_rebuilding(name: str, kind: GraphKind) -> None:
    @enough(name)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        appended = fitted(name, split)
        for event in range(split.train_end, len(split.events)):
            appended.observe(split.events[event : event + 1])
        rebuilt = fitted(name, split)
        rebuilt.forget()
        rebuilt.observe(split.events)
        sources = np.arange(split.events.num_sources)
        now = np.full(len(sources), split.events.time[-1])
        assert_same(name, appended.score(sources, now), rebuilt.score(sources, now))

    check()


@every_model
def test_a_saved_model_goes_on_as_if_nothing_had_happened(name: str, kind: GraphKind) -> None:
    @enough(name)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        model = ready_for_test(name, split)
        with TemporaryDirectory() as folder:
            model.save(Path(folder) / "run")
            loaded = registry.load_model(Path(folder) / "run")
        assert type(loaded) is type(model)
        assert_array_equal(loaded.score_each(split.test), model.score_each(split.test))
        loaded.forget()
        loaded.observe(split.train)
        refitted = fitted(name, split)
        assert_array_equal(loaded.score_each(split.test), refitted.score_each(split.test))

    check()


@every_model
def test_the_same_fit_twice_gives_the_same_scores(name: str, kind: GraphKind) -> None:
    @enough(name)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        split = data.draw(splits(kind=kind))
        once, twice = (ready_for_test(name, split).score_each(split.test) for _ in range(2))
        assert_array_equal(once, twice)

    check()


@every_model
def test_nodes_without_a_history_are_scored(name: str, kind: GraphKind) -> None:
    stream = EventStream.from_columns(list("abcd"), list("wxyz"), range(4), kind=kind)
    model = fitted(name, as_split(stream, 1, 2))
    scores = model.score(np.arange(stream.num_sources), np.full(stream.num_sources, 9.0))
    assert scores.shape == (stream.num_sources, stream.num_targets)
    assert np.isfinite(scores).all()


@every_model
def test_a_stream_of_one_event(name: str, kind: GraphKind) -> None:
    stream = EventStream.from_columns(["a"], ["b"], [7.0], kind=kind)
    if name in SMALL:
        with pytest.raises(InputError, match="validation"):
            fitted(name, as_split(stream, 1, 1))
        pair = EventStream.from_columns(list("aa"), list("bb"), [7.0, 8.0], kind=kind)
        model = fitted(name, as_split(pair, 1, 2))
        stream = pair[:1]
    else:
        model = fitted(name, as_split(stream, 1, 1))
    scores = model.score(stream.source, stream.time)
    assert np.isfinite(scores).all()
    if name not in SMALL:
        assert int(scores[0].argmax()) == int(stream.target[0])
    model.forget()
    assert model.score_each(stream).shape == (1, stream.num_targets)
