"""Events are ranked among all targets, or among those that have occurred before."""

from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.arrays import ScoreArray
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import KINDS, cut, splits
from tests.evaluation.recording import RecordingModel, revealed_before, seen_by
from tests.evaluation.test_protocol import ConstantModel


def slow_rank(scores: ScoreArray, true: int, others: Collection[int]) -> float:
    better = sum(scores[other] > scores[true] for other in others)
    equal = sum(scores[other] == scores[true] for other in others)
    return float(1 + better + equal / 2)


def known_targets(events: EventStream) -> set[int]:
    nodes = set(events.target.tolist())
    return nodes | set(events.source.tolist()) if events.kind == "one-mode" else nodes


def slow_ranks(
    rows: list[ScoreArray], split: Split, *, simultaneous: str, mask_seen: bool
) -> tuple[list[float], int]:
    """Return the rank of every test event among known targets, and the first occurrences."""
    ranks, first_occurrences = [], 0
    for event, scores in enumerate(rows):
        past = revealed_before(split, event, simultaneous)
        source, true = int(split.test.source[event]), int(split.test.target[event])
        known = known_targets(past)
        ranked = known - seen_by(source, past) if mask_seen else known
        if true in known:
            ranks.append(slow_rank(scores, true, ranked - {true}))
        else:
            first_occurrences += 1
            ranks.append(1.0 + len(ranked))
    return ranks, first_occurrences


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_ranks_among_known_targets_agree_with_a_slow_loop(kind: str, data: st.DataObject) -> None:
    split = data.draw(splits(kind=kind))  # type: ignore[arg-type]
    simultaneous = data.draw(st.sampled_from(["in-order", "together"]))
    mask_seen = data.draw(st.booleans())
    update = data.draw(st.sampled_from(["streaming", "every=3", "frozen", "frozen=valid"]))
    model = RecordingModel().fit(split)
    report = evaluate(
        model,
        split,
        candidates="known",
        update=update,
        simultaneous=simultaneous,
        mask_seen=mask_seen,
    )
    ranks, first_occurrences = slow_ranks(
        model.rows, split, simultaneous=simultaneous, mask_seen=mask_seen
    )
    assert report.ranks.tolist() == ranks
    assert report.first_occurrences == first_occurrences
    last = revealed_before(split, len(ranks) - 1, simultaneous)
    assert report.targets == len(known_targets(last))


def test_a_target_is_a_candidate_from_its_first_event_on() -> None:
    # train a→x | valid b→x | test a→y (first)  a→y  b→z (first)  b→x
    stream = EventStream.from_columns(list("abaabb"), list("xxyyzx"), range(6))
    split = cut(stream, 1, 2)
    model = ConstantModel().fit(split)
    report = evaluate(model, split, candidates="known")
    assert report.ranks.tolist() == [2, 1.5, 3, 2]
    assert (report.first_occurrences, report.targets) == (2, 3)
    assert evaluate(model, split).ranks.tolist() == [2, 2, 2, 2]
    # What a model observes does not change the candidates.
    frozen = evaluate(model, split, candidates="known", update="frozen")
    assert frozen.ranks.tolist() == report.ranks.tolist()


def test_in_a_one_mode_graph_a_source_is_known_too() -> None:
    # c is never a target, and b has been a source only when it becomes a target.
    stream = EventStream.from_columns(list("abca"), list("aaab"), range(4), kind="one-mode")
    split = cut(stream, 1, 3)
    report = evaluate(ConstantModel().fit(split), split, candidates="known")
    assert report.ranks.tolist() == [2]
    assert (report.first_occurrences, report.targets) == (0, 3)


def test_simultaneous_first_occurrences_are_all_counted_if_revealed_together() -> None:
    stream = EventStream.from_columns(list("abab"), list("xxyy"), [0, 1, 2, 2])
    split = cut(stream, 1, 2)
    model = ConstantModel().fit(split)
    both = evaluate(model, split, candidates="known", simultaneous="both")
    assert both.together is not None
    assert (both.first_occurrences, both.together.first_occurrences) == (1, 2)
    assert both.together.ranks.tolist() == [2, 2]


def test_heuristics_are_ranked_by_the_same_rule() -> None:
    stream = EventStream.from_columns(list("abaabb"), list("xxyyzx"), range(6))
    split = cut(stream, 1, 2)
    report = evaluate(ConstantModel().fit(split), split, candidates="known")
    assert len(report.heuristics) > 0
    for heuristic in report.heuristics:
        assert (heuristic.candidates, heuristic.first_occurrences) == ("known", 2)


def test_the_report_counts_first_occurrences() -> None:
    stream = EventStream.from_columns(list("abaabb"), list("xxyyzx"), range(6))
    split = cut(stream, 1, 2)
    model = ConstantModel().fit(split)
    report = evaluate(model, split, candidates="known", with_heuristics=False)
    document = report.to_json()
    assert document["candidates"] == "known"
    assert document["first_occurrences"] == {"events": 2, "percent": 50.0}
    text = str(report)
    assert "4 events, each ranked among at most 3 known targets" in text
    assert "| known candidates" in report.rules
    assert "the true target of 2 events (50.00 %) has not occurred before" in text
    among_all = evaluate(model, split, with_heuristics=False)
    assert among_all.first_occurrences is None
    assert not {"candidates", "first_occurrences"} & set(among_all.to_json())
    assert "first occurrences" not in str(among_all)


def test_nan_scores_of_known_targets_get_the_last_rank() -> None:
    stream = EventStream.from_columns(list("abaabb"), list("xxyyzx"), range(6))
    split = cut(stream, 1, 2)
    report = evaluate(ConstantModel(float("nan")).fit(split), split, candidates="known")
    assert report.ranks.tolist() == [2, 2, 3, 3]
    assert report.nan_events == 4


def test_unknown_rules_are_refused() -> None:
    stream = EventStream.from_columns(np.arange(20) % 3, np.arange(20) % 4, range(20))
    split = stream.split(0.70, 0.15, by="quantiles")
    model = ConstantModel().fit(split)
    with pytest.raises(InputError, match="unknown candidates 'seen'; known are: all, known"):
        evaluate(model, split, candidates="seen")
    with pytest.raises(InputError, match="has its own candidates; leave out --candidates"):
        evaluate(model, split, candidates="known", protocol="tgb")
