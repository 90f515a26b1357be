"""Heuristics compared with their definitions and with known figures."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph import registry
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.heuristics.rules import heuristics_for
from tests.streams import as_split, collegemsg, splits, wikipedia

Event = tuple[int, int, float]


def latest(is_selected: Sequence[bool]) -> int:
    """Return the position, counted from 1, of the last selected event; 0 if there is none."""
    return max((event + 1 for event, selected in enumerate(is_selected) if selected), default=0)


def slow_key(
    name: str, history: Sequence[Event], source: int, candidate: int, time: float, window: float
) -> tuple[float, float]:
    """Return the pair key and the target key of a candidate, by the heuristic's definition."""
    last_as_target = latest([v == candidate for _, v, _ in history])
    is_pair = [u == source and v == candidate for u, v, _ in history]
    either_way = [{u, v} == {source, candidate} for u, v, _ in history]
    match name:
        case "popularity":
            return (0, sum(v == candidate for _, v, _ in history))
        case "global-recency":
            return (0, last_as_target)
        case "own-recency":
            return (latest(is_pair), last_as_target)
        case "own-frequency":
            return (sum(is_pair), last_as_target)
        case "last-contact":
            last_as_any = latest([candidate in (u, v) for u, v, _ in history])
            return (latest(either_way), last_as_any)
        case "edgebank":
            return (any(is_pair), last_as_target)
        case "edgebank-window":
            is_recent = [time - event_time <= window for _, _, event_time in history]
            return (any(map(operator.and_, is_pair, is_recent)), last_as_target)
    raise AssertionError(name)


def dense_ranks(values: Sequence[Any]) -> list[int]:
    """Return the rank of each value; equal values have equal ranks."""
    order = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return [order[value] for value in values]


@pytest.mark.parametrize("name", [heuristic.name for heuristic in heuristics_for("one-mode")])
@given(st.data())
def test_scores_sort_candidates_by_the_defined_keys(name: str, data: st.DataObject) -> None:
    kind: GraphKind | None = "one-mode" if name == "last-contact" else None
    split = data.draw(splits(kind=kind))
    events = split.events
    train_times = split.train.time
    window = float(train_times[-1] - train_times[int(0.85 * len(train_times))])
    model = registry.build(name).fit(split)
    scores = model.score_each(events[split.train_end :])
    rows = list(
        zip(events.source.tolist(), events.target.tolist(), events.time.tolist(), strict=True)
    )
    for row, event in enumerate(range(split.train_end, len(events))):
        source, _, time = rows[event]
        keys = [
            slow_key(name, rows[:event], source, candidate, time, window)
            for candidate in range(events.num_targets)
        ]
        assert dense_ranks(scores[row].tolist()) == dense_ranks(keys)


def test_own_recency_by_hand() -> None:
    # time  0    1    2    3    4
    # a:    tea  jam       tea         a's own targets, latest first: tea, jam;
    # b:              egg       pie    then the others, latest first: pie, egg
    stream = EventStream.from_columns(
        list("aabab") + list("aa"),
        ["tea", "jam", "egg", "tea", "pie", "pie", "ham"],
        range(7),
    )
    model = registry.build("own-recency").fit(as_split(stream, 5, 6))
    scores = model.score(np.array([0]), np.array([9.0]))[0]
    order = [stream.targets.key(int(target)) for target in np.argsort(-scores)]
    assert order == ["tea", "jam", "pie", "egg", "ham"]


def test_last_contact_refuses_a_bipartite_graph() -> None:
    stream = EventStream.from_columns(list("abab"), list("xyyx"), range(4))
    with pytest.raises(InputError, match="pass --kind one-mode"):
        registry.build("last-contact").fit(as_split(stream, 2, 3))


def rounded(name: str, split: Split, update: str = "streaming") -> dict[str, float]:
    report = evaluate(registry.build(name).fit(split), split, update=update)
    return {metric: round(report[metric], 4 if metric == "MRR" else 2) for metric in FIGURES}


FIGURES = ("MR", "Hit@10", "MRR")


def test_figures_on_bipartite_collegemsg() -> None:
    split = collegemsg("bipartite")
    assert rounded("popularity", split) == {"MR": 244.50, "Hit@10": 2.31, "MRR": 0.0153}
    assert rounded("own-recency", split) == {"MR": 64.88, "Hit@10": 68.37, "MRR": 0.5116}
    frozen = rounded("own-recency", split, "frozen")
    assert (round(frozen["MR"], 1), round(frozen["Hit@10"], 1)) == (317.9, 13.9)


def test_figures_on_one_mode_collegemsg() -> None:
    assert rounded("last-contact", collegemsg()) == {"MR": 49.87, "Hit@10": 78.48, "MRR": 0.6614}


def test_figures_on_wikipedia() -> None:
    split = wikipedia().split(0.7, 0.15)
    streaming = rounded("own-recency", split)
    assert (streaming["MR"], streaming["Hit@10"]) == (26.95, 88.58)
    blocks = rounded("own-recency", split, "every=512")
    assert round(blocks["MR"], 1) == 57.2
    assert round(blocks["MRR"], 3) == 0.702
    assert round(blocks["Hit@10"], 1) == 81.6


def test_the_heuristics_of_each_graph_kind() -> None:
    assert [heuristic.name for heuristic in heuristics_for("one-mode")] == [
        "popularity",
        "global-recency",
        "own-recency",
        "own-frequency",
        "last-contact",
        "edgebank",
        "edgebank-window",
    ]
    assert "last-contact" not in [heuristic.name for heuristic in heuristics_for("bipartite")]
