"""Unknown targets: those without any event so far. Their scores.

A target is *unknown* while it is absent from the training events and has no event either. Their
number is a matter of the data set and says nothing about the next event, so the probabilities of
known targets must not depend on it. They are those of a choice among known targets. The probability
of an unknown target is the one that it would have beside all known targets and no other unknown
one.

Shapes: B queries, T targets, U unknown targets.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import BoolArray, IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.stream import EventStream


class UnknownTargets(NamedTuple):
    """Targets that are unknown to the first query of a block."""

    target: IntArray
    """[U] Ids of the targets."""
    known_from: IntArray
    """[U] First query of the block that knows the target; the number of queries if none does."""

    @classmethod
    def at(cls, graph: DependencyGraph, num_trained: int, num_queries: int) -> "UnknownTargets":
        """Return the targets that are unknown after the events of a graph.

        Target ids count in order of first appearance; the first `num_trained` are those of the
        training events.
        """
        target = np.arange(num_trained, graph.space.num_targets)
        target = target[graph.last_instance[graph.space.first_target + target] < 0]
        return cls(target, np.full(len(target), num_queries))

    def revealing(self, events: EventStream, graph: DependencyGraph) -> "UnknownTargets":
        """Return the same for queries of which each knows one event more than the query before."""
        node, first_instance = np.unique(graph.space.nodes(events), return_index=True)
        target_node = graph.space.first_target + self.target
        position = np.searchsorted(node, target_node).clip(max=len(node) - 1)
        occurs = node[position] == target_node if len(node) else np.zeros(len(target_node), bool)
        known_from = self.known_from.copy()
        known_from[occurs] = first_instance[position[occurs]] // 2 + 1
        return self._replace(known_from=known_from)

    def from_query(self, first: int) -> "UnknownTargets":
        """Return the same for a block that begins at this query."""
        return self._replace(known_from=self.known_from - first)

    def is_unknown(self, num_queries: int) -> BoolArray:
        """Return which targets are unknown to each query, [B, U]."""
        is_unknown: BoolArray = np.arange(num_queries)[:, None] < self.known_from
        return is_unknown


class SeparateScores:
    """Scores of unknown targets, taken out of a table while those of known ones are normalized."""

    def __init__(self, score_BT: Tensor, unknown: UnknownTargets, replacement: float) -> None:
        """Put a replacement, about minus infinity, in the place of the scores."""
        device = score_BT.device
        self._target_U = torch.from_numpy(unknown.target).to(device)
        self._is_unknown_BU = torch.from_numpy(unknown.is_unknown(len(score_BT))).to(device)
        self._score_BU = score_BT[:, self._target_U]
        score_BT[:, self._target_U] = self._score_BU.masked_fill(self._is_unknown_BU, replacement)

    def put_back(self, score_BT: Tensor, log_total_B: Tensor) -> None:
        """Put the scores back into the table, from which `log_total_B` will be subtracted.

        The total is that of known targets. To this each unknown target adds itself.
        """
        score_BU = self._score_BU - functional.softplus(self._score_BU - log_total_B[:, None])
        known_BU = score_BT[:, self._target_U]
        score_BT[:, self._target_U] = torch.where(self._is_unknown_BU, score_BU, known_BU)
