"""A model as it was at an earlier time, or with nodes that it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tclgraph.events.identifiers import Key

if TYPE_CHECKING:
    from tclgraph.models.interface import Model


def model_at(
    model: Model,
    time: float | None,
    *,
    sources: Sequence[Key] = (),
    targets: Sequence[Key] = (),
) -> tuple[Model, float]:
    """Return a model that has observed only the events strictly before a time, and that time.

    Without a time: a model that has observed all events, and the time of its last event. The model
    also knows the given keys; those that are new are nodes without events. The given model does not
    change: if it is not as asked, the events are replayed into a copy.
    """
    model.check_fitted()
    state = model.state
    now = state.last_time if time is None else time
    has_all_events = time is None or not len(state.graph) or time > state.last_time
    new_sources = [key for key in sources if not state.sources.has(key)]
    new_targets = [key for key in targets if not state.targets.has(key)]
    if has_all_events and not new_sources and not new_targets:
        return model, now
    past = model.without_events()
    past.add_nodes(new_sources, new_targets)
    past.observe(state.events() if has_all_events else state.events_before(now))
    return past, now
