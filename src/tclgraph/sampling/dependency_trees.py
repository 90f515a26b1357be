"""What instances depend on, as trees that are cut after k levels, for many roots at once.

Level 0 of a tree is its root, and below an instance are both instances of its node's previous
event: its own first, its partner's second. A tree has up to 2^k - 1 places, but the two parties of
an event often have the same event before that, and then whole branches are the same. So a *row* is
a distinct instance of a level of a tree: what is below it is the same wherever it stands there, and
found once. Between levels and between trees nothing is merged. An instance near the root reaches
further down than the same one near the cut; and what a root selects in its tree is its own affair.

All is gathering of arrays, one level at a time.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.sampling.dependency_subgraphs import singleton


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyTrees:
    """Rows of many trees, level by level; tree 2i and tree 2i + 1 are the parties of one event."""

    tree: IntArray
    """That every row is of; the first rows are the roots, in their order."""
    children: tuple[IntArray, ...]
    """For each level but the last, and each row of it: where own and partner are in the next level,
    counted from its first row; as many as it has rows where there is none."""
    which: IntArray
    """What every row is, as a place in the lists below, which have every instance once."""
    node: IntArray
    interval: FloatArray
    """Seconds since the node's previous event, 0 if none."""
    neighbors: IntArray
    """Nodes around an instance, NONE if there is none: its partner, then itself and its partner at
    its previous event, [instance, 3]."""

    def __len__(self) -> int:
        return len(self.tree)

    def rows_by_tree(self) -> IntArray:
        """The rows of every tree, [tree, most rows of a tree]; free places have `len(self)`."""
        size = np.bincount(self.tree)
        order = np.argsort(self.tree, kind="stable")
        start = np.cumsum(size) - size
        rows = np.full((len(size), size.max(initial=0)), len(self))
        rows[self.tree[order], np.arange(len(order)) - start[self.tree[order]]] = order
        return rows


def pairs_of(instance: IntArray, absent: int) -> tuple[IntArray, IntArray]:
    """The events to encode for these instances, as pairs of roots, and which root is each one's.

    >>> pairs, position = pairs_of(np.array([5, 4, -1, 5]), absent=9)
    >>> pairs.tolist(), position.tolist()
    ([[-1, -10], [4, 5]], [3, 2, 0, 3])
    """
    is_real = instance >= 0
    first, which = np.unique(np.where(is_real, instance & ~1, instance), return_inverse=True)
    pairs = np.stack([first, np.where(first >= 0, first | 1, singleton(absent))], axis=1)
    return pairs, 2 * which + np.where(is_real, instance & 1, 0)


def unroll(graph: DependencyGraph, roots: IntArray, num_levels: int) -> DependencyTrees:
    """The trees of these roots, which are instances or singletons."""
    instance = np.ascontiguousarray(roots).ravel()
    tree, num_instances = np.arange(len(instance)), len(graph.node)
    instances, trees, children = [instance], [tree], []
    for _ in range(num_levels - 1):
        above = np.flatnonzero(instance >= 0)
        above = above[graph.previous[instance[above]] != NONE]
        number = tree[above][:, None] * num_instances + _before(graph, instance[above])
        distinct, place = np.unique(number, return_inverse=True)
        below = np.full((len(instance), 2), len(distinct))
        below[above] = place.reshape(-1, 2)
        children.append(below)
        tree, instance = np.divmod(distinct, max(num_instances, 1))
        instances.append(instance)
        trees.append(tree)
    known, which = np.unique(np.concatenate(instances), return_inverse=True)
    node, interval, neighbors = _about(graph, known)
    return DependencyTrees(
        tree=np.concatenate(trees),
        children=tuple(children),
        which=which,
        node=node,
        interval=interval,
        neighbors=neighbors,
    )


def _before(graph: DependencyGraph, instance: IntArray) -> IntArray:
    """Own and partner's instance of each one's previous event, [instance, 2]."""
    first = 2 * graph.previous[instance]
    own = first + (graph.node[first] != graph.node[instance])
    return np.stack([own, own ^ 1], axis=1)


def _about(graph: DependencyGraph, instance: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Node, interval and neighbors of instances and singletons."""
    node, interval = singleton(instance), np.zeros(len(instance))
    neighbors = np.full((len(instance), 3), NONE)
    is_real = instance >= 0
    real = instance[is_real]
    node[is_real] = graph.node[real]
    interval[is_real] = graph.interval[real]
    neighbors[is_real, 0] = graph.node[real ^ 1]
    has_past = np.flatnonzero(is_real)[graph.previous[real] != NONE]
    neighbors[has_past, 1:] = graph.node[_before(graph, instance[has_past])]
    return node, interval, neighbors
