"""Sub-graphs of the dependency graph, packed without padding and without repetition.

The k-level sub-graph of an instance holds the instance (the root, depth 0) and everything it
depends on through at most k - 1 steps: at most 2^k - 1 instances, each listed once, breadth first,
at the depth of its first occurrence. In it a member at depth d attends to itself and to what it
depends on through at most k - 1 - d steps (the paper's SG, "the sub-graph rooted at the query").

Two sub-graphs of a batch overlap wherever their roots share a past. Three things are therefore kept
once however many sub-graphs they are in:

- a *row* is a distinct (instance, depth), which is all that an input embedding depends on;
- a *query* is a row together with the rows that it attends to. These are the same in every
  sub-graph, unless one has a short cut to an instance that others reach by a longer way;
- a *stream* is a root's sub-graph: a list of queries, the root's first.

Nodes without a past are roots too: `singleton(node)` stands for a node that no event has touched.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.sampling import kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedSubgraphs:
    """Sub-graphs of many roots. Lists of lists are flat, with `*_start` telling where each begins.

    Stream 2i and stream 2i + 1 are the two parties of one event.
    """

    row_node: IntArray
    row_depth: IntArray
    row_interval: FloatArray
    """Seconds since the node's previous event, 0 if none."""
    row_instance: IntArray
    query_row: IntArray
    key_start: IntArray
    key_row: IntArray
    """Rows that each query attends to, its own first."""
    stream_start: IntArray
    stream_query: IntArray

    @property
    def root_query(self) -> IntArray:
        return self.stream_query[self.stream_start[:-1]]

    def keys_by_slot(self) -> tuple[IntArray, IntArray]:
        """Starts and keys, both in positions of `stream_query`, with nothing shared."""
        start, keys = kernels.unshare(
            self.query_row, self.key_start, self.key_row, self.stream_start, self.stream_query
        )
        return start, keys

    def keys_across(self, members: IntArray, *, roots_only: bool) -> tuple[IntArray, IntArray]:
        """Starts and keys where each root (or each slot) attends to the other party's members.

        `members` says what stands for each slot: its query, or the slot itself.
        """
        start, keys = kernels.exchange(self.stream_start, members, roots_only)
        return start, keys


def singleton(node: IntArray | int) -> IntArray:
    """The root that stands for a node without a past; its own inverse."""
    return -1 - np.asarray(node, dtype=np.int64)


def pack(graph: DependencyGraph, roots: IntArray, num_levels: int) -> PackedSubgraphs:
    """The sub-graphs of these roots (instances or singletons)."""
    instance, depth, query_row, key_start, key_row, stream_start, stream_query = kernels.pack(
        np.ascontiguousarray(roots).ravel(), num_levels, graph.node, graph.previous
    )
    is_real = instance >= 0
    node, interval = singleton(instance), np.zeros(len(instance))
    node[is_real] = graph.node[instance[is_real]]
    interval[is_real] = graph.interval[instance[is_real]]
    return PackedSubgraphs(
        row_node=node,
        row_depth=depth,
        row_interval=interval,
        row_instance=instance,
        query_row=query_row,
        key_start=key_start,
        key_row=key_row,
        stream_start=stream_start,
        stream_query=stream_query,
    )
