import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal

from tclgraph.errors import InputError
from tclgraph.events.identifiers import Identifiers
from tclgraph.events.stream import EventStream
from tests.streams import streams


def test_events_are_sorted_by_time_and_simultaneous_ones_keep_their_order() -> None:
    stream = EventStream.from_columns(list("abcd"), list("wxyz"), [5, 1, 5, 1])
    assert [stream.sources.key(source) for source in stream.source] == ["b", "d", "a", "c"]
    assert stream.time.tolist() == [1, 1, 5, 5]


def test_the_order_of_simultaneous_events_is_stable_in_long_streams() -> None:
    time = np.random.default_rng(0).integers(10, size=5_000)
    stream = EventStream.from_columns(np.arange(5_000), np.arange(5_000), time)
    position = np.array([stream.sources.key(source) for source in stream.source])
    for tick in range(10):
        assert (np.diff(position[stream.time == tick]) > 0).all()


def test_ids_are_dense_in_order_of_first_appearance() -> None:
    stream = EventStream.from_columns([900, -4, 900], ["x", "y", "y"], [1, 2, 3])
    assert stream.source.tolist() == [0, 1, 0]
    assert stream.sources.keys.to_list() == [900, -4]
    assert (stream.num_sources, stream.num_targets) == (2, 2)


def test_a_one_mode_graph_has_a_shared_id_space() -> None:
    stream = EventStream.from_columns(list("ab"), list("ba"), [1, 2], kind="one-mode")
    assert stream.sources is stream.targets
    assert stream.source.tolist() == [0, 1]
    assert stream.target.tolist() == [1, 0]


def test_a_bipartite_graph_keeps_equal_keys_apart() -> None:
    stream = EventStream.from_columns(list("ab"), list("ba"), [1, 2])
    assert stream.target.tolist() == [0, 1]
    assert stream.targets.keys.to_list() == ["b", "a"]


def test_a_one_mode_graph_joins_integer_and_text_keys_as_text() -> None:
    stream = EventStream.from_columns([1, 2], ["1", "x"], [1, 2], kind="one-mode")
    assert stream.sources.keys.to_list() == ["1", "2", "x"]


def test_columns_are_read_only_copies() -> None:
    time = np.array([1.0, 2.0])
    stream = EventStream.from_columns([1, 2], [3, 4], time)
    with pytest.raises(ValueError, match="read-only"):
        stream.time[0] = 9
    time[0] = 0.5
    assert stream.time[0] == 1.0


def test_optional_columns_are_sorted_too() -> None:
    stream = EventStream.from_columns(
        [1, 2], [3, 4], [9, 1], label=[0, 1], weight=[0.5, 2], features=[[1, 2], [3, 4]]
    )
    assert stream.label is not None
    assert stream.features is not None
    assert stream.label.tolist() == [1, 0]
    assert stream.features.tolist() == [[3, 4], [1, 2]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": np.array([2.0, 1.0])}, "event 1 is earlier than the event before"),
        ({"time": np.array([1.0, np.nan])}, "time of event 1 is nan"),
        ({"time": np.array([1.0, np.inf])}, "time of event 1 is inf"),
        ({"source": np.array([0, 7])}, "source ids must be between 0 and 1"),
        ({"target": np.array([0])}, "'target' has 1 rows"),
        ({"kind": "one-mode"}, "must be the same object in a one-mode graph"),
    ],
)
def test_invalid_columns_are_refused(change: dict[str, object], message: str) -> None:
    good = EventStream.from_columns([1, 2], [3, 4], [1.0, 2.0])
    columns = {
        name: getattr(good, name)
        for name in ("source", "target", "time", "kind", "sources", "targets")
    }
    with pytest.raises(InputError, match=message):
        EventStream(**{**columns, **change})


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(InputError, match="the same length, not 2, 1 and 2"):
        EventStream.from_columns([1, 2], [3], [1, 2])


def test_floats_are_refused_as_keys() -> None:
    with pytest.raises(InputError, match="source has type Float64"):
        EventStream.from_columns(np.array([1.5, 2.0]), [1, 2], [1, 2])


def test_a_slice_keeps_the_ids_of_the_stream() -> None:
    stream = EventStream.from_columns(list("abc"), list("xyz"), [1, 2, 3])
    part = stream[2:]
    assert part.source.tolist() == [2]
    assert part.num_sources == 3
    assert part.compact().source.tolist() == [0]
    assert part.compact().sources.keys.to_list() == ["c"]


def test_before_is_strict() -> None:
    stream = EventStream.from_columns(list("abc"), list("xyz"), [1, 2, 2])
    assert len(stream.before(2)) == 1
    assert len(stream.before(2.5)) == 3


@given(streams())
def test_compact_changes_nothing_if_all_nodes_occur(stream: EventStream) -> None:
    assert stream.compact().equals(stream)


@given(streams())
def test_pairs_are_equal_exactly_for_the_same_two_nodes(stream: EventStream) -> None:
    pairs = stream.pairs()
    nodes = list(zip(stream.source, stream.target, strict=True))
    for event in range(len(stream)):
        for earlier in range(event):
            is_same = nodes[event] == nodes[earlier] or (
                stream.kind == "one-mode" and nodes[event] == nodes[earlier][::-1]
            )
            assert (pairs[event] == pairs[earlier]) == is_same


def test_equals_compares_keys_columns_and_kind() -> None:
    stream = EventStream.from_columns([1, 2], [3, 4], [1, 2])
    assert stream.equals(EventStream.from_columns([1, 2], [3, 4], [1, 2]))
    assert not stream.equals(EventStream.from_columns([1, 5], [3, 4], [1, 2]))
    assert not stream.equals(EventStream.from_columns([1, 2], [3, 4], [1, 2.5]))
    assert not stream.equals(EventStream.from_columns([1, 2], [3, 4], [1, 2], label=[0, 0]))
    assert not stream.equals(EventStream.from_columns([1, 2], [3, 4], [1, 2], kind="one-mode"))


def test_keys_and_ids_convert_both_ways() -> None:
    stream = EventStream.from_columns([17, 42], ["x", "y"], [1, 2])
    assert stream.sources.id(42) == 1
    assert stream.sources.id("42") == 1
    assert_array_equal(stream.targets.ids(["y", "x"]), [1, 0])
    with pytest.raises(InputError, match="unknown key 'q'"):
        stream.targets.id("q")
    with pytest.raises(InputError, match="one of the 2 keys in the log, like 17, 42"):
        stream.sources.id("ann")


def test_identifiers_compare_by_content() -> None:
    stream = EventStream.from_columns([1, 2], [1, 2], [1, 2])
    assert stream.sources == stream.targets
    assert stream.sources != Identifiers(stream.sources.keys.head(1))
