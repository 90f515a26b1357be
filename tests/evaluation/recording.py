"""A model that records its scores, so that a slow loop can rank the same scores."""

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.evaluation.simultaneous import num_revealed
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.heuristics.rules import OwnRecency


class RecordingModel(OwnRecency):
    """The heuristic own-recency; `rows` are its scores of every ranked event, in order."""

    def __init__(self) -> None:
        self.rows: list[ScoreArray] = []

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        scores = super().score(source, time)
        self.rows += list(scores)
        return scores

    def score_each(self, events: EventStream) -> ScoreArray:
        scores = super().score_each(events)
        self.rows += list(scores)
        return scores


def revealed_before(split: Split, event: int, simultaneous: str) -> EventStream:
    """Return the events that are revealed before a test event is ranked."""
    events = split.events
    is_together = simultaneous == "together"
    return events[: num_revealed(events.time, is_together=is_together)[split.valid_end + event]]


def seen_by(source: int, events: EventStream) -> set[int]:
    """Return the targets that a source has interacted with, in a one-mode graph either way."""
    seen = set()
    for first, second in zip(events.source.tolist(), events.target.tolist(), strict=True):
        if first == source:
            seen.add(second)
        if events.kind == "one-mode" and second == source:
            seen.add(first)
    return seen
