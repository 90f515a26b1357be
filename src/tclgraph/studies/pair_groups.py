"""Groups of test events: by when their pair occurred first, and by which nodes are unseen."""

import numpy as np

from tclgraph.arrays import BoolArray
from tclgraph.events.split import Split

IN_TRAINING = "in training"
SINCE_TRAINING = "since training"
NEW_PAIR = "new pair"
BOTH_SEEN = "both seen"
SOURCE_UNSEEN = "source unseen"
TARGET_UNSEEN = "target unseen"
BOTH_UNSEEN = "both unseen"


def pair_groups(split: Split) -> dict[str, BoolArray]:
    """Return which test events are in each group; a group may be empty."""
    _, first, inverse = np.unique(split.events.pairs(), return_index=True, return_inverse=True)
    first_of_pair = first[inverse][split.valid_end :]
    event = np.arange(split.valid_end, len(split.events))
    is_in_training = first_of_pair < split.train_end
    is_new = first_of_pair == event
    return {
        IN_TRAINING: is_in_training,
        SINCE_TRAINING: ~is_in_training & ~is_new,
        NEW_PAIR: is_new,
    }


def unseen_groups(split: Split) -> dict[str, BoolArray]:
    """Return which test events have a source or a target that is absent from the training events.

    A group may be empty.
    """
    source, target = (is_unseen[split.valid_end :] for is_unseen in split.unseen())
    return {
        BOTH_SEEN: ~source & ~target,
        SOURCE_UNSEEN: source & ~target,
        TARGET_UNSEEN: ~source & target,
        BOTH_UNSEEN: source & target,
    }
