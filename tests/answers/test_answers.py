"""What a user meets: keys in and out, tables, and clear words where something is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph import TCL, evaluate, load_model
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tests.streams import KINDS

SMALL: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 16,
    "width": 8,
    "heads": 2,
    "levels": 3,
    "threads": 1,
}


def test_a_model_without_embeddings_has_no_vectors() -> None:
    model = TCL(**SMALL, embeddings=False).fit(small_split("one-mode"))
    assert len(model.recommend("p3", top=4)) == 4
    with pytest.raises(InputError, match="fitted with embeddings=False and has no vectors"):
        model.embed(["p3"])


def small_split(kind: GraphKind) -> Split:
    random = np.random.default_rng(0)
    people = [f"p{number}" for number in range(9)]
    return EventStream.from_columns(
        random.choice(people, size=90), random.choice(people, size=90), range(90), kind=kind
    ).split(0.6, 0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_in_the_words_of_the_log(kind: GraphKind, tmp_path: Path) -> None:
    split = small_split(kind)
    model = TCL(**SMALL).fit(split)
    evaluate(model, split, with_heuristics=False)  # the state now ends with test
    best = model.recommend("p3", top=4)
    assert len({one.target for one in best}) == 4
    assert {one.target for one in best} <= set(split.events.targets.keys)
    assert [one.score for one in best] == sorted((one.score for one in best), reverse=True)
    model.save(tmp_path / "saved")
    loaded = load_model(tmp_path / "saved")
    assert isinstance(loaded, TCL)
    assert loaded.recommend("p3", top=4) == best
    assert_array_equal(loaded.embed(["p3", "p1"]), model.embed(["p3", "p1"]))


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
    row = table.row(by_predicate=pl.col("key") == "p3", named=True) if sides == 1 else None
    if row is not None:
        assert_array_equal(np.array(row["vector"], np.float32), model.embed(["p3"])[0])


def test_a_model_that_was_not_fitted_says_so() -> None:
    split = small_split("one-mode")
    for ask in (
        lambda model: model.recommend("p1"),
        lambda model: model.embed(["p1"]),
        lambda model: model.observe(split.train),
        lambda model: evaluate(model, split, with_heuristics=False),
        lambda model: model.save("nowhere"),
    ):
        with pytest.raises(InputError, match="this model has learned nothing yet"):
            ask(TCL(**SMALL))


def test_events_of_other_nodes_are_refused() -> None:
    model = TCL(**SMALL).fit(small_split("one-mode"))
    other = small_split("bipartite")
    with pytest.raises(InputError, match="other nodes than those the model was fitted on"):
        model.observe(other.train)
    with pytest.raises(InputError, match="unknown key 'p99'"):
        model.recommend("p99")
