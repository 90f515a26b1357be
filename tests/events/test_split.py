import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.errors import InputError
from tclgraph.events.identifiers import Key
from tclgraph.events.split import parse_shares, split
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import cut, streams
from tests.streams import collegemsg, wikipedia


def numbered(num_events: int) -> EventStream:
    return EventStream.from_columns(range(num_events), range(num_events), range(num_events))


def test_shares_of_rows() -> None:
    parts = numbered(10).split(0.6, 0.2)
    assert parts.sizes == {"train": 6, "valid": 2, "test": 2}
    assert parts.test.time.tolist() == [8, 9]
    assert str(parts) == "60/20/20 of rows"


def test_shares_are_exact_where_floats_are_not() -> None:
    # As floats, 0.1 + 0.2 exceeds 3/10. The cut must still be at row 30 of 100.
    assert numbered(100).split(0.1, 0.2).sizes == {"train": 10, "valid": 20, "test": 70}
    assert numbered(100).split(0.7, 0.15).sizes == {"train": 70, "valid": 15, "test": 15}


def test_an_event_exactly_at_a_time_cut_is_in_the_later_part() -> None:
    stream = EventStream.from_columns(range(5), range(5), [0, 1, 5, 8, 10])
    parts = stream.split(0.5, 0.3, by="time")
    assert parts.train.time.tolist() == [0, 1]
    assert parts.valid.time.tolist() == [5]
    assert parts.test.time.tolist() == [8, 10]
    assert str(parts) == "50/30/20 of time"


@given(streams(min_events=6), st.booleans())
def test_the_parts_together_are_the_stream(stream: EventStream, by_time: bool) -> None:
    try:
        parts = stream.split(0.5, 0.25, by="time" if by_time else "rows")
    except InputError:
        return  # a part is empty, or there is only one target
    times = np.concatenate([parts.train.time, parts.valid.time, parts.test.time])
    np.testing.assert_array_equal(times, stream.time)


def keys(part: EventStream) -> list[tuple[Key, Key]]:
    return [
        (part.sources.key(source), part.targets.key(target))
        for source, target in zip(part.source, part.target, strict=True)
    ]


@given(streams(min_events=6))
def test_seen_only_drops_exactly_the_events_with_unseen_nodes(stream: EventStream) -> None:
    try:
        parts = stream.split(0.5, 0.25, seen_only=True)
    except InputError:
        return
    cuts = [len(stream) // 2, len(stream) * 3 // 4]
    train, valid, test = (
        keys(part) for part in (stream[: cuts[0]], stream[cuts[0] : cuts[1]], stream[cuts[1] :])
    )
    sources, targets = {u for u, _ in train}, {v for _, v in train}
    assert keys(parts.train) == train
    assert keys(parts.valid) == [(u, v) for u, v in valid if u in sources and v in targets]
    assert keys(parts.test) == [(u, v) for u, v in test if u in sources and v in targets]


def test_collegemsg_has_the_sizes_of_the_authors_data_set() -> None:
    parts = collegemsg()
    assert parts.sizes == {"train": 35_901, "valid": 7_815, "test": 5_055}
    bipartite = collegemsg("bipartite").events
    assert (bipartite.num_sources, bipartite.num_targets) == (999, 1_352)


def test_wikipedia_has_23622_test_events() -> None:
    assert wikipedia().split(0.7, 0.15).sizes["test"] == 23_622


@pytest.mark.parametrize(("train", "valid"), [(1.0, 0.0), (0.8, 0.2), (0.9, 0.2), (-0.1, 0.5)])
def test_shares_that_leave_a_part_empty_are_refused(train: float, valid: float) -> None:
    with pytest.raises(InputError, match="leaves a part empty"):
        numbered(10).split(train, valid)


def test_an_unknown_way_to_split_is_refused() -> None:
    with pytest.raises(InputError, match="cannot split by 'row'; did you mean \"rows\""):
        numbered(10).split(0.6, 0.2, by="row")  # type: ignore[arg-type]


def test_a_log_too_short_for_its_split_is_refused() -> None:
    with pytest.raises(InputError, match="leaves train empty"):
        split(numbered(3), 0.1, 0.3)


def test_seen_only_is_refused_if_it_empties_a_part() -> None:
    with pytest.raises(InputError, match="seen only leaves valid empty"):
        split(numbered(9), 0.6, 0.2, seen_only=True)


def test_a_log_with_only_one_target_is_refused() -> None:
    stream = EventStream.from_columns(range(9), ["tea"] * 9, range(9))
    with pytest.raises(InputError, match=r"only one target \('tea'\)"):
        stream.split(0.6, 0.2)


@pytest.mark.parametrize("text", ["70/15", "70/15/10", "a/b/c", "70-15-15", "", "1/0/99/0"])
def test_invalid_shares_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="add to 100"):
        parse_shares(text)


def test_shares_are_percentages_or_fractions() -> None:
    assert parse_shares("80/10/10") == (0.8, 0.1)
    assert parse_shares("0.8/0.1/0.1") == (0.8, 0.1)
    assert parse_shares("66.6/16.7/16.7") == (0.666, 0.167)


@given(streams(min_events=6))
def test_a_split_without_its_later_parts_has_no_key_of_them(stream: EventStream) -> None:
    parts = cut(stream, len(stream) // 2, len(stream) * 3 // 4)
    for early, end in (
        (parts.without_test(), parts.valid_end),
        (parts.train_only(), parts.train_end),
    ):
        assert keys(early.events) == keys(stream[:end])
        assert early.events.source.tolist() == stream.source[:end].tolist()
        assert early.events.target.tolist() == stream.target[:end].tolist()
        assert early.sizes == {**parts.sizes, "valid": early.valid_end - parts.train_end, "test": 0}
        sources, targets = ({pair[side] for pair in keys(early.events)} for side in (0, 1))
        if stream.kind == "one-mode":
            sources = targets = sources | targets
        assert set(early.events.sources.keys) == sources
        assert set(early.events.targets.keys) == targets


def test_an_event_exactly_at_a_quantile_is_in_the_earlier_part() -> None:
    # The quantiles 0.5 and 0.8 of these eleven times are 5 and 8.
    parts = EventStream.from_columns(range(11), range(11), range(11)).split(
        0.5, 0.3, by="quantiles"
    )
    assert parts.train.time.tolist() == [0, 1, 2, 3, 4, 5]
    assert parts.valid.time.tolist() == [6, 7, 8]
    assert parts.test.time.tolist() == [9, 10]
    assert str(parts) == "50/30/20 of time quantiles"


def test_simultaneous_events_at_a_quantile_stay_together() -> None:
    time = [0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7]
    parts = EventStream.from_columns(range(11), range(11), time).split(0.4, 0.3, by="quantiles")
    assert parts.sizes == {"train": 7, "valid": 1, "test": 3}  # cuts at 3 and 4


@given(streams(min_events=6))
def test_parts_at_quantiles_are_those_of_tgb(stream: EventStream) -> None:
    try:
        parts = stream.split(0.70, 0.15, by="quantiles")
    except InputError:
        return  # a part is empty, or there is only one target
    valid_time, test_time = np.quantile(stream.time, [0.70, 0.85])
    is_valid = (stream.time > valid_time) & (stream.time <= test_time)
    for part, is_part in (
        (parts.train, stream.time <= valid_time),
        (parts.valid, is_valid),
        (parts.test, stream.time > test_time),
    ):
        np.testing.assert_array_equal(part.time, stream.time[is_part])


def test_wikipedia_has_the_parts_of_tgbl_wiki() -> None:
    parts = wikipedia().split(0.70, 0.15, by="quantiles")
    assert parts.sizes == {"train": 110_232, "valid": 23_621, "test": 23_621}


@given(stream=streams(min_events=4))
def test_unseen_nodes_are_absent_from_the_training_events(stream: EventStream) -> None:
    parts = cut(stream, 2, 3)
    sources, targets = set(parts.train.source.tolist()), set(parts.train.target.tolist())
    if stream.kind == "one-mode":
        sources = targets = sources | targets
    is_unseen_source, is_unseen_target = parts.unseen()
    assert is_unseen_source.tolist() == [node not in sources for node in stream.source]
    assert is_unseen_target.tolist() == [node not in targets for node in stream.target]
