"""Compiled loop over the events of a block; see `node_states` for the terms."""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel


@kernel
def column_versions(column: IntArray, num_columns: int) -> IntArray:
    """Return which version of each column holds before each event of a block, [B, columns].

    `column` has the column of every instance of the block, -1 for a node that has none. Version k
    below `num_columns` is column k before the block; `num_columns` + i is the version after
    instance i.

    >>> column_versions(np.array([-1, 1, -1, 0, -1, 1]), num_columns=2).tolist()
    [[0, 1], [0, 3], [5, 3]]
    """
    num_events = len(column) // 2
    version = np.empty((num_events, num_columns), np.int64)
    current = np.arange(num_columns)
    for event in range(num_events):
        version[event] = current
        for instance in (2 * event + 1, 2 * event):  # a self-loop counts as its source's instance
            if column[instance] >= 0:
                current[column[instance]] = num_columns + instance
    return version
