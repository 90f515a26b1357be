"""Heuristics against their definitions, and against figures known from elsewhere."""

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


def latest(history: Sequence[Event], is_meant: Sequence[bool]) -> int:
    """Position (from 1) of the last event that is meant; 0 if none is."""
    return max((n + 1 for n in range(len(history)) if is_meant[n]), default=0)


def slow_key(
    name: str, history: Sequence[Event], source: int, candidate: int, time: float, window: float
) -> tuple[float, float]:
    """What a heuristic sorts by, in the words of its description: first this, then that."""
    acted_upon = latest(history, [v == candidate for _, v, _ in history])
    mine = [u == source and v == candidate for u, v, _ in history]
    either_way = [{u, v} == {source, candidate} for u, v, _ in history]
    match name:
        case "popularity":
            return (0, sum(v == candidate for _, v, _ in history))
        case "global-recency":
            return (0, acted_upon)
        case "own-recency":
            return (latest(history, mine), acted_upon)
        case "own-frequency":
            return (sum(mine), acted_upon)
        case "last-contact":
            active = latest(history, [candidate in (u, v) for u, v, _ in history])
            return (latest(history, either_way), active)
        case "edgebank":
            return (any(mine), acted_upon)
        case "edgebank-window":
            met = (at for (_, _, at), is_mine in zip(history, mine, strict=True) if is_mine)
            return (any(time - at <= window for at in met), acted_upon)
    raise AssertionError(name)


def places(values: Sequence[Any]) -> list[int]:
    """Dense ranks: equal where equal, in the same order."""
    order = {value: place for place, value in enumerate(sorted(set(values)))}
    return [order[value] for value in values]


@pytest.mark.parametrize("name", [heuristic.name for heuristic in heuristics_for("one-mode")])
@given(st.data())
def test_scores_order_candidates_as_described(name: str, data: st.DataObject) -> None:
    kind: GraphKind | None = "one-mode" if name == "last-contact" else None
    split = data.draw(splits(kind=kind))
    events = split.events
    train_times = split.train.time
    window = float(train_times[-1] - train_times[int(0.85 * len(train_times))])
    model = registry.build(name).fit(split)
    scores = model.score_each(events[split.train_end :])
    everything = list(
        zip(events.source.tolist(), events.target.tolist(), events.time.tolist(), strict=True)
    )
    for row, event in enumerate(range(split.train_end, len(events))):
        source, _, time = everything[event]
        keys = [
            slow_key(name, everything[:event], source, candidate, time, window)
            for candidate in range(events.num_targets)
        ]
        assert places(scores[row].tolist()) == places(keys)


def test_own_recency_by_hand() -> None:
    #        0    1    2    3    4
    # a: tea  jam       tea        → tea, jam; then by who was acted upon last: pie, egg
    # b:           egg       pie
    stream = EventStream.from_columns(
        list("aabab") + list("aa"),
        ["tea", "jam", "egg", "tea", "pie", "pie", "ham"],
        range(7),
    )
    model = registry.build("own-recency").fit(as_split(stream, 5, 6))
    scores = model.score(np.array([0]), np.array([9.0]))[0]
    order = [stream.targets.key(int(one)) for one in np.argsort(-scores)]
    assert order == ["tea", "jam", "pie", "egg", "ham"]


def test_last_contact_needs_one_mode() -> None:
    stream = EventStream.from_columns(list("abab"), list("xyyx"), range(4))
    with pytest.raises(InputError, match="pass --kind one-mode"):
        registry.build("last-contact").fit(as_split(stream, 2, 3))


def rounded(name: str, split: Split, update: str = "streaming") -> dict[str, float]:
    report = evaluate(registry.build(name).fit(split), split, update=update)
    return {metric: round(report[metric], 4 if metric == "MRR" else 2) for metric in FIGURES}


FIGURES = ("MR", "Hit@10", "MRR")


def test_collegemsg_with_two_id_spaces() -> None:
    split = collegemsg("bipartite")
    assert rounded("popularity", split) == {"MR": 244.50, "Hit@10": 2.31, "MRR": 0.0153}
    assert rounded("own-recency", split) == {"MR": 64.88, "Hit@10": 68.37, "MRR": 0.5116}
    frozen = rounded("own-recency", split, "frozen")
    assert (round(frozen["MR"], 1), round(frozen["Hit@10"], 1)) == (317.9, 13.9)


def test_collegemsg_with_one_id_space() -> None:
    assert rounded("last-contact", collegemsg()) == {"MR": 49.87, "Hit@10": 78.48, "MRR": 0.6614}


def test_wikipedia() -> None:
    split = wikipedia().split(0.7, 0.15)
    found = rounded("own-recency", split)
    assert (found["MR"], found["Hit@10"]) == (26.95, 88.58)
    found = rounded("own-recency", split, "every=512")
    assert round(found["MR"], 1) == 57.2
    assert round(found["MRR"], 3) == 0.702
    assert round(found["Hit@10"], 1) == 81.6


def test_the_floors_are_these() -> None:
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
