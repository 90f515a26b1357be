"""The source features."""

from typing import Any

import numpy as np

from tclgraph.compilation import BORROWING, kernel
from tclgraph.features.columns import MAX_EVENTS, NUM_WINDOWS, RECENT_EVENTS, SourceColumn
from tclgraph.features.log_arrays import Events, NodeColumn, Nodes, Total
from tclgraph.features.logarithm_kernels import log_one_plus


@kernel(**BORROWING)
def write_source(source: int, now: float, events: Events, nodes: Nodes, features: Any) -> None:
    """Write the features of a source; all are 0 before."""
    state = nodes.table[source]
    instance = state[NodeColumn.LAST_INSTANCE]
    if instance < 0:
        return
    age = (now - events.time[instance >> 1]) * events.inverse_unit
    features[SourceColumn.EVENT_AGE] = log_one_plus(age)
    features[SourceColumn.HAS_EVENT] = 1.0
    features[SourceColumn.LAST_AS_TARGET] = instance & 1
    last_as_source = state[NodeColumn.LAST_AS_SOURCE]
    if last_as_source >= 0:
        age = (now - events.time[last_as_source]) * events.inverse_unit
        features[SourceColumn.AS_SOURCE_AGE] = log_one_plus(age)
        features[SourceColumn.WAS_SOURCE] = 1.0
    for window in range(NUM_WINDOWS):
        as_source = state[NodeColumn.AS_SOURCE_SHORT + window]
        # Here a self-loop counts as an event of its source only.
        as_target = state[NodeColumn.AS_TARGET_SHORT + window]
        as_target -= state[NodeColumn.LOOPS_SHORT + window]
        features[SourceColumn.AS_SOURCE_SHORT + window] = log_one_plus(as_source)
        features[SourceColumn.AS_TARGET_SHORT + window] = log_one_plus(as_target)
    num_events = min(events.totals[instance, Total.EVENTS], MAX_EVENTS)
    num_neighbors = events.totals[instance, Total.NEIGHBORS]
    features[SourceColumn.NUM_EVENTS] = log_one_plus(num_events)
    features[SourceColumn.NEIGHBORS_PER_EVENT] = num_neighbors / (num_events + 1)
    features[SourceColumn.NUM_NEIGHBORS] = log_one_plus(num_neighbors)
    is_new = events.is_new[instance]
    for index in range(len(RECENT_EVENTS)):
        number = RECENT_EVENTS[index]
        unused = np.uint64(64 - number)
        share = _num_bits(is_new << unused) / number
        features[SourceColumn.NEW_SHARE_1 + index] = share


@kernel(**BORROWING)
def _num_bits(bits: Any) -> Any:
    """Return the number of bits that are 1, by adding neighboring groups of bits."""
    bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    bits = (bits & pairs) + ((bits >> np.uint64(2)) & pairs)
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))
