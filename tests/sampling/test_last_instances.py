"""Compare the binary search with a graph that grows event by event."""

import numpy as np
from hypothesis import given
from numpy.testing import assert_array_equal

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.dependency_subgraphs import singleton
from tclgraph.sampling.last_instances import LastInstances
from tests.streams import streams


@given(streams())
def test_last_instances_equal_those_of_a_growing_graph(stream: EventStream) -> None:
    space = NodeSpace.of(stream)
    complete, growing = DependencyGraph(space), DependencyGraph(space)
    complete.append(stream)
    last = LastInstances(complete)
    nodes = np.arange(space.num_nodes)
    for event in range(len(stream) + 1):
        expected = np.where(growing.last_instance >= 0, growing.last_instance, singleton(nodes))
        assert_array_equal(last.before(nodes, np.full(len(nodes), event)), expected)
        growing.append(stream[event : event + 1])
