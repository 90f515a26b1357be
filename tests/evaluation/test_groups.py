"""Groups of events with separate metrics: repeats, new pairs, unseen nodes, and segments."""

from dataclasses import replace

import numpy as np
import pytest

from tclgraph import registry
from tclgraph.evaluation.metrics import bootstrap_intervals, metrics
from tclgraph.evaluation.protocol import evaluate, validate
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.testing.streams import cut
from tests.evaluation.test_protocol import ConstantModel


def test_events_with_an_unseen_node_are_a_group() -> None:
    # train a→x  b→y | valid c→x | test a→y  c→x (source unseen)  a→z (target unseen)
    stream = EventStream.from_columns(list("abcaca"), list("xyxyxz"), range(6))
    report = evaluate(registry.build("popularity").fit(cut(stream, 2, 3)), cut(stream, 2, 3))
    assert report.groups["unseen"].events == 2
    assert report.groups["unseen"].metrics == metrics(report.ranks[1:])
    assert report.to_json()["unseen"] == report.groups["unseen"].metrics
    assert report.to_json()["events_by_group"]["unseen"] == 2
    text = str(report)
    assert "unseen (2)" in text
    assert "unseen: the source or the target is absent from the training events" in text


def test_in_a_one_mode_graph_a_node_is_seen_in_either_role() -> None:
    # b is only a target in training, and c is absent.
    stream = EventStream.from_columns(list("aaabc"), list("bbbab"), range(5), kind="one-mode")
    split = cut(stream, 2, 3)
    report = evaluate(ConstantModel().fit(split), split)
    assert report.groups["unseen"].events == 1


def with_segments(names: list[str]) -> Split:
    stream = EventStream.from_columns(
        ["a", "b"] * (len(names) // 2), ["x", "y"] * (len(names) // 2), range(len(names))
    )
    with_names = EventStream.from_columns(stream.source, stream.target, stream.time, segment=names)
    return cut(with_names, 2, 4)


def test_segments_have_separate_metrics_the_largest_first() -> None:
    split = with_segments(
        ["gold", "red", "red", "red", "red", "gold", "blue", "blue", "gold", "blue"]
    )
    model = registry.build("popularity").fit(split)
    report = evaluate(model, split)
    assert report.segmented_by == "segment"
    assert [(name, group.events) for name, group in report.segments.items()] == [
        ("blue", 3),
        ("gold", 2),
        ("red", 1),
    ]
    gold = report.ranks[[1, 4]]
    assert report.segments["gold"].metrics == metrics(gold)
    assert report.segments["gold"].intervals == bootstrap_intervals(gold, 0)
    document = report.to_json()
    assert document["segmented_by"] == "segment"
    assert document["segments"]["red"]["events"] == 1
    assert document["segments"]["red"]["metrics"] == report.segments["red"].metrics
    lines = str(report).splitlines()
    start = lines.index("by segment:")
    assert [line.split()[:2] for line in lines[start + 2 : start + 5]] == [
        ["blue", "3"],
        ["gold", "2"],
        ["red", "1"],
    ]


def test_tables_show_the_20_largest_segments_and_count_the_others() -> None:
    names = ["rest"] * 4 + [f"group-{number}" for number in range(23)] + ["rest"] * 3
    report = evaluate(ConstantModel().fit(with_segments(names)), with_segments(names))
    assert len(report.segments) == 24
    text = str(report)
    assert "4 smaller segments with 4 events" in text
    assert sum(line.startswith(("group-", "rest")) for line in text.splitlines()) == 20


def test_a_log_without_segments_has_none_in_its_report() -> None:
    split = cut(EventStream.from_columns(list("abab"), list("xyxy"), range(4)), 2, 3)
    report = evaluate(ConstantModel().fit(split), split)
    assert (report.segments, report.segmented_by) == ({}, None)
    assert "segments" not in report.to_json()
    assert "by segment" not in str(report)


@pytest.mark.parametrize("update", ["streaming", "frozen"])
def test_segments_change_no_other_figure(update: str) -> None:
    split = synthesize(SyntheticConfig(events=300)).split(0.5, 0.25)
    names = np.array(["even", "odd"])[np.arange(300) % 2]
    events = EventStream.from_columns(
        split.events.sources.keys.gather(split.events.source),
        split.events.targets.keys.gather(split.events.target),
        split.events.time,
        segment=names.tolist(),
    )
    segmented = replace(split, events=events)
    plain = evaluate(registry.build("own-recency").fit(split), split, update=update)
    report = evaluate(registry.build("own-recency").fit(segmented), segmented, update=update)
    assert report.groups == plain.groups
    assert report.top == plain.top
    assert sum(group.events for group in report.segments.values()) == report.num_events


def test_a_sample_of_validation_events_has_the_segments_of_its_events() -> None:
    split = synthesize(SyntheticConfig(events=1_000)).split(0.5, 0.3)
    events = EventStream.from_columns(
        split.events.source,
        split.events.target,
        split.events.time,
        segment=[str(number % 3) for number in range(1_000)],
    )
    segmented = replace(split, events=events)
    model = registry.build("popularity").fit(segmented)
    report = validate(model, segmented, max_events=130)
    assert sum(group.events for group in report.segments.values()) == report.num_events == 129
