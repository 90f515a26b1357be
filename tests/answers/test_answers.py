"""Answers in the keys of the log, for models with and without vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph import TCL, Ranker, build, evaluate, load_model
from tclgraph.answers.recommendations import Recommendation
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing.streams import KINDS

SMALL: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 16,
    "width": 8,
    "heads": 2,
    "levels": 3,
    "threads": 1,
}


def small_split(kind: GraphKind) -> Split:
    random = np.random.default_rng(0)
    people = [f"p{number}" for number in range(9)]
    return EventStream.from_columns(
        random.choice(people, size=90), random.choice(people, size=90), range(90), kind=kind
    ).split(0.6, 0.2)


def by_hand() -> Split:
    """ann -> tea, jam, tea, tea; bob -> jam, oil: what follows can be worked out on paper."""
    return EventStream.from_columns(
        ["ann", "ann", "bob", "ann", "ann", "bob"],
        ["tea", "jam", "jam", "tea", "tea", "oil"],
        [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
    ).split(0.6, 0.2)


def targets(ranking: list[Recommendation]) -> list[Any]:
    return [entry.target for entry in ranking]


def test_a_heuristic_recommends_by_its_rule() -> None:
    split = by_hand()
    model = build("own-recency").fit(split)
    model.observe(split.valid)
    model.observe(split.test)
    assert targets(model.recommend("ann")) == ["tea", "jam", "oil"]
    assert targets(model.recommend("bob")) == ["oil", "jam", "tea"]
    # Before time 30 ann's last target is jam, and oil has not occurred.
    assert targets(model.recommend("ann", at=30.0)) == ["jam", "tea", "oil"]


def test_candidates_and_seen_targets_restrict_the_ranking() -> None:
    split = by_hand()
    model = build("popularity").fit(split)
    model.observe(split.valid)
    model.observe(split.test)
    assert targets(model.recommend("ann", exclude_seen=True)) == ["oil"]
    assert targets(model.recommend("ann", candidates=["oil", "jam"])) == ["jam", "oil"]
    assert targets(model.recommend("ann", candidates=["oil", "jam"], top=1)) == ["jam"]
    assert model.recommend("ann", candidates=["jam"], exclude_seen=True) == []
    # What ann saw after the time asked for does not count as seen.
    assert targets(model.recommend("ann", exclude_seen=True, at=15.0)) == ["jam", "oil"]
    # A candidate that the model does not know is a target without events.
    assert targets(model.recommend("ann", candidates=["gin", "jam"])) == ["jam", "gin"]
    assert not model.state.targets.has("gin")


def test_in_a_one_mode_graph_seen_goes_both_ways() -> None:
    stream = EventStream.from_columns(list("abc"), list("bcd"), range(3), kind="one-mode")
    model = build("popularity").fit(stream.split(0.4, 0.3))
    model.forget()
    model.observe(model_events := stream.split(0.4, 0.3).events)
    assert len(model_events) == 3
    assert set(targets(model.recommend("b", exclude_seen=True))) == {"b", "d"}


def test_many_sources_at_once() -> None:
    model = build("own-recency").fit(by_hand())
    rankings = model.recommend_many(["bob", "ann"], top=2)
    assert list(rankings) == ["bob", "ann"]
    assert rankings["ann"] == model.recommend("ann", top=2)


def test_a_model_without_vectors_says_so() -> None:
    split = small_split("one-mode")
    ranker = Ranker(encoder=None, epochs=1, threads=1).fit(split)
    assert len(ranker.recommend("p3", top=4)) == 4
    for model, message in (
        (ranker, "without an expert that has vectors"),
        (build("popularity").fit(split), "popularity has no vectors"),
    ):
        with pytest.raises(InputError, match=message):
            model.embed(["p3"])
        with pytest.raises(InputError, match=message):
            model.similar("p3")


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_in_the_keys_of_the_log(kind: GraphKind, tmp_path: Path) -> None:
    split = small_split(kind)
    model = TCL(**SMALL).fit(split)
    evaluate(model, split, with_heuristics=False)  # the state now ends with test
    best = model.recommend("p3", top=4)
    assert len(set(targets(best))) == 4
    assert set(targets(best)) <= set(split.events.targets.keys)
    assert [entry.score for entry in best] == sorted((e.score for e in best), reverse=True)
    model.save(tmp_path / "saved")
    loaded = load_model(tmp_path / "saved")
    assert isinstance(loaded, TCL)
    assert loaded.recommend("p3", top=4) == best
    assert_array_equal(loaded.embed(["p3", "p1"]), model.embed(["p3", "p1"]))


@pytest.mark.parametrize("kind", KINDS)
def test_similar_nodes_have_the_highest_cosine(kind: GraphKind) -> None:
    model = TCL(**SMALL).fit(small_split(kind))
    neighbors = model.similar("p3", side="target", top=3)
    keys = model.state.targets.keys.to_list()
    vectors = model.embed(side="target").astype(np.float64)
    own = vectors[keys.index("p3")]
    cosine = {
        key: float(vector @ own / np.linalg.norm(vector) / np.linalg.norm(own))
        for key, vector in zip(keys, vectors, strict=True)
        if key != "p3"
    }
    expected = sorted(cosine, key=lambda key: -cosine[key])[:3]
    assert [neighbor.key for neighbor in neighbors] == expected
    for neighbor in neighbors:
        assert neighbor.similarity == pytest.approx(cosine[str(neighbor.key)])
    assert len(model.similar("p3", top=99)) == len(model.state.sources) - 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_at_a_time_is_that_of_the_events_before_it(kind: GraphKind) -> None:
    split = small_split(kind)
    model = TCL(**SMALL).fit(split)
    then = model.embed(side="target")
    now = float(split.events.time[split.train_end])
    model.observe(split.valid)
    model.observe(split.test)
    assert_allclose(model.embed(side="target", at=now), then, rtol=1e-4, atol=1e-6)
    assert np.abs(model.embed(side="target") - then).max() > 1e-3


@pytest.mark.parametrize(("kind", "sides"), [("bipartite", 2), ("one-mode", 1)])
def test_all_vectors_as_a_table(kind: GraphKind, sides: int) -> None:
    model = TCL(**SMALL).fit(small_split(kind))
    table = model.embeddings()
    assert table.schema == {
        "side": pl.String(),
        "key": pl.String(),
        "vector": pl.Array(pl.Float32, 8),
    }
    assert len(table) == 9 * sides
    assert set(table["side"]) == ({"both"} if sides == 1 else {"source", "target"})
    if sides == 1:
        row = table.row(by_predicate=pl.col("key") == "p3", named=True)
        assert_array_equal(np.array(row["vector"], np.float32), model.embed(["p3"])[0])


@pytest.mark.parametrize("name", ["tcl", "ranker", "popularity"])
def test_a_model_that_was_not_fitted_says_so(name: str) -> None:
    split = small_split("one-mode")
    for ask in (
        lambda model: model.recommend("p1"),
        lambda model: model.embed(["p1"]),
        lambda model: model.observe(split.train),
        lambda model: evaluate(model, split, with_heuristics=False),
        lambda model: model.score(np.array([0]), np.array([0.0])),
        lambda model: model.save("nowhere"),
    ):
        with pytest.raises(InputError, match="this model is not fitted yet"):
            ask(build(name))


def test_events_of_other_nodes_are_refused() -> None:
    model = TCL(**SMALL).fit(small_split("one-mode"))
    other = small_split("bipartite")
    with pytest.raises(InputError, match="these events are of kind bipartite, but the model was"):
        model.observe(other.train)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [None, 40.5])
def test_a_new_node_is_a_node_without_events(kind: GraphKind, at: float | None) -> None:
    split = small_split(kind)
    model = TCL(**SMALL).fit(split)
    model.observe(split.valid)
    state = model.state
    roomy = model.extended(split.events)
    roomy.add_nodes(["new", "p1"], ["new", "newer"])
    roomy.observe(split.events[: split.valid_end])
    known = state.targets.keys.to_list()
    expected = dict(roomy.recommend("new", at=at, candidates=known, top=99))
    ranking = dict(model.recommend("new", at=at, top=99))
    assert ranking.keys() == expected.keys()
    assert_allclose([ranking[key] for key in known], [expected[key] for key in known], rtol=1e-5)
    many = model.recommend_many(["p1", "new"], at=at, candidates=["newer", "p2"])
    assert {source: len(targets) for source, targets in many.items()} == {"p1": 2, "new": 2}
    for side, keys in (("source", ["new", "p1"]), ("target", ["p2", "newer"])):
        ours = model.embed(keys, side=side, at=at)  # type: ignore[arg-type]
        assert_allclose(ours, roomy.embed(keys, side=side, at=at), rtol=1e-4, atol=1e-6)  # type: ignore[arg-type]
    similar = model.similar("new", top=99, at=at)
    assert sorted(node.key for node in similar) == sorted(state.sources.keys)
    assert model.state is state


def test_keys_of_another_type() -> None:
    integers = EventStream.from_columns([1, 2] * 9, [3, 4, 5] * 6, range(18)).split(0.6, 0.2)
    model = build("popularity").fit(integers)
    assert len(model.recommend("7")) == 3
    with pytest.raises(InputError, match="the key 'bob' is text, but those of the log that"):
        model.recommend("bob")
    with pytest.raises(InputError, match="key 1: the key is empty"):
        model.recommend("")
    model.observe(EventStream.from_columns(["2", "9"], ["03", "x"], [18.0, 19.0])[:0])
    with pytest.raises(InputError, match="the key '03' is text"):
        model.observe(EventStream.from_columns(["2", "9"], ["03", "x"], [18.0, 19.0]))
    text = EventStream.from_columns(["a", "1"] * 9, [3, 4, 5] * 6, range(18)).split(0.6, 0.2)
    model = build("popularity").fit(text)
    model.observe(EventStream.from_columns([1, 8], [3, 3], [18.0, 19.0]))
    assert model.state.sources.keys.to_list() == ["a", "1", "8"]
