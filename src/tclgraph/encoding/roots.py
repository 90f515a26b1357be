"""Which events must be encoded to get the vectors of given instances.

An event is encoded once for both of its parties, so the unit of work is a pair of roots. A node
without events is a singleton root, and its partner is the *absent node*.
"""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.sampling.dependency_subgraphs import singleton


def root_pairs(instance: IntArray, absent_node: int) -> tuple[IntArray, IntArray]:
    """Return the pairs of roots to encode, and the position of each instance among all roots.

    Encoding P pairs gives 2P vectors; row `position[i]` is the vector of `instance[i]`.

    >>> pairs, position = root_pairs(np.array([5, 4, -1, 5]), absent_node=9)
    >>> pairs.tolist(), position.tolist()
    ([[-1, -10], [4, 5]], [3, 2, 0, 3])
    """
    is_real = instance >= 0
    first, pair = np.unique(np.where(is_real, instance & ~1, instance), return_inverse=True)
    pairs = np.stack([first, np.where(first >= 0, first | 1, singleton(absent_node))], axis=1)
    return pairs, 2 * pair + np.where(is_real, instance & 1, 0)


def or_singleton(instance: IntArray, node: IntArray) -> IntArray:
    """Replace a missing instance (NONE) by the node's singleton."""
    return np.where(instance >= 0, instance, singleton(node))
