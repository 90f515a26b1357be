"""The most likely next targets of sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tclgraph.answers.time_travel import model_at
from tclgraph.arrays import IntArray
from tclgraph.events.identifiers import Key

if TYPE_CHECKING:
    from tclgraph.models.interface import Model
    from tclgraph.models.stream_state import StreamState

# Number of scores held at once.
_MAX_CELLS = 1 << 22


class Recommendation(NamedTuple):
    """A target and its score; scores compare within one list only."""

    target: Key
    score: float


def recommend(
    model: Model,
    sources: Sequence[Key],
    *,
    top: int,
    at: float | None,
    exclude_seen: bool,
    candidates: Sequence[Key] | None,
) -> dict[Key, list[Recommendation]]:
    """Return the best targets of every source; see `Model.recommend`."""
    past, now = model_at(
        model, at, sources=sources, targets=() if candidates is None else candidates
    )
    state = past.state
    source_ids = state.sources.ids(sources)
    # A new source of a one-mode graph is no candidate, unless it is named.
    allowed = np.arange(len(model.state.targets))
    if candidates is not None:
        allowed = np.unique(state.targets.ids(candidates))
    size = max(1, _MAX_CELLS // max(1, len(state.targets)))
    recommendations: dict[Key, list[Recommendation]] = {}
    for start in range(0, len(sources), size):
        ids = source_ids[start : start + size]
        scores_BT = past.score(ids, np.full(len(ids), now))
        for key, source, scores in zip(sources[start : start + size], ids, scores_BT, strict=True):
            shown = past.display_scores(int(source), scores)
            targets = allowed
            if exclude_seen:
                targets = np.setdiff1d(allowed, seen_targets(state, int(source)))
            best = targets[np.argsort(-shown[targets], kind="stable")[:top]]
            recommendations[key] = [
                Recommendation(state.targets.key(target), float(shown[target]))
                for target in best.tolist()
            ]
    return recommendations


def seen_targets(state: StreamState, source: int) -> IntArray:
    """Return the targets that a source has interacted with, in a one-mode graph either way."""
    parties = state.graph.node.reshape(-1, 2)
    seen = parties[parties[:, 0] == source, 1]
    if state.space.kind == "one-mode":
        seen = np.concatenate([seen, parties[parties[:, 1] == source, 0]])
    return np.unique(seen) - state.space.first_target
