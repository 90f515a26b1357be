"""The columns of the history features, in order, with the meaning of each.

There are four groups: features of the *source* of a query, of a *pair* (the source and a node it
has interacted with), and of a *candidate*, which are its *activity* followed by what is *nearby*
the source. To add a feature, add a column here, compute it in the kernels of its group, and add it
to `tests/reference/history.py`. A flag of a pair or a candidate also goes into `features/block.py`.
A moving feature, which differs from query to query, also goes there and into the unrolled loops of
`models/ranker/conditioned_kernels.py`.

All features describe the events strictly before the query, in single precision:

- An age or a gap of length Δ is log(1 + Δ / unit), a number is log(1 + number), and a flag is 0 or
  1. The unit and the lengths of three time windows are measured on the training events, see
  `time_scale`.
- An age of something that never happened is 0. The flag beside it tells this from "just now".
- The short, the medium and the long window end at the query. An event is in a window if it is less
  than the length of the window ago.
- A *neighbor* of a node is a node it has interacted with, in either direction. A *new pair* is an
  event of two nodes that had not interacted before.
- In a bipartite graph a source is never a target and a target is never a source, so the features
  of the missing role are 0.
- A self-loop is one event in which the node is the source. As a candidate the node is the target
  of this event, too. In the source and pair features it is its own neighbor; elsewhere it is not.
- Pair features, and the numbers of events, neighbors and new pairs of a source, count only its
  latest 2,000 events. For them, a pair is also new if its earlier events are older than that. Of
  the neighbors in these events the latest 512 have pair features. What followed events with the
  latest neighbor is counted for 128 of them.
"""

from enum import IntEnum

NUM_WINDOWS = 3
"""Number of time windows: short, medium and long."""
MAX_EVENTS = 2_000
"""Number of a source's latest events that count for source and pair features."""
MAX_PAIRS = 512
"""Number of latest neighbors of the source that have pair features."""
MAX_LATEST_EVENTS = 128
"""Number of latest events with the source's latest neighbor, before the last, whose next events
count."""
RECENT_EVENTS = (1, 4, 16, 64)
"""Numbers of latest events for which the share of new pairs is a feature of the source."""


class SourceColumn(IntEnum):
    """Features of the source of a query."""

    EVENT_AGE = 0
    """Time since the source's last event."""
    HAS_EVENT = 1
    """Whether the source has an event."""
    LAST_AS_TARGET = 2
    """Whether it was the target of its last event."""
    AS_SOURCE_AGE = 3
    """Time since it was last the source of an event."""
    WAS_SOURCE = 4
    """Whether it ever was the source of an event."""
    AS_SOURCE_SHORT = 5
    """Events in the short window with it as their source."""
    AS_SOURCE_MEDIUM = 6
    """Events in the medium window with it as their source."""
    AS_SOURCE_LONG = 7
    """Events in the long window with it as their source."""
    AS_TARGET_SHORT = 8
    """Events in the short window with it as their target."""
    AS_TARGET_MEDIUM = 9
    """Events in the medium window with it as their target."""
    AS_TARGET_LONG = 10
    """Events in the long window with it as their target."""
    NUM_EVENTS = 11
    """Number of its events."""
    NEW_SHARE_1 = 12
    """Whether its last event was a new pair."""
    NEW_SHARE_4 = 13
    """Number of new pairs among its last 4 events, divided by 4."""
    NEW_SHARE_16 = 14
    """Number of new pairs among its last 16 events, divided by 16."""
    NEW_SHARE_64 = 15
    """Number of new pairs among its last 64 events, divided by 64."""
    NEIGHBORS_PER_EVENT = 16
    """Number of its neighbors divided by one more than the number of its events; no logarithm."""
    NUM_NEIGHBORS = 17
    """Number of its neighbors."""


class PairColumn(IntEnum):
    """Features of a pair: the source and a neighbor of it.

    A forward event goes from the source to the neighbor, a backward event the other way.
    """

    AGE = 0
    """Time since the pair's last event."""
    FORWARD_AGE = 1
    """Time since the last forward event."""
    HAS_FORWARD = 2
    """Whether there is a forward event."""
    BACKWARD_AGE = 3
    """Time since the last backward event."""
    HAS_BACKWARD = 4
    """Whether there is a backward event."""
    NUM_FORWARD = 5
    """Number of forward events."""
    NUM_BACKWARD = 6
    """Number of backward events."""
    RECENCY_RANK = 7
    """Logarithm of the neighbor's rank among the source's neighbors, 1 for the latest."""
    LAST_IS_BACKWARD = 8
    """Whether the pair's last event is backward."""
    RUN_LENGTH = 9
    """Number of latest events of the pair that have the same direction."""
    IN_SHORT = 10
    """Events of the pair in the short window."""
    IN_MEDIUM = 11
    """Events of the pair in the medium window."""
    IN_LONG = 12
    """Events of the pair in the long window."""
    MEAN_GAP = 13
    """Mean time between successive events of the pair."""
    HAS_GAP = 14
    """Whether the pair has more than one event."""
    EVENTS_SINCE = 15
    """Number of the source's events since the pair's last event."""
    NUM_AFTER_LATEST = 16
    """How often the source had a next event after one with its latest neighbor."""
    NEXT_AFTER_LATEST = 17
    """How often the source's next event after one with its latest neighbor was with this one."""
    RECENT_AFTER_LATEST = 18
    """The same, with weight 1/n for the n-th latest of the events with the latest neighbor."""
    NEXT_AFTER_TWO = 19
    """The same without weights, for events with the latest neighbor that followed an event with the
    one before it: how often this neighbor came next after the latest two in their order."""
    NEXT_AFTER_THREE = 20
    """How often it came next after the latest three neighbors in their order."""


class ActivityColumn(IntEnum):
    """Features of a candidate that do not depend on the source."""

    AS_TARGET_AGE = 0
    """Time since the candidate was last a target."""
    WAS_TARGET = 1
    """Whether it ever was a target."""
    AS_SOURCE_AGE = 2
    """Time since it was last a source."""
    WAS_SOURCE = 3
    """Whether it ever was a source."""
    NUM_AS_TARGET = 4
    """Number of events with it as their target."""
    AS_TARGET_SHORT = 5
    """Events in the short window with it as their target."""
    AS_TARGET_MEDIUM = 6
    """Events in the medium window with it as their target."""
    AS_TARGET_LONG = 7
    """Events in the long window with it as their target."""
    AS_SOURCE_SHORT = 8
    """Events in the short window with it as their source."""
    AS_SOURCE_MEDIUM = 9
    """Events in the medium window with it as their source."""
    AS_SOURCE_LONG = 10
    """Events in the long window with it as their source."""
    AS_TARGET_RANK = 11
    """Number of candidates that were a target later than it."""
    EVENT_RANK = 12
    """Number of candidates with a later last event; an event's target ranks before its source."""
    NUM_NEIGHBORS = 13
    """Number of its neighbors."""
    NUM_FIRST_AS_TARGET = 14
    """Number of its neighbors whose first event with it had it as the target."""


class NearbyColumn(IntEnum):
    """Features of a candidate that say how close it is to the source of the query.

    All but the last look at the 20 latest neighbors of the source among its latest 100 events, and
    at the 20 latest events of each neighbor, except those with the source. Steps that lead back to
    the neighbor are not counted. The n-th latest neighbor has weight 1/n.
    """

    NEIGHBOR_EVENTS = 0
    """Weighted number of events between the source's neighbors and the candidate.

    In a bipartite graph the other node of such an event is a source. The candidate counts each time
    it is among the last 5 targets of this source before the event.
    """
    NEXT_AFTER_LATEST = 1
    """How often nodes turned to the candidate right after an event with the latest neighbor."""
    NEXT_AFTER_EARLIER = 2
    """Weighted number of times nodes did so after an event with one of the other neighbors."""
    WALK = 3
    """Probability that a random walk of three steps from the source ends at the candidate.

    The first two steps go to one of the 64 neighbors that a node gained last, the third to one of
    the 32, all equally likely. The probability is divided by a tenth of that of a uniform choice
    among the targets of the training events.
    """


NUM_SOURCE_FEATURES = len(SourceColumn)
NUM_PAIR_FEATURES = len(PairColumn)
NUM_AFTER_FEATURES = len(PairColumn) - int(PairColumn.NEXT_AFTER_LATEST)
"""Number of pair features that count what came next: NEXT_AFTER_LATEST and those after it."""
NUM_ACTIVITY_FEATURES = len(ActivityColumn)
NUM_NEARBY_FEATURES = len(NearbyColumn)
NUM_CANDIDATE_FEATURES = NUM_ACTIVITY_FEATURES + NUM_NEARBY_FEATURES
NUM_SPARSE_FEATURES = int(NearbyColumn.WALK)
"""Number of nearby features that count events, 0 for nearly all candidates: all but the walk."""
