"""The structural mask: which members of a sub-graph each query may attend to (Ψ in the paper).

The paper lets a query attend to the members of SG(q), the sub-graph rooted at the query node. In a
sub-graph of k levels a member at depth d therefore attends to itself and to every instance that it
depends on through at most k - 1 - d steps: no query looks past the last level of the sub-graph. No
mask matrix is built; each query has a list of the rows that it attends to.

To narrow the mask, let `attend` skip events. Its choice may depend on the row but not on the rest
of the sub-graph, because sub-graphs share rows.

A row has the same key list in every sub-graph, with one exception. Where a sub-graph contains a
path to an event that is shorter than the path through the row, it lists the event at a smaller
depth, and the instances of the event are other rows. The *signature* of a query holds these
differences in depth. Queries with the same row and the same signature have the same keys and are
stored once.
"""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, kernel
from tclgraph.sampling.kernels import SubgraphMembers

# A signature is an integer with 3 bits for each of the first 20 events that a query attends to.
# Queries whose differences need more bits get no signature, and are stored once per sub-graph.
_SIGNATURE_BITS = 3
_MOST_SIGNED_EVENTS = 20
_NO_SIGNATURE = -1
_NO_QUERY = -1


@kernel(**BORROWING)
def attend(
    row: int,
    depth: int,
    root: int,
    reach_start: IntArray,
    reach_instance: IntArray,
    reach_steps: IntArray,
    position: IntArray,
) -> Any:
    """Choose the events whose instances a member attends to; return their number and a signature.

    The member is a row at a depth, in the sub-graph of the row `root`; the events that each row
    reaches are given as in `SubgraphMembers`. The positions of the chosen events among the events
    of the sub-graph are written to `position`.
    """
    root_start, root_end = reach_start[root], reach_start[root + 1]
    place = root_start
    count, signature = 0, 0
    for reached in range(reach_start[row], reach_start[row + 1]):
        # Both lists are breadth first, so the search continues at the previous event.
        while reach_instance[place] >> 1 != reach_instance[reached] >> 1:
            place += 1
            if place == root_end:
                place = root_start
        position[count] = place - root_start
        nearer = depth + reach_steps[reached] - reach_steps[place]
        if nearer > 0:
            if count >= _MOST_SIGNED_EVENTS or nearer >> _SIGNATURE_BITS > 0:
                signature = _NO_SIGNATURE
            elif signature != _NO_SIGNATURE:
                signature |= nearer << (_SIGNATURE_BITS * count)
        count += 1
    return count, signature


@kernel
def list_keys(members: SubgraphMembers) -> Any:
    """Return the distinct queries, the rows that each attends to, and the query of every slot.

    The arrays are `query_row`, `key_start`, `key_row` and `stream_query` of `PackedSubgraphs`.
    """
    _, row_depth, reach_start, reach_instance, reach_steps, stream_start, slot_row = members
    num_slots = len(slot_row)
    most_keys, most_events = num_slots, 0
    for row in slot_row:
        num_events = reach_start[row + 1] - reach_start[row]
        most_keys += 2 * num_events
        most_events = max(most_events, num_events)
    position = np.empty(most_events, np.int64)

    num_queries = 0
    query_row = np.empty(num_slots, np.int64)
    query_signature = np.empty(num_slots, np.int64)
    key_start = np.zeros(num_slots + 1, np.int64)
    key_row = np.empty(most_keys, np.int64)
    slot_query = np.empty(num_slots, np.int64)
    # The queries of a row that have a signature form a linked list.
    newest_query = np.full(len(row_depth), _NO_QUERY, np.int64)
    older_query = np.empty(num_slots, np.int64)

    for stream in range(len(stream_start) - 1):
        root_slot = stream_start[stream]
        root = slot_row[root_slot]
        for slot in range(root_slot, stream_start[stream + 1]):
            row = slot_row[slot]
            num_events, signature = attend(
                row, row_depth[row], root, reach_start, reach_instance, reach_steps, position
            )
            query = newest_query[row] if signature != _NO_SIGNATURE else _NO_QUERY
            while query != _NO_QUERY and query_signature[query] != signature:
                query = older_query[query]
            if query == _NO_QUERY:
                query = num_queries
                num_queries += 1
                query_row[query] = row
                query_signature[query] = signature
                if signature != _NO_SIGNATURE:
                    older_query[query] = newest_query[row]
                    newest_query[row] = query
                key = key_start[query]
                key_row[key] = row
                for number in range(num_events):
                    event_slot = root_slot + 1 + 2 * position[number]
                    key_row[key + 1 + 2 * number] = slot_row[event_slot]
                    key_row[key + 2 + 2 * number] = slot_row[event_slot + 1]
                key_start[query + 1] = key + 1 + 2 * num_events
            slot_query[slot] = query

    return _single_keys_last(query_row[:num_queries], key_start, key_row, slot_query)


@kernel
def _single_keys_last(
    query_row: IntArray, key_start: IntArray, key_row: IntArray, slot_query: IntArray
) -> Any:
    """Return the arrays of `list_keys` with all queries that have one key at the end."""
    num_queries = len(query_row)
    position = np.empty(num_queries, np.int64)
    sorted_row = np.empty(num_queries, np.int64)
    sorted_start = np.zeros(num_queries + 1, np.int64)
    sorted_keys = np.empty(key_start[num_queries], np.int64)
    count = 0
    for is_single in (False, True):
        for query in range(num_queries):
            first, last = key_start[query], key_start[query + 1]
            if (last - first == 1) == is_single:
                position[query] = count
                sorted_row[count] = query_row[query]
                start = sorted_start[count]
                sorted_start[count + 1] = start + last - first
                for key in range(last - first):
                    sorted_keys[start + key] = key_row[first + key]
                count += 1
    for slot in range(len(slot_query)):
        slot_query[slot] = position[slot_query[slot]]
    return sorted_row, sorted_start, sorted_keys, slot_query
