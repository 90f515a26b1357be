"""The skip-gram with negative sampling: descent on one pair of neighbours in a walk after another.

Every node has an *input* vector, as the one in the middle of a window, and an *output* vector, as
one of those around it. A pair costs -log σ(input · output) of its two nodes, and as much with the
sign turned for every node that is drawn from the noise in place of the second.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tclgraph.arrays import FloatArray, IntArray

NOISE_POWER = 0.75
"""Of how often a node occurs, so that frequent ones are drawn less often than that."""
# Sums may be taken in any order, so that they can be taken several terms at a time.
_IN_ANY_ORDER = {"reassoc", "nsz", "contract"}
# SplitMix64, a generator of few instructions: NumPy's would take longer than all the rest.
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


class Noise(NamedTuple):
    """Nodes in unequal shares, drawn in two looks however many there are (Walker's alias method).

    A column is drawn first, all being equally likely; then its node or the other one it has.
    """

    node: IntArray
    other: IntArray
    own_share: FloatArray
    """Of the column, that goes to the node."""


def noise_of(count: IntArray) -> Noise:
    """Nodes by how often they occur, to that power; those that never do are never drawn.

    >>> noise_of(np.array([0, 1, 16]))
    Noise(node=array([1, 2]), other=array([2, 2]), own_share=array([0.22222222, 1.        ]))
    """
    node = np.flatnonzero(count)
    weight = count[node] ** NOISE_POWER
    other, own_share = _aliases(weight * len(node) / weight.sum())
    return Noise(node, node[other], own_share)


@njit(cache=True, nogil=True)
def _aliases(height: FloatArray) -> Any:
    """Fill columns that are too low from those that are too high, until all have height 1."""
    height = height.copy()
    other = np.arange(len(height))
    own_share = np.ones(len(height))
    low = [column for column in range(len(height)) if height[column] < 1]
    high = [column for column in range(len(height)) if height[column] >= 1]
    while len(low) > 0 and len(high) > 0:
        column = low.pop()
        own_share[column], other[column] = height[column], high[-1]
        height[high[-1]] -= 1 - height[column]
        if height[high[-1]] < 1:
            low.append(high.pop())
    return other, own_share  # what is left is full but for rounding


@njit(cache=True, nogil=True)
def _scrambled(state: Any) -> Any:
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))


@njit(cache=True, nogil=True)
def _below(bits: Any, limit: int) -> Any:
    """A whole number from the upper half of the bits, and a fraction from the lower."""
    upper, lower = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
    return np.int64((upper * np.uint64(limit)) >> np.uint64(32)), np.float64(lower) / 2.0**32


@njit(cache=True, nogil=True, fastmath=_IN_ANY_ORDER)
def learn_pair(
    middle: int,
    others: IntArray,
    input: NDArray[Any],
    output: NDArray[Any],
    rate: float,
    step: NDArray[Any],
) -> float:
    """One step of descent, in place; the first of the others is the true one. Returns the loss.

    `step` is room for what the input vector is moved by once all the others are seen to.
    """
    number = input.dtype.type
    loss = 0.0
    step[:] = 0
    for place in range(len(others)):
        other = others[place]
        score = number(0)
        for at in range(len(step)):
            score += input[middle, at] * output[other, at]
        sign = number(1 if place == 0 else -1)
        margin = sign * score
        odds = np.exp(-abs(margin))  # no larger than 1, whatever the score
        loss += np.log1p(odds) + max(-margin, number(0))
        move = number(rate) * sign * (odds if margin > 0 else number(1)) / (number(1) + odds)
        for at in range(len(step)):
            step[at] += move * output[other, at]
            output[other, at] += move * input[middle, at]
    for at in range(len(step)):
        input[middle, at] += step[at]
    return loss


@njit(cache=True, nogil=True)
def learn_walks(
    walks: IntArray,
    window: int,
    num_negatives: int,
    noise: Noise,
    input: NDArray[Any],
    output: NDArray[Any],
    rate: float,
    seed: int,
) -> float:
    """Descend on all pairs of some walks, in place; returns the mean loss of a pair.

    Walks are rows, filled up with negative numbers. Each node of a walk looks at up to `window`
    others on either side, how many is drawn: so near ones count more.
    """
    state = np.uint64(seed)
    others = np.empty(1 + num_negatives, np.int64)
    step = np.empty(input.shape[1], input.dtype)
    loss, num_pairs = 0.0, 0
    for walk in walks:
        length = 0
        while length < len(walk) and walk[length] >= 0:
            length += 1
        for middle in range(length):
            state += _STRIDE
            reach = 1 + _below(_scrambled(state), window)[0]
            for near in range(max(0, middle - reach), min(length, middle + reach + 1)):
                if near == middle:
                    continue
                others[0] = walk[near]
                count = 1
                for _ in range(num_negatives):
                    state += _STRIDE
                    column, fraction = _below(_scrambled(state), len(noise.node))
                    is_own = fraction < noise.own_share[column]
                    others[count] = noise.node[column] if is_own else noise.other[column]
                    count += others[count] != others[0]  # what is true is no noise
                loss += learn_pair(walk[middle], others[:count], input, output, rate, step)
                num_pairs += 1
    return loss / max(num_pairs, 1)
