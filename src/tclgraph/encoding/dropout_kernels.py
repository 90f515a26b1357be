"""Random choices of input dropout.

They depend on the seed, the row's instance and its depth only, so not on how a batch is divided.
"""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.random_bits import STEP, mixed

NUM_RANDOM_VALUES = 1 << 16
"""Number of values of 16 random bits; a value below the threshold keeps the number."""


@kernel
def choose_kept(
    seed: int, threshold: int, instance: IntArray, depth: IntArray, is_kept: Any
) -> None:
    """Write which numbers of each row are kept, given the row's instance and depth."""
    for row in range(len(is_kept)):
        of_instance = mixed(np.uint64(seed) + np.uint64(instance[row]) * STEP)
        key = mixed(of_instance + np.uint64(depth[row]))
        choice = is_kept[row]
        bits = np.uint64(0)
        for column in range(len(choice)):
            if column % 4 == 0:
                key += STEP
                bits = mixed(key)
            choice[column] = (bits & np.uint64(NUM_RANDOM_VALUES - 1)) < np.uint64(threshold)
            bits >>= np.uint64(16)
