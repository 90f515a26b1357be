"""Skip-gram with negative sampling: stochastic gradient descent on the node pairs of walks.

Every node has an *input* vector, used when it is the center of a window, and an *output* vector,
used when it is in the window of another node. The loss of a pair is -log σ(input · output), plus
-log σ(-input · output) for every negative that is drawn from the noise distribution in place of the
second node.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import REORDERED_SUMS, kernel
from tclgraph.random_bits import STEP, mixed

NOISE_POWER = 0.75
"""Exponent of a node's number of occurrences in the noise distribution; below 1, so that frequent
nodes are drawn less often than in proportion to their occurrences."""


class Noise(NamedTuple):
    """Noise distribution over nodes, drawn from in constant time by Walker's alias method.

    A draw takes a column, all equally likely, and then either the node or the alias of the column.
    """

    node: IntArray
    alias: IntArray
    node_probability: FloatArray
    """Probability that a draw of the column gives its node, and not its alias."""


def noise_of(count: IntArray) -> Noise:
    """Return the noise distribution for these numbers of occurrences.

    A node is drawn in proportion to count ** NOISE_POWER; a node with count 0 is never drawn.

    >>> noise_of(np.array([0, 1, 16]))
    Noise(node=array([1, 2]), alias=array([2, 2]), node_probability=array([0.22222222, 1.        ]))
    """
    node = np.flatnonzero(count)
    weight = count[node] ** NOISE_POWER
    alias, node_probability = _aliases(weight * len(node) / weight.sum())
    return Noise(node, node[alias], node_probability)


@kernel
def _aliases(height: FloatArray) -> Any:
    """Fill columns lower than 1 from columns higher than 1, until all have height 1."""
    height = height.copy()
    alias = np.arange(len(height))
    node_probability = np.ones(len(height))
    low = [column for column in range(len(height)) if height[column] < 1]
    high = [column for column in range(len(height)) if height[column] >= 1]
    while len(low) > 0 and len(high) > 0:
        column = low.pop()
        node_probability[column], alias[column] = height[column], high[-1]
        height[high[-1]] -= 1 - height[column]
        if height[high[-1]] < 1:
            low.append(high.pop())
    return alias, node_probability  # the remaining columns have height 1 up to rounding


@kernel
def _integer_and_fraction(bits: Any, limit: int) -> Any:
    """Return an integer below the limit (from the upper 32 bits) and a fraction (the lower 32)."""
    upper, lower = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
    return np.int64((upper * np.uint64(limit)) >> np.uint64(32)), np.float64(lower) / 2.0**32


@kernel(**REORDERED_SUMS)
def train_pair(
    center: int,
    contexts: IntArray,
    input: NDArray[Any],
    output: NDArray[Any],
    learning_rate: float,
    step: NDArray[Any],
) -> float:
    """Make one step of gradient descent, in place, and return the loss before it.

    The first of the contexts is the true one, the others are negatives. `step` is a buffer for the
    step of the input vector, which is applied after all contexts.
    """
    number = input.dtype.type
    loss = 0.0
    step[:] = 0
    for index in range(len(contexts)):
        context = contexts[index]
        score = number(0)
        for column in range(len(step)):
            score += input[center, column] * output[context, column]
        sign = number(1 if index == 0 else -1)
        margin = sign * score
        odds = np.exp(-abs(margin))  # at most 1, so that it cannot overflow
        loss += np.log1p(odds) + max(-margin, number(0))
        scale = (
            number(learning_rate) * sign * (odds if margin > 0 else number(1)) / (number(1) + odds)
        )
        for column in range(len(step)):
            step[column] += scale * output[context, column]
            output[context, column] += scale * input[center, column]
    for column in range(len(step)):
        input[center, column] += step[column]
    return loss


@kernel
def train_walks(
    walks: IntArray,
    window: int,
    num_negatives: int,
    noise: Noise,
    input: NDArray[Any],
    output: NDArray[Any],
    learning_rate: float,
    seed: int,
) -> float:
    """Descend on all pairs of some walks, in place; return the mean loss of a pair.

    A walk is a row, padded with negative numbers. For every node of a walk the size of its window
    is drawn uniformly from 1 to `window`, so near nodes are used more often than far ones.
    """
    state = np.uint64(seed)
    contexts = np.empty(1 + num_negatives, np.int64)
    step = np.empty(input.shape[1], input.dtype)
    loss, num_pairs = 0.0, 0
    for walk in walks:
        length = 0
        while length < len(walk) and walk[length] >= 0:
            length += 1
        for center in range(length):
            state += STEP
            reach = 1 + _integer_and_fraction(mixed(state), window)[0]
            for position in range(max(0, center - reach), min(length, center + reach + 1)):
                if position == center:
                    continue
                contexts[0] = walk[position]
                count = 1
                for _ in range(num_negatives):
                    state += STEP
                    column, fraction = _integer_and_fraction(mixed(state), len(noise.node))
                    is_node = fraction < noise.node_probability[column]
                    contexts[count] = noise.node[column] if is_node else noise.alias[column]
                    count += contexts[count] != contexts[0]  # the true context is no negative
                loss += train_pair(
                    walk[center], contexts[:count], input, output, learning_rate, step
                )
                num_pairs += 1
    return loss / max(num_pairs, 1)
