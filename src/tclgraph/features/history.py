"""HistoryFeatures about a source, its past partners and all candidates, strictly before a query.

Times are log(1 + seconds), counts log(1 + number), and 0 stands for "never", which a fact beside it
tells from "just now". "Acted" is being the source of an event, "acted upon" its target; where
sources and targets are different nodes, one half of these is 0. A self-loop is one event in which
its node acts, and as a candidate was acted upon too. Of a source its latest 2,000 events count.

Source facts:

| 0, 1       | time since its last event; whether there is one                               |
| 2          | whether it was acted upon in that                                             |
| 3, 4       | time since it last acted; whether it ever did                                 |
| 5-7, 8-10  | times acted, and acted upon, in the last hour, day and week                   |
| 11         | its events                                                                    |
| 12-15      | first meetings among its last 1, 4, 16 and 64 events, divided by these        |
| 16, 17     | partners, divided by its events and one; partners                             |

Pair facts, of a source and one whom it has met:

| 0          | time since they met                                                           |
| 1, 2       | time since the source acted upon the other; whether it ever did               |
| 3, 4       | the same the other way                                                        |
| 5, 6       | times either way                                                              |
| 7          | log of the other's place among the source's partners, latest first            |
| 8, 9       | whether the other acted last; how often in a row the one who did              |
| 10-12      | meetings in the last hour, day and week                                       |
| 13, 14     | mean time between meetings; whether there were several                        |
| 15         | events of the source since                                                    |
| 16, 17     | how often the source went from its present last partner to this one; anywhere |

Candidate facts:

| 0, 1       | time since acted upon; whether it ever was                                    |
| 2, 3       | time since it acted; whether it ever did                                      |
| 4          | times acted upon                                                              |
| 5-7, 8-10  | times acted upon, and acted, in the last hour, day and week                   |
| 11, 12     | how many were acted upon later than it, and had any event later               |
| 13, 14     | how many it has met, and how many of these first acted upon it                |
| 15         | how often the source's partners met it; where partners of partners are all    |
|            | sources, how often it is among the five targets these had before              |
| 16, 17     | how often others who met the source's last partner had it as their next, and  |
|            | the same of its earlier partners                                              |
| 18         | how likely a walk of three steps from the source ends there, in tenths of     |
|            | what chance would have                                                        |

For 15 to 17 the source's 20 latest partners count (of its latest 100 events) with 20 events of
each, but not those with the source, nor ways back to the partner. In 15 and 17 the n-th latest
partner counts 1/n. Each step of the walk goes to one of the 64 nodes that a node last met for the
first time, all equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.features import kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFeatures:
    """Of a block of B queries about the K candidates in `columns`, and P pairs that have met."""

    source: ScoreArray
    """[B, source facts]"""
    candidate: ScoreArray
    """[B, candidate facts, K]"""
    pair_start: IntArray
    """Where each query's pairs begin; B + 1 numbers."""
    pair_target: IntArray
    pair: ScoreArray
    """[P, pair facts]"""
    pair_candidate: ScoreArray
    """[P, candidate facts]"""
    source_instance: IntArray
    """Of each query's source, its latest instance before the query, or NONE."""
    instance: IntArray
    """The same of every candidate, [B, K]."""

    @property
    def pair_query(self) -> IntArray:
        """The query that each pair belongs to."""
        return np.repeat(np.arange(len(self.source)), np.diff(self.pair_start))


class HistoryState:
    """Where all nodes of a graph stand after some of its events: what facts are read off from.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> from tclgraph.events.stream import EventStream
    >>> stream = EventStream.from_columns(list("aab"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> facts = HistoryState(graph).facts(np.array([0]), np.array([9.0]))
    >>> facts.pair_target.tolist(), np.expm1(facts.pair[:, 0]).round(3).tolist()
    ([1, 0], [4.0, 9.0])
    """

    def __init__(self, graph: DependencyGraph, num_known: int | None = None) -> None:
        """After the first `num_known` events, or all."""
        self._graph = graph
        num_targets = graph.space.num_targets
        self._num_known = 0
        self._last = np.full(graph.space.num_nodes, NONE, dtype=np.int64)
        self._count = np.zeros(num_targets, dtype=np.int64)
        self._last_upon = np.full(num_targets, NONE, dtype=np.int64)
        self._last_acted = np.full(num_targets, NONE, dtype=np.int64)
        self._last_met = np.full(graph.space.num_nodes, NONE, dtype=np.int64)
        self._num_met = np.zeros(graph.space.num_nodes, dtype=np.int64)
        self._num_came = np.zeros(num_targets, dtype=np.int64)
        self._in_window = np.zeros((2 * len(kernels.WINDOWS), num_targets), dtype=np.int64)
        self._tail = np.zeros(len(kernels.WINDOWS), dtype=np.int64)
        self.follow(num_known)

    def follow(self, num_known: int | None = None) -> None:
        """Go on to where so many events have happened, or all."""
        end = len(self._graph) if num_known is None else num_known
        assert self._num_known <= end <= len(self._graph), "the present only moves on"
        kernels.follow(
            self._graph.node,
            self._graph.met_before,
            self._num_known,
            end,
            self._graph.space.first_target,
            self._last,
            self._count,
            self._last_upon,
            self._last_acted,
            self._last_met,
            self._num_met,
            self._num_came,
            self._in_window,
        )
        self._num_known = end
        if end:
            # As far as the last event, so that a query need not begin with the first.
            kernels.slide(
                self._graph.node,
                self._graph.time,
                end,
                self._graph.time[end - 1],
                self._graph.space.first_target,
                self._in_window,
                self._tail,
            )

    def facts(
        self,
        source: IntArray,
        time: FloatArray,
        columns: IntArray | None = None,
        *,
        reveals: bool = False,
    ) -> HistoryFeatures:
        """HistoryFeatures for each source at its time about these targets, or all; the present stays.

        With `reveals`, the graph's next event happens after the first query, the one after that
        after the second, and so on: a block of events, each as it was just before it. Times ascend
        then, and are not before the last known event.
        """
        graph = self._graph
        if columns is None:
            columns = np.arange(graph.space.num_targets)
        if reveals:
            assert self._num_known + len(source) <= len(graph), "there are events to reveal"
        found = kernels.describe(
            graph.node,
            graph.previous,
            graph.following,
            graph.met_before,
            graph.time,
            graph.space.first_target,
            self._num_known,
            # Copies, as the loops are compiled anew for arrays that are read-only.
            np.array(source),
            np.array(time),
            reveals,
            np.array(columns),
            self._last.copy(),
            self._count.copy(),
            self._last_upon.copy(),
            self._last_acted.copy(),
            self._last_met.copy(),
            self._num_met.copy(),
            self._num_came.copy(),
            self._in_window.copy(),
            self._tail.copy(),
        )
        names = (
            "source", "pair_start", "pair_target", "pair", "pair_candidate",
            "candidate", "source_instance", "instance",
        )  # fmt: skip
        return HistoryFeatures(**dict(zip(names, found, strict=True)))
