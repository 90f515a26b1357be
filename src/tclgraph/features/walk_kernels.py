"""The nearby feature that a random walk over neighbors gives."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.features.log_arrays import NOT_NEW, Events, Hop, NodeColumn, Nodes

NUM_STEPS = 3
MAX_CHOICES = 64
"""Number of newest neighbors among which each step chooses."""
MAX_ROWS = 16_384
"""Number of nodes whose choices are stored between queries."""
WALK_SCALE = 10.0
"""Factor of the probability, in multiples of that of a uniform choice, before the logarithm."""


class Walks(NamedTuple):
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
    num_rows: IntArray
    """[1] Number of rows in use."""


@kernel
def empty_walks(num_nodes: int) -> Any:
    """Return arrays without stored choices; row 0 is in use."""
    return Walks(
        np.zeros((2, num_nodes)),
        np.empty((2, num_nodes), np.int32),
        np.empty((min(num_nodes, MAX_ROWS) + 1, MAX_CHOICES), np.int32),
        np.zeros(num_nodes, np.int32),
        np.ones(1, np.int64),
    )


@kernel
def walk(source: int, num_targets: int, events: Events, nodes: Nodes, walks: Walks) -> Any:
    """Return the walk feature of every node before the logarithm; `clear_walk` must follow."""
    chance, reached, choices, row_of = walks.chance, walks.reached, walks.choices, walks.row_of
    chance[0, source] = WALK_SCALE * num_targets
    reached[0, 0] = source
    num_here = 1
    for step in range(NUM_STEPS):
        here, there = step % 2, 1 - step % 2
        before, after = chance[here], chance[there]
        num_there = 0
        for index in range(num_here):
            node = reached[here, index]
            num_choices = min(nodes.table[node, NodeColumn.NUM_NEIGHBORS], MAX_CHOICES)
            if row_of[node] == 0:
                _store_choices(node, num_choices, events, nodes, walks)
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
    return chance[NUM_STEPS % 2]


@kernel
def clear_walk(walks: Walks) -> None:
    """Set all probabilities to 0 again."""
    walks.chance[NUM_STEPS % 2, :] = 0.0


@kernel
def _store_choices(
    node: int, num_choices: int, events: Events, nodes: Nodes, walks: Walks
) -> None:
    """Copy the newest neighbors of a node to a row of choices."""
    if walks.num_rows[0] == len(walks.choices):
        walks.row_of[:] = 0
        walks.num_rows[0] = 1
    row = walks.num_rows[0]
    walks.num_rows[0] += 1
    walks.row_of[node] = row
    instance = nodes.table[node, NodeColumn.NEWEST_NEIGHBOR]
    for choice in range(num_choices):
        walks.choices[row, choice] = events.hops[instance, Hop.NEIGHBOR]
        instance = events.previous_neighbor[instance]


@kernel
def forget_choices(event: int, events: Events, walks: Walks) -> None:
    """Drop the stored choices of both nodes of an event if they have a new neighbor now."""
    if events.previous_neighbor[2 * event] == NOT_NEW:
        return
    walks.row_of[events.node[2 * event]] = 0
    walks.row_of[events.node[2 * event + 1]] = 0
