"""A model as it was at an earlier time."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tclgraph.models.interface import Model


def model_at(model: Model, time: float | None) -> tuple[Model, float]:
    """Return a model that has observed only the events strictly before a time, and that time.

    Without a time: the model itself, and the time of its last event.
    """
    model.check_fitted()
    last = model.state.last_time
    if time is None:
        return model, last
    if not len(model.state.graph) or time > last:
        return model, time
    past = copy.copy(model)
    past.forget()
    past.observe(model.state.events_before(time))
    return past, time
