"""Sub-graphs of the dependency graph, packed without padding and without repetition.

The k-level sub-graph of an instance holds the instance (the root, at depth 0) and everything that
it depends on through at most k - 1 steps: at most 2^k - 1 instances. Each instance is listed once,
in breadth-first order, at the depth of its first occurrence.

The sub-graphs of a batch overlap, because their roots share a past. Three kinds of things are
stored once, no matter how many sub-graphs contain them:

- a *row* is a distinct (instance, depth), which determines the input embedding;
- a *query* is a row together with the rows that it attends to (see `structural_mask`). A row has
  the same keys in almost all sub-graphs, and then it is one query;
- a *stream* is the sub-graph of one root: a list of queries that begins with the root's query. A
  *slot* is a position in such a list.

A node without events can be a root too; `singleton(node)` stands for it.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.sampling import kernels
from tclgraph.sampling.structural_mask import list_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedSubgraphs:
    """Sub-graphs of many roots.

    Lists of lists are stored flat: `*_start` holds the start of each list and the end of the last.
    Stream 2i and stream 2i + 1 belong to the two parties of one event.
    """

    row_node: IntArray
    row_depth: IntArray
    row_interval: FloatArray
    """Seconds since the node's previous event, 0 if there is none."""
    row_instance: IntArray
    query_row: IntArray
    key_start: IntArray
    key_row: IntArray
    """Rows that each query attends to; its own row comes first. Queries that attend to no other row
    are the last ones."""
    stream_start: IntArray
    stream_query: IntArray

    @property
    def num_single(self) -> int:
        """Number of queries, the last ones, that attend to no row but their own."""
        return int(np.count_nonzero(np.diff(self.key_start) == 1))

    @property
    def root_query(self) -> IntArray:
        """Query of the root of each stream."""
        return self.stream_query[self.stream_start[:-1]]

    def keys_by_slot(self) -> tuple[IntArray, IntArray]:
        """Return the start of each slot's key list, and the keys as slots of the same stream.

        Every slot has its own list: after the first cross-attention, equal rows differ by stream.
        """
        start, keys = kernels.unshare(
            self.query_row, self.key_start, self.key_row, self.stream_start, self.stream_query
        )
        return start, keys

    def keys_across(self, members: IntArray, *, roots_only: bool) -> tuple[IntArray, IntArray]:
        """Return starts and keys with which each root attends to the other party's members.

        With `roots_only=False` every slot does. `members` holds the key that represents each slot:
        its query, or the slot itself.
        """
        start, keys = kernels.exchange(self.stream_start, members, roots_only)
        return start, keys


def singleton(node: IntArray | int) -> IntArray:
    """Return the root that stands for a node without events; the function is its own inverse."""
    return -1 - np.asarray(node, dtype=np.int64)


def pack(graph: DependencyGraph, roots: IntArray, num_levels: int) -> PackedSubgraphs:
    """Return the sub-graphs of these roots, which are instances or singletons."""
    flat_roots = np.ascontiguousarray(roots).ravel()
    members = kernels.collect_members(flat_roots, num_levels, graph.node, graph.previous)
    query_row, key_start, key_row, stream_query = list_keys(members)
    instance, depth = members.row_instance, members.row_depth
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
        stream_start=members.stream_start,
        stream_query=stream_query,
    )
