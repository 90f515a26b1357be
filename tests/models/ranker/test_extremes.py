"""The ranker learns from the log whether sources repeat their targets or never do."""

from collections.abc import Callable

import numpy as np
import pytest

from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.stream import EventStream
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.models.ranker.model import Ranker

SOURCES, TARGETS, COMMUNITIES = 120, 150, 3
FAMILIAR = 15


def stream_of(next_target: Callable[[int, list[int]], int], events_each: int) -> EventStream:
    """Let sources act in random order; each next target follows from the source's earlier ones."""
    random = np.random.default_rng(0)
    had: list[list[int]] = [[] for _ in range(SOURCES)]
    turns = np.concatenate([random.permutation(SOURCES) for _ in range(events_each)]).tolist()
    targets = []
    for source in turns:
        had[source].append(next_target(source, had[source]))
        targets.append(had[source][-1])
    times = np.cumsum(random.exponential(600.0, size=len(turns)))
    return EventStream.from_columns(turns, targets, times)


def never_twice() -> EventStream:
    """Make a stream without repeats: mostly the next unused target of the community, else any."""
    random = np.random.default_rng(1)
    own = TARGETS // COMMUNITIES

    def choose(source: int, had: list[int]) -> int:
        first = (source % COMMUNITIES) * own
        at = had[-1] - first if had else int(random.integers(own))
        if random.random() < 0.3:
            at = int(random.integers(own))
        while first + (at := (at + 1) % own) in had:
            pass
        return first + at

    return stream_of(choose, 30)


def always_again() -> EventStream:
    """Make a stream of repeats: a few first targets, then only these, mostly in the same order."""
    random = np.random.default_rng(2)

    def choose(source: int, had: list[int]) -> int:
        if len(had) < FAMILIAR:
            return (7 * source + 31 * len(had)) % TARGETS
        return had[-FAMILIAR] if random.random() < 0.7 else had[int(random.integers(FAMILIAR))]

    return stream_of(choose, 40)


@pytest.mark.parametrize("stream", [never_twice, always_again])
def test_the_ranker_beats_every_heuristic(stream: Callable[[], EventStream]) -> None:
    events = stream()
    split = events.split(0.7, 0.15)
    num_pairs = len(events) if stream is never_twice else FAMILIAR * SOURCES
    assert len(np.unique(events.pairs())) == num_pairs
    ours = evaluate(Ranker(threads=1).fit(split), split)
    assert len(ours.heuristics) == len(heuristics_for("bipartite"))
    for heuristic in ours.heuristics:
        for metric in ("MR", "MRR", "Hit@10"):
            sign = -1 if metric in LOWER_IS_BETTER else 1
            assert sign * ours[metric] > sign * heuristic[metric], (
                heuristic.model,
                metric,
                str(ours),
            )
