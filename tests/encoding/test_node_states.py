"""Test cached vectors with an encoder that records which events it encodes."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from torch import Tensor

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.encoding.kernels import column_versions
from tclgraph.encoding.node_states import NodeStates, elapsed_seconds, encode_instances
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import streams


class RecordingEncoder:
    """An encoder whose vectors hold the numbers of the two roots, the own root first.

    Vectors are equal only if the instances are, so a test sees which instance a vector is from.
    """

    width = 2
    max_events_at_once = 3

    def __init__(self, space: NodeSpace) -> None:
        self.absent_node = space.num_nodes
        self.weight = torch.zeros(1, dtype=torch.float64)
        self.calls: list[list[tuple[int, int]]] = []
        """Pairs of roots of every call."""

    def encode(self, graph: DependencyGraph, pairs: IntArray) -> Tensor:
        assert pairs.max(initial=-1) < 2 * len(graph), "encodes an event that is not in the graph"
        self.calls.append([(first, second) for first, second in pairs.tolist()])
        vectors = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)
        return torch.from_numpy(vectors).to(self.weight)

    def take_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs encoded since the last call of this method."""
        pairs = [pair for call in self.calls for pair in call]
        self.calls.clear()
        return pairs

    def pair(self, instance: int) -> tuple[int, int]:
        """Return the pair of roots that contains an instance or a singleton."""
        if instance < 0:
            return instance, -1 - self.absent_node
        return instance // 2 * 2, instance // 2 * 2 + 1

    def vector(self, instance: int) -> list[int]:
        first, second = self.pair(instance)
        return [second, first] if instance == second else [first, second]


def states_of(stream: EventStream) -> tuple[NodeStates, RecordingEncoder]:
    """Return states without events, and their encoder."""
    space = NodeSpace.of(stream)
    encoder = RecordingEncoder(space)
    return NodeStates(encoder, DependencyGraph(space)), encoder


def latest_instance(graph: DependencyGraph, node: int) -> int:
    """Search all events for a node's latest instance; a self-loop counts as its source's."""
    for event in reversed(range(len(graph))):
        for instance in (2 * event, 2 * event + 1):
            if graph.node[instance] == node:
                return instance
    return -1 - node


@st.composite
def blocks(draw: st.DrawFn, stream: EventStream) -> list[EventStream]:
    """Cut a stream into consecutive blocks, some of which may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    bounds = zip([0, *cuts], [*cuts, len(stream)], strict=True)
    return [stream[start:stop] for start, stop in bounds]


@given(streams(), st.data())
def test_only_nodes_with_newer_events_are_encoded_again(
    stream: EventStream, data: st.DataObject
) -> None:
    states, encoder = states_of(stream)
    cached: dict[int, int] = {}
    for block in data.draw(blocks(stream)):
        states.graph.append(block)
        node_ids = st.integers(0, states.graph.space.num_nodes - 1)
        nodes = data.draw(st.lists(node_ids, min_size=1, max_size=8))
        instances = [latest_instance(states.graph, node) for node in nodes]
        vectors = states.vectors(np.array(nodes))
        assert vectors.tolist() == [encoder.vector(instance) for instance in instances]

        current = dict(zip(nodes, instances, strict=True))
        stale = {
            node: instance for node, instance in current.items() if cached.get(node) != instance
        }
        encoded = encoder.take_pairs()
        assert len(set(encoded)) == len(encoded)
        assert set(encoded) == {encoder.pair(instance) for instance in stale.values()}
        cached.update(current)


@given(streams(), st.data())
def test_advance_equals_appending_one_event_at_a_time(
    stream: EventStream, data: st.DataObject
) -> None:
    states, encoder = states_of(stream)
    growing, _ = states_of(stream)
    nodes = np.arange(growing.graph.space.num_nodes)
    targets = growing.graph.space.target_nodes
    for events in data.draw(blocks(stream)):
        block = states.advance(events)
        before, after = (
            vectors[:, 0].expand(len(events), -1) for vectors in (block.before_TD, block.after_ID)
        )
        selected = block.select(before, after)
        for row in range(len(events)):
            source = events.source[row : row + 1]
            assert_array_equal(block.source_BD[row], growing.vectors(source)[0])
            assert block.source_instance[row] == growing.current_instance(source)[0]
            versions = torch.cat([block.before_TD, block.after_ID])[block.version_BT[row]]
            assert_array_equal(versions, growing.vectors(targets))
            assert_array_equal(selected[row], growing.vectors(targets)[:, 0])
            assert_array_equal(block.target_instance[row], growing.current_instance(targets))
            growing.graph.append(events[row : row + 1])

        encoder.take_pairs()
        assert_array_equal(states.vectors(nodes), growing.vectors(nodes))
        # The vectors after the block are cached, so at most singletons are still to encode.
        assert all(first < 0 for first, _ in encoder.take_pairs())


def test_advance_encodes_every_event_of_a_block_once() -> None:
    stream = EventStream.from_columns(list("aabab"), list("xxyyx"), range(5))
    states, encoder = states_of(stream)
    states.vectors(np.arange(states.graph.space.num_nodes))
    encoder.take_pairs()
    states.advance(stream)
    assert encoder.take_pairs() == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


def test_a_call_of_the_encoder_has_a_limited_number_of_events() -> None:
    stream = EventStream.from_columns(list("abcdefg"), list("tuvwxyz"), range(7))
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    encoder = RecordingEncoder(graph.space)
    instance = np.arange(14)[::-1].copy()
    vectors = encode_instances(encoder, graph, instance)
    assert [len(call) for call in encoder.calls] == [3, 3, 1]
    assert vectors[:, 0].tolist() == instance.tolist()


def test_no_instances_give_no_vectors() -> None:
    stream = EventStream.from_columns(["a"], ["x"], [0.0])
    graph = DependencyGraph(NodeSpace.of(stream))
    encoder = RecordingEncoder(graph.space)
    assert encode_instances(encoder, graph, np.empty(0, dtype=np.int64)).shape == (0, 2)
    assert encoder.calls == []


@given(streams())
def test_a_restored_cache_is_not_encoded_again(stream: EventStream) -> None:
    states, encoder = states_of(stream)
    states.graph.append(stream)
    nodes = np.arange(states.graph.space.num_nodes)
    vectors = states.vectors(nodes)
    encoder.take_pairs()
    restored = NodeStates(encoder, states.graph)
    restored.load_tensors({name: tensor.clone() for name, tensor in states.to_tensors().items()})
    assert_array_equal(restored.vectors(nodes), vectors)
    assert encoder.take_pairs() == []


@given(st.lists(st.integers(-1, 3), max_size=24), st.integers(4, 6))
def test_column_versions_equal_a_search(columns: list[int], num_columns: int) -> None:
    num_events = len(columns) // 2
    column = np.array(columns[: 2 * num_events], dtype=np.int64)

    def version(event: int, searched: int) -> int:
        for earlier in reversed(range(event)):
            for instance in (2 * earlier, 2 * earlier + 1):
                if column[instance] == searched:
                    return num_columns + instance
        return searched

    expected = [
        [version(event, searched) for searched in range(num_columns)] for event in range(num_events)
    ]
    assert column_versions(column, num_columns).tolist() == expected


def test_elapsed_seconds_count_from_the_event_of_an_instance() -> None:
    stream = EventStream.from_columns(list("ab"), list("xx"), [10.0, 14.0])
    graph = DependencyGraph(NodeSpace.of(stream))
    instance, now = np.array([[0, 3, -3]]), np.array([[14.0], [20.5]])
    assert elapsed_seconds(graph, instance, now).tolist() == [[0.0] * 3] * 2
    graph.append(stream)
    expected = [[4.0, 0.0, 0.0], [10.5, 6.5, 0.0]]
    assert elapsed_seconds(graph, instance, now).tolist() == expected
