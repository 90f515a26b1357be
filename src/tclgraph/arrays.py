"""Names for the NumPy array types that the packages exchange."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
RealArray: TypeAlias = NDArray[np.floating]
"""Numbers in single or double precision."""
ScoreArray: TypeAlias = RealArray
"""Scores, one row per query and one column per target; float32 or float64."""
