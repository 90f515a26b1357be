"""Steps from an instance of a node to the one before and the one after."""

from typing import Any

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel


@kernel
def previous_instance(instance: int, node: IntArray, previous: IntArray) -> Any:
    """Return the instance of the same node in its previous event, or -1."""
    event = previous[instance]
    if event < 0:
        return -1
    return 2 * event if node[2 * event] == node[instance] else 2 * event + 1


@kernel
def link_following(
    first_event: int, node: IntArray, previous: IntArray, following: IntArray
) -> None:
    """Set the links to the following instance that the events from `first_event` on bring."""
    for instance in range(2 * first_event, len(node)):
        following[instance] = -1
    for instance in range(2 * first_event, len(node)):
        # A self-loop is reached once, at its source's instance.
        if instance & 1 and node[instance] == node[instance - 1]:
            continue
        before = previous_instance(instance, node, previous)
        if before >= 0:
            following[before] = instance
