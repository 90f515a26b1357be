"""Events of the same time are revealed in the order of the log, or together."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph import registry
from tclgraph.errors import InputError
from tclgraph.evaluation import protocol
from tclgraph.evaluation.protocol import evaluate
from tclgraph.evaluation.simultaneous import check_simultaneous, rules_for_tables
from tclgraph.evaluation.update import Update
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.models.interface import Model
from tclgraph.testing.streams import KINDS, cut, splits
from tests.evaluation.test_protocol import ConstantModel


def split_of(sources: str, targets: str, times: list[float], cuts: tuple[int, int]) -> Split:
    return cut(EventStream.from_columns(list(sources), list(targets), times), *cuts)


def ranks_of(
    model: str, split: Split, simultaneous: str = "in-order", update: str = "streaming"
) -> list[float]:
    fitted = registry.build(model).fit(split)
    ranks: list[float] = evaluate(
        fitted, split, simultaneous=simultaneous, update=update
    ).ranks.tolist()
    return ranks


def test_file_order_gives_the_second_of_two_equal_events_away() -> None:
    # An order of two pieces of x is two rows. Before it, the source bought x, y and z.
    split = split_of("aaaaaa", "xyzxxy", [0, 1, 2, 3, 3, 4], (2, 3))
    # z is the latest, then y, then x: x has rank 3. After the first row of x, it has rank 1.
    assert ranks_of("own-recency", split) == [3, 1, 3]
    # Before both rows, x has rank 3.
    assert ranks_of("own-recency", split, simultaneous="together") == [3, 3, 3]


def test_history_of_the_same_time_is_revealed_with_the_first_event() -> None:
    # The cut between valid and test goes through the events of time 2.
    split = split_of("aaaaa", "xyzzz", [0, 1, 2, 2, 3], (2, 3))
    assert ranks_of("own-recency", split) == [1, 1]
    assert ranks_of("own-recency", split, simultaneous="together") == [3, 1]
    # A frozen state ends with valid, whatever the times.
    assert ranks_of("own-recency", split, update="frozen=valid") == [1, 1]
    assert ranks_of("own-recency", split, simultaneous="together", update="frozen=valid") == [1, 1]


def test_an_event_is_a_repeat_if_its_pair_is_revealed_before_it() -> None:
    split = split_of("aaaaaa", "xyzzww", [0, 1, 2, 2, 3, 3], (2, 3))
    groups = {
        rule: evaluate(ConstantModel().fit(split), split, simultaneous=rule).groups
        for rule in ("in-order", "together")
    }
    assert groups["in-order"]["repeat"].events == 2  # z after z, w after w
    assert groups["together"]["repeat"].events == 0


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        # Events that are alone at their time are scored one after another.
        ("streaming", "1+1 1+1 3+3 1+1 2+2"),
        ("every=1", "1+1 1+1 3+3 1+1 2+2"),
        # The second block would end within time 5, the third within time 7.
        ("every=2", "2+2 3+3 3+3"),
        ("every=4", "5+5 3+3"),
        ("every=99", "8+8"),
        ("frozen=valid", "8"),
    ],
)
def test_no_block_ends_between_events_of_the_same_time(update: str, expected: str) -> None:
    times: list[float] = [0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 7]
    split = split_of("a" * 11, "xyxyxyxyxyx", times, (2, 3))
    model = ConstantModel().fit(split)
    evaluate(model, split, update=update, simultaneous="together", with_heuristics=False)
    calls = " ".join(model.log).replace("score ", "").replace(" observe ", "+")
    assert calls == f"forget+3 {expected}"


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ("streaming", "score 2 observe 2 observe 2 score 1 observe 1"),
        ("every=1", "score 2 observe 2 observe 2 score 1 observe 1"),
        ("every=3", "score 3 observe 2 observe 3"),
    ],
)
def test_withheld_events_are_observed_with_the_first_step(update: str, expected: str) -> None:
    split = split_of("a" * 6, "xyxyxy", [0, 1, 1, 1, 1, 2], (2, 3))
    model = ConstantModel().fit(split)
    evaluate(model, split, update=update, simultaneous="together", with_heuristics=False)
    assert " ".join(model.log) == f"forget observe 1 {expected}"


def test_many_events_of_the_same_time_are_scored_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "_EVENTS_PER_BLOCK", 2)
    split = split_of("a" * 8, "xyxyxyxy", [0, 1, 2, 3, 3, 3, 3, 3], (2, 3))
    model = ConstantModel().fit(split)
    evaluate(model, split, simultaneous="together", with_heuristics=False)
    assert model.log == ["forget", "observe 3", "score 2", "score 2", "score 1", "observe 5"]


def slow_ranks(model: Model, split: Split, every: int = 1) -> list[float]:
    """Rank each event of test alone, with a model that has observed only earlier times."""
    events, ranks = split.events, []
    candidates = np.unique(events.target)
    first_of_block = split.valid_end
    for number in range(split.valid_end, len(events)):
        is_new_time = events.time[number] > events.time[number - 1]
        if is_new_time and number - first_of_block >= every:
            first_of_block = number
        model.forget()
        model.observe(events.before(events.time[first_of_block]))
        scores = model.score(events.source[[number]], events.time[[number]])[0]
        true = scores[events.target[number]]
        others = scores[candidates]
        ranks.append(float((others > true).sum() + (1 + (others == true).sum()) / 2))
    return ranks


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_together_equals_ranking_each_event_with_earlier_times(
    kind: GraphKind, data: st.DataObject
) -> None:
    split = data.draw(splits(kind=kind))
    every = data.draw(st.integers(1, 9))
    for heuristic in heuristics_for(kind):
        model = heuristic().fit(split)
        report = evaluate(model, split, simultaneous="together")
        assert report.ranks.tolist() == slow_ranks(model, split)
        blocks = evaluate(model, split, update=f"every={every}", simultaneous="together")
        assert blocks.ranks.tolist() == slow_ranks(model, split, every)
        assert (blocks.groups == report.groups) or every > 1


@given(st.data())
def test_the_block_size_does_not_change_a_rank(data: st.DataObject) -> None:
    split = data.draw(splits())
    model = registry.build("own-recency").fit(split)
    expected = evaluate(model, split, simultaneous="together")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "_EVENTS_PER_BLOCK", data.draw(st.integers(1, 5)))
        report = evaluate(model, split, simultaneous="together")
    assert report.ranks.tolist() == expected.ranks.tolist()


@given(st.data())
def test_both_rules_are_the_same_without_simultaneous_events(data: st.DataObject) -> None:
    split = data.draw(splits())
    time = np.arange(len(split.events), dtype=np.float64)
    split = replace(split, events=replace(split.events, time=time))
    report = evaluate(registry.build("own-recency").fit(split), split, simultaneous="both")
    assert report.together is not None
    assert report.groups == report.together.groups
    assert report.ranks.tolist() == report.together.ranks.tolist()


def shuffled_within_times(split: Split, random: np.random.Generator) -> Split:
    """Shuffle the test events of the same time."""
    events = split.events
    order = np.arange(len(events))
    test = order[split.valid_end :]
    order[split.valid_end :] = test[np.lexsort((random.random(len(test)), events.time[test]))]
    shuffled = replace(events, source=events.source[order], target=events.target[order])
    return replace(split, events=shuffled)


@pytest.mark.parametrize("update", ["streaming", "every=3"])
@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_file_order_within_a_time_does_not_change_popularity(
    kind: GraphKind, update: str, data: st.DataObject
) -> None:
    """Counts do not depend on the order of events; the state of other models may."""
    split = data.draw(splits(kind=kind))
    other = shuffled_within_times(split, np.random.default_rng(data.draw(st.integers(0, 99))))
    reports = [
        evaluate(
            registry.build("popularity").fit(variant),
            variant,
            update=update,
            simultaneous="together",
            mask_seen=True,
        )
        for variant in (split, other)
    ]
    assert sorted(reports[0].ranks.tolist()) == sorted(reports[1].ranks.tolist())
    sizes = [report.to_json()["events_by_group"] for report in reports]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_file_order_within_the_last_time_does_not_change_a_heuristic(
    kind: GraphKind, data: st.DataObject
) -> None:
    """No event follows, so it does not matter in which order these are observed."""
    split = data.draw(splits(kind=kind))
    is_last = split.events.time == split.events.time[-1]
    time = np.where(is_last, split.events.time, np.arange(len(split.events)))
    apart = replace(split, events=replace(split.events, time=time))
    other = shuffled_within_times(apart, np.random.default_rng(data.draw(st.integers(0, 99))))
    for heuristic in heuristics_for(kind):
        ranks = [
            evaluate(heuristic().fit(variant), variant, simultaneous="together").ranks
            for variant in (apart, other)
        ]
        assert sorted(ranks[0].tolist()) == sorted(ranks[1].tolist())


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_mask_seen_masks_targets_of_earlier_times(kind: GraphKind, data: st.DataObject) -> None:
    split = data.draw(splits(kind=kind))
    events = split.events
    model = ConstantModel().fit(split)
    report = evaluate(model, split, simultaneous="together", mask_seen=True)
    candidates = set(events.target.tolist())
    expected = []
    for event in range(split.valid_end, len(events)):
        earlier = events.before(events.time[event])
        pairs = set(zip(earlier.source.tolist(), earlier.target.tolist(), strict=True))
        if kind == "one-mode":
            pairs |= {(target, source) for source, target in pairs}
        seen = {target for source, target in pairs if source == events.source[event]}
        expected.append((len(candidates - seen | {int(events.target[event])}) + 1) / 2)
    assert report.ranks.tolist() == expected


def test_a_report_by_both_rules_shows_both() -> None:
    split = split_of("aaaaaa", "xyzxxy", [0, 1, 2, 3, 3, 4], (2, 3))
    model = registry.build("own-recency").fit(split)
    calls: list[tuple[int, int]] = []
    report = evaluate(model, split, simultaneous="both", progress=lambda *call: calls.append(call))
    assert report.together is not None
    assert (report.simultaneous, report.together.simultaneous) == ("in-order", "together")
    assert report["MR"] == pytest.approx(7 / 3)
    assert report.together["MR"] == 3
    text = str(report)
    assert "simultaneous" not in report.rules
    assert report.together.rules.endswith(" | simultaneous events together")
    assert "events of the same time ranked before any of them is revealed:" in text
    assert text.splitlines()[-1].split()[:2] == ["own-recency", "3.00"]
    assert report.to_json()["together"] == report.together.to_json()
    assert "together" not in report.together.to_json()
    assert calls[-1] == (12, 12)

    beside = evaluate(ConstantModel().fit(split), split, simultaneous="both").together
    assert beside is not None
    assert {heuristic.simultaneous for heuristic in beside.heuristics} == {"together"}


def test_tables_show_both_rules_if_many_events_are_simultaneous() -> None:
    streaming = Update.parse("streaming")
    for num_shared, expected in ((1, "in-order"), (2, "both")):
        times = np.arange(20, dtype=np.float64)
        times[1 : 1 + num_shared] = 0
        events = EventStream.from_columns(["a"] * 20, list("xy" * 10), times)
        assert rules_for_tables(events, streaming) == expected
        assert rules_for_tables(events, Update.parse("frozen")) == "in-order"


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(InputError, match="unknown rule for simultaneous events 'apart'"):
        check_simultaneous("apart")
    split = split_of("aaaa", "xyxy", [0, 1, 2, 3], (2, 3))
    with pytest.raises(InputError, match="give in-order, together or both"):
        evaluate(ConstantModel().fit(split), split, simultaneous="apart")
    with pytest.raises(TypeError, match="simultanous"):
        evaluate(ConstantModel().fit(split), split, simultanous="both")  # type: ignore[call-arg]
