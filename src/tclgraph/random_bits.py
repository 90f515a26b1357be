"""Random bits in compiled loops.

SplitMix64 takes a few instructions, where a generator of NumPy would take longer than the loops
that need it: the numbers STEP, 2 · STEP, 3 · STEP, … plus a seed are mixed.
"""

from typing import Any

import numpy as np

from tclgraph.compilation import kernel

STEP = np.uint64(0x9E3779B97F4A7C15)


@kernel
def mixed(number: Any) -> Any:
    """Return 64 bits that look random, different ones for different numbers.

    >>> f"{mixed(STEP):x}"
    'e220a8397b1dcdaf'
    """
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
