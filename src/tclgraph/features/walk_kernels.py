"""The nearby feature that a random walk over neighbors gives."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.features.state_arrays import Events, Neighbors

NUM_STEPS = 3
MAX_CHOICES = 64
"""Number of newest neighbors among which each step chooses."""
MAX_ROWS = 16_384
"""Number of nodes whose choices are stored between queries."""
WALK_SCALE = 10.0
"""Factor of the probability, in multiples of that of a uniform choice, before the logarithm."""


class WalkWorkspace(NamedTuple):
    """Probabilities of a walk, and the choices at nodes that walks of the block have passed.

    Choices are copied from the linked lists once, so that later walks read them from adjacent
    memory.
    """

    chance: FloatArray
    """[2, N] Probability of each node before and after a step; 0 everywhere between two walks."""
    reached: IntArray
    """[2, N] Nodes with a probability other than 0 before and after a step."""
    choices: IntArray
    """[rows, MAX_CHOICES] Newest neighbors of a node in each row. Row 0 belongs to no node."""
    row_of: IntArray
    """[N] Row of each node in `choices`, or 0 if it has none."""


@kernel
def walk_workspace(num_nodes: int) -> Any:
    """Return a workspace without stored choices; row 0 is in use."""
    return WalkWorkspace(
        np.zeros((2, num_nodes)),
        np.empty((2, num_nodes), np.int64),
        np.empty((min(num_nodes, MAX_ROWS) + 1, MAX_CHOICES), np.int64),
        np.zeros(num_nodes, np.int64),
    )


@kernel
def write_walk(
    source: int,
    events: Events,
    neighbors: Neighbors,
    walks: WalkWorkspace,
    num_rows: int,
    feature: Any,
) -> Any:
    """Write the walk feature of all targets; return the number of rows of choices in use."""
    chance, reached, choices, row_of = walks.chance, walks.reached, walks.choices, walks.row_of
    chance[0, source] = 1.0
    reached[0, 0] = source
    num_here = 1
    for step in range(NUM_STEPS):
        here, there = step % 2, 1 - step % 2
        before, after = chance[here], chance[there]
        num_there = 0
        for index in range(num_here):
            node = reached[here, index]
            if row_of[node] == 0:
                num_rows = _store_choices(node, events, neighbors, walks, num_rows)
            num_choices = min(neighbors.num_neighbors[node], MAX_CHOICES)
            of_node = choices[row_of[node], :num_choices]
            share = before[node] / max(num_choices, 1)
            before[node] = 0.0
            if step == NUM_STEPS - 1:  # the loop that takes most of the time
                for choice in range(num_choices):
                    after[of_node[choice]] += share
                continue
            for choice in range(num_choices):
                if after[of_node[choice]] == 0.0:
                    reached[there, num_there] = of_node[choice]
                    num_there += 1
                after[of_node[choice]] += share
        num_here = num_there
    final = chance[NUM_STEPS % 2]
    for target in range(len(feature)):
        probability = final[events.first_target + target]
        feature[target] = np.log1p(WALK_SCALE * len(feature) * probability)
    final[:] = 0.0
    return num_rows


@kernel
def _store_choices(
    node: int, events: Events, neighbors: Neighbors, walks: WalkWorkspace, num_rows: int
) -> Any:
    """Copy the newest neighbors of a node to a row of choices; return the number of rows in use."""
    if num_rows == len(walks.choices):
        walks.row_of[:] = 0
        num_rows = 1
    walks.row_of[node] = num_rows
    instance = neighbors.newest[node]
    for choice in range(min(neighbors.num_neighbors[node], MAX_CHOICES)):
        walks.choices[num_rows, choice] = events.node[instance ^ 1]
        instance = events.previous_neighbor[instance]
    return num_rows + 1


@kernel
def forget_choices(event: int, events: Events, walks: WalkWorkspace) -> None:
    """Drop the stored choices of both nodes of an event, which may have a new neighbor now."""
    walks.row_of[events.node[2 * event]] = 0
    walks.row_of[events.node[2 * event + 1]] = 0
