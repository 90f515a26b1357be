"""Dependency trees of k levels for many roots at once.

Level 0 of a tree is its root. The children of an instance are both instances of its node's previous
event: the node's own first, its partner's second. A tree has up to 2^k - 1 places, but the two
parties of an event often have the same previous event, and then their branches are equal. A *row*
is therefore a distinct instance in one level of one tree; what is below it is computed once. Rows
of different levels or trees are not merged: the same instance reaches more levels when it is nearer
to the root, and the selection of rows differs from tree to tree.

The trees are built with array operations, one level at a time.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.sampling.dependency_subgraphs import singleton


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyTrees:
    """Rows of many trees, level by level; trees 2i and 2i + 1 are the parties of one event."""

    tree: IntArray
    """Tree of each row; the first rows are the roots, in the given order."""
    children: tuple[IntArray, ...]
    """Positions of the own and the partner child of each row in the next level, [row, 2], for each
    level but the last. A missing child has the number of rows of the next level."""
    row_instance: IntArray
    """Index of each row's instance in the arrays below, which hold every instance once."""
    node: IntArray
    interval: FloatArray
    """Seconds since the node's previous event, 0 if there is none."""
    neighbors: IntArray
    """Neighbors of each instance, NONE if there is none, [instance, 3]: its partner, then the node
    itself and its partner at the node's previous event."""

    def __len__(self) -> int:
        return len(self.tree)

    def rows_by_tree(self) -> IntArray:
        """Return the rows of each tree, [tree, place]; unused places hold `len(self)`."""
        size = np.bincount(self.tree)
        order = np.argsort(self.tree, kind="stable")
        start = np.cumsum(size) - size
        rows = np.full((len(size), size.max(initial=0)), len(self))
        rows[self.tree[order], np.arange(len(order)) - start[self.tree[order]]] = order
        return rows


def unroll(graph: DependencyGraph, roots: IntArray, num_levels: int) -> DependencyTrees:
    """Return the trees of these roots, which are instances or singletons."""
    instance = np.ascontiguousarray(roots).ravel()
    tree, num_instances = np.arange(len(instance)), len(graph.node)
    instances, trees, children = [instance], [tree], []
    for _ in range(num_levels - 1):
        parent = np.flatnonzero(instance >= 0)
        parent = parent[graph.previous[instance[parent]] != NONE]
        # (tree, instance) as one number, to find distinct pairs.
        number = tree[parent][:, None] * num_instances + _dependencies(graph, instance[parent])
        distinct, position = np.unique(number, return_inverse=True)
        child = np.full((len(instance), 2), len(distinct))
        child[parent] = position.reshape(-1, 2)
        children.append(child)
        tree, instance = np.divmod(distinct, max(num_instances, 1))
        instances.append(instance)
        trees.append(tree)
    distinct, row_instance = np.unique(np.concatenate(instances), return_inverse=True)
    node, interval, neighbors = _describe(graph, distinct)
    return DependencyTrees(
        tree=np.concatenate(trees),
        children=tuple(children),
        row_instance=row_instance,
        node=node,
        interval=interval,
        neighbors=neighbors,
    )


def _dependencies(graph: DependencyGraph, instance: IntArray) -> IntArray:
    """Return the own and the partner's instance at each node's previous event, [instance, 2]."""
    first = 2 * graph.previous[instance]
    own = first + (graph.node[first] != graph.node[instance])
    return np.stack([own, own ^ 1], axis=1)


def _describe(graph: DependencyGraph, instance: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the node, interval and neighbors of instances and singletons."""
    node, interval = singleton(instance), np.zeros(len(instance))
    neighbors = np.full((len(instance), 3), NONE)
    is_real = instance >= 0
    real = instance[is_real]
    node[is_real] = graph.node[real]
    interval[is_real] = graph.interval[real]
    neighbors[is_real, 0] = graph.node[real ^ 1]
    has_past = np.flatnonzero(is_real)[graph.previous[real] != NONE]
    neighbors[has_past, 1:] = graph.node[_dependencies(graph, instance[has_past])]
    return node, interval, neighbors
