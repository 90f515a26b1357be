from typing import Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph import registry
from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.evaluation import protocol
from tclgraph.evaluation.protocol import evaluate, validate
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.models.interface import Model
from tclgraph.testing.streams import KINDS, cut, splits
from tests.streams import collegemsg


class ConstantModel(Model):
    """Gives every target the same score and records the calls."""

    name = "constant"

    def __init__(self, value: float = 0.0) -> None:
        self.value = value
        self.log: list[str] = []

    def fit(self, split: Split) -> Self:
        self.start_state(split.events)
        self.log.clear()
        return self

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.log.append(f"score {len(source)}")
        return np.full((len(source), self.state.space.num_targets), self.value)

    def update_state(self, events: EventStream) -> None:
        self.log.append(f"observe {len(events)}")

    def reset_state(self) -> None:
        self.log.append("forget")


class NarrowModel(ConstantModel):
    """Leaves out the last target."""

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        return super().score(source, time)[:, :-1]


def small_split() -> Split:
    stream = EventStream.from_columns(list("ababab"), list("xyzxyx"), range(6))
    return cut(stream, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_a_constant_score_gets_the_middle_rank(kind: str, data: st.DataObject) -> None:
    split = data.draw(splits(kind=kind))  # type: ignore[arg-type]
    report = evaluate(ConstantModel(7.0).fit(split), split)
    num_targets = len(set(split.events.target.tolist()))
    assert report.targets == num_targets
    assert report["MR"] == (num_targets + 1) / 2
    assert report.tie_spread == num_targets - 1


def test_a_constant_score_gets_the_middle_rank_on_collegemsg() -> None:
    split = collegemsg()
    assert evaluate(ConstantModel().fit(split), split)["MR"] == (1_352 + 1) / 2


def test_validation_does_not_rank_targets_that_occur_only_in_test() -> None:
    stream = EventStream.from_columns(list("ababab"), list("xyxzyx"), range(6))
    split = cut(stream, 2, 3)  # z occurs in test only
    assert evaluate(ConstantModel().fit(split), split, part="valid").targets == 2
    assert validate(ConstantModel().fit(split), split).targets == 2
    assert evaluate(ConstantModel().fit(split), split).targets == 3


def test_nan_scores_get_the_last_rank_and_are_counted() -> None:
    split = small_split()
    report = evaluate(ConstantModel(float("nan")).fit(split), split)
    assert report["MR"] == 3
    assert report.nan_events == 3


@pytest.mark.parametrize(
    ("update", "part", "expected"),
    [
        ("streaming", "test", ["observe 3"] + ["score 1", "observe 1"] * 3),
        ("streaming", "valid", ["observe 2", "score 1", "observe 1"]),
        ("every=2", "test", ["observe 3", "score 2", "observe 2", "score 1", "observe 1"]),
        ("every=99", "test", ["observe 3", "score 3", "observe 3"]),
        ("frozen", "test", ["observe 2", "score 3"]),
        ("frozen=valid", "test", ["observe 3", "score 3"]),
    ],
)
def test_the_model_observes_events_by_the_update_rule(
    update: str, part: str, expected: list[str]
) -> None:
    split = small_split()
    model = ConstantModel().fit(split)
    report = evaluate(model, split, update=update, part=part)  # type: ignore[arg-type]
    assert model.log == ["forget", *expected]
    assert (report.update, report.part) == (update, part)


def test_large_blocks_are_scored_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_EVENTS_PER_BLOCK", 2)
    split = small_split()
    model = ConstantModel().fit(split)
    evaluate(model, split, update="every=99")
    assert model.log == ["forget", "observe 3", "score 2", "score 1", "observe 3"]


@pytest.mark.parametrize("update", ["streaming", "every=7", "frozen"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_block_size_does_not_change_the_metrics(
    monkeypatch: pytest.MonkeyPatch, update: str, kind: str
) -> None:
    split = synthesize(SyntheticConfig(events=600, kind=kind)).split(0.5, 0.25)  # type: ignore[arg-type]
    for heuristic in heuristics_for(split.events.kind):
        model = heuristic().fit(split)
        groups = []
        for size in (1, 64, 10_000):
            monkeypatch.setattr(protocol, "_EVENTS_PER_BLOCK", size)
            report = evaluate(model, split, update=update)
            groups.append((report.groups, report.top))
        assert groups[0] == groups[1] == groups[2]


def test_evaluating_twice_gives_the_same_report() -> None:
    split = synthesize(SyntheticConfig(events=500)).split(0.5, 0.25)
    model = registry.build("own-recency").fit(split)
    first = evaluate(model, split).to_json()
    second = evaluate(model, split).to_json()
    for report in (first, second):
        del report["seconds"], report["ranking_seconds"]
    assert first == second


def test_a_validation_sample_has_the_ranks_of_the_full_validation() -> None:
    split = synthesize(SyntheticConfig(events=1_000)).split(0.5, 0.3)
    model = registry.build("own-recency").fit(split)
    full = validate(model, split)
    assert full.groups == evaluate(model, split, part="valid").groups
    state_after = model.score(split.test.source[:5], split.test.time[:5])
    sample = validate(model, split, max_events=130)
    # The sample has three runs of 43 events, from event 0, 100 and 200 on.
    places = np.concatenate([np.arange(start, start + 43) for start in (0, 100, 200)])
    assert sample.ranks.tolist() == full.ranks[places].tolist()
    assert sample.groups["all"].events == 129
    assert sum(sample.groups[name].events for name in ("repeat", "new")) == 129
    assert (model.score(split.test.source[:5], split.test.time[:5]) == state_after).all()
    assert validate(model, split, max_events=300).groups == full.groups


def test_events_are_grouped_into_repeats_and_new_pairs() -> None:
    # train     | valid | test
    # a→x  b→y  | a→y   | a→x (repeat)  b→x (new)  b→x (repeat)
    stream = EventStream.from_columns(list("abaabb"), list("xyyxxx"), range(6))
    report = evaluate(ConstantModel().fit(cut(stream, 2, 3)), cut(stream, 2, 3))
    assert {name: group.events for name, group in report.groups.items()} == {
        "all": 3,
        "repeat": 2,
        "new": 1,
        "unseen": 0,
    }


def test_in_a_one_mode_graph_the_reverse_direction_is_a_repeat() -> None:
    stream = EventStream.from_columns(list("abca"), list("bcab"), range(4), kind="one-mode")
    answer = EventStream.from_columns(list("abcb"), list("bcaa"), range(4), kind="one-mode")
    for events in (stream, answer):
        split = cut(events, 2, 3)
        assert evaluate(ConstantModel().fit(split), split).groups["repeat"].events == 1


def test_an_empty_group_has_no_metrics() -> None:
    stream = EventStream.from_columns(list("aaaa"), list("xyxy"), range(4))
    split = cut(stream, 2, 3)
    report = evaluate(ConstantModel().fit(split), split)
    assert report.groups["new"].metrics is None
    assert report.to_json()["new"] is None
    assert next(line for line in str(report).splitlines() if line.startswith("MR ")).endswith(" -")


def test_in_a_one_mode_graph_only_targets_are_ranked() -> None:
    # c is never a target, so the candidates are a, b and d.
    stream = EventStream.from_columns(list("abccb"), list("badab"), range(5), kind="one-mode")
    split = cut(stream, 2, 3)
    report = evaluate(ConstantModel().fit(split), split)
    assert stream.num_targets == 4
    assert report.targets == 3
    assert report["MR"] == 2


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_mask_seen_removes_seen_targets_except_the_true_one(kind: str, data: st.DataObject) -> None:
    split = data.draw(splits(kind=kind))  # type: ignore[arg-type]
    events = split.events
    report = evaluate(ConstantModel().fit(split), split, mask_seen=True)
    candidates = set(events.target.tolist())
    expected = []
    for event in range(split.valid_end, len(events)):
        seen = set()
        for earlier in range(event):
            source, target = int(events.source[earlier]), int(events.target[earlier])
            if source == events.source[event]:
                seen.add(target)
            if events.kind == "one-mode" and target == events.source[event]:
                seen.add(source)
        ranked = candidates - seen | {int(events.target[event])}
        expected.append((len(ranked) + 1) / 2)
    assert report["MR"] == pytest.approx(np.mean(expected))


def test_progress_counts_replayed_and_ranked_events() -> None:
    split = synthesize(SyntheticConfig(events=3_000)).split(0.5, 0.25)
    calls: list[tuple[int, int]] = []
    evaluate(
        registry.build("popularity").fit(split),
        split,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert len(calls) > 1
    assert calls[0] == (2_250, 3_000)  # the replayed history
    assert calls[-1] == (3_000, 3_000)


def test_scores_of_the_wrong_shape_fail_an_assertion() -> None:
    split = small_split()
    model = NarrowModel().fit(split)
    with pytest.raises(
        AssertionError, match=r"constant returned scores of shape \(3, 2\) instead of \(3, 3\)"
    ):
        evaluate(model, split)


def test_the_report_names_its_rules_and_groups() -> None:
    split = small_split()
    text = str(evaluate(ConstantModel().fit(split), split, update="every=2"))
    assert "constant on test: 3 events, each ranked among 3 targets" in text
    assert "kind bipartite | split by hand of rows | update every=2 (" in text
    assert "update every=2 (state refreshed after each block of 2 events)" in text
    assert "repeat (1)" in text
    assert "repeat: the source has interacted with the target before; new: it has not" in text
    assert "NDCG@10" in text


def test_the_report_of_a_model_has_the_heuristics_and_that_of_a_heuristic_has_not() -> None:
    split = synthesize(SyntheticConfig(events=400, kind="one-mode")).split(0.5, 0.25)
    calls: list[tuple[int, int]] = []
    report = evaluate(
        ConstantModel().fit(split),
        split,
        update="every=9",
        progress=lambda *call: calls.append(call),
    )
    assert [heuristic.model for heuristic in report.heuristics] == [
        heuristic.name for heuristic in heuristics_for("one-mode")
    ]
    alone = evaluate(registry.build("own-recency").fit(split), split, update="every=9")
    beside = report.heuristics[2]
    assert (beside.model, beside.groups, beside.heuristics) == ("own-recency", alone.groups, ())
    assert report.to_json()["heuristics"][0]["model"] == "popularity"
    assert "heuristics" not in alone.to_json()
    assert f"\nown-recency     {alone['MR']:>10.2f}" in str(report)
    # The progress counts the events of all eight models and never decreases.
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1][0] == calls[-1][1] == 8 * len(split.events)
    assert evaluate(ConstantModel().fit(split), split, with_heuristics=False).heuristics == ()
