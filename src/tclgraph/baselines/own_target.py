"""The score of a source as its own target, in models that give a node one vector for both roles.

The product of a vector with itself is high, so in a one-mode graph every node would be its own best
target, and no true target could rank first. If no node interacts with itself in the training
events, such models rank each source last among its own targets.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.events.stream import EventStream


def measure_own_targets(train: EventStream) -> dict[str, Any]:
    """Return figures of the training events for `rank_own_target_last`."""
    has_self_loops = bool((train.source == train.target).any())
    return {
        "can_be_own_target": train.kind == "bipartite" or has_self_loops,
        "num_targets": train.num_targets,
    }


def rank_own_target_last(
    score_BT: ScoreArray, source: IntArray, measured: Mapping[str, Any]
) -> ScoreArray:
    """Lower the score of each source as its own target below those of the training events.

    >>> scores = np.array([[9.0, 2.0, 3.0]])
    >>> measured = {"can_be_own_target": False, "num_targets": 3}
    >>> rank_own_target_last(scores, np.array([0]), measured).tolist()
    [[1.0, 2.0, 3.0]]
    """
    if not measured["can_be_own_target"]:
        trained_BT = score_BT[:, : measured["num_targets"]]
        score_BT[np.arange(len(source)), source] = trained_BT.min(axis=1) - 1
    return score_BT
