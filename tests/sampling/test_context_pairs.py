"""Partners against powers of the transition matrix, and against walks that are kept."""

import numpy as np

from tclgraph.arrays import FloatArray
from tclgraph.sampling.context_pairs import ContextPairs
from tclgraph.sampling.snapshots import adjacency

# 0 and 1 met thrice, 1 and 2 once, 2 and 0 once, 2 and 3 twice; 4 met nobody.
MEETINGS = [0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 2, 3, 3, 2]
GRAPH = adjacency(np.array(MEETINGS), 5)
WEIGHT = np.array([[0, 3, 1, 0], [3, 0, 1, 0], [1, 1, 0, 2], [0, 0, 2, 0]], dtype=float)
STEP = WEIGHT / WEIGHT.sum(1, keepdims=True)


def share(drawn: list[int]) -> FloatArray:
    return np.bincount(drawn, minlength=5) / len(drawn)


def test_partners_are_where_walks_end() -> None:
    expected, power = np.zeros((4, 4)), np.eye(4)
    for distance in range(1, 11):
        power = power @ STEP
        expected += (20 - distance) / 145 * power
    random = np.random.default_rng(0)
    drawn = ContextPairs(GRAPH).draw(np.array([3, 0, 0]), 40_000, random)
    assert drawn.shape == (3, 40_000)
    for row, node in enumerate([3, 0, 0]):
        found = share(drawn[row].tolist())
        assert found[4] == 0
        assert np.abs(found[:4] - expected[node]).max() < 0.01


def test_pairs_on_kept_walks_are_the_same() -> None:
    random = np.random.default_rng(1)
    partners: list[int] = []
    for _ in range(300):
        # Begun where such walks are in the long run.
        walk = [int(random.choice(4, p=WEIGHT.sum(1) / WEIGHT.sum()))]
        while len(walk) < 20:
            walk.append(int(random.choice(4, p=STEP[walk[-1]])))
        partners += [
            walk[other]
            for at in range(20)
            for other in range(max(0, at - 10), min(20, at + 11))
            if other != at and walk[at] == 3
        ]
    drawn = ContextPairs(GRAPH).draw(np.array([3]), 20_000, random)
    assert np.abs(share(drawn[0].tolist()) - share(partners)).max() < 0.02


def test_only_neighbors_are_stepped_to() -> None:
    """Weights of very different size, where a rounded sum could point beyond a row."""
    graph = adjacency(np.array([0, 1] * 1_000 + [2, 3]), 4)
    drawn = ContextPairs(graph).draw(np.array([0, 3]), 1_000, np.random.default_rng(0))
    assert set(drawn[0].tolist()) == {0, 1}
    assert set(drawn[1].tolist()) == {2, 3}


def test_nobody_has_no_partners() -> None:
    nobody = np.empty(0, dtype=np.int64)
    assert ContextPairs(adjacency(nobody, 2)).draw(nobody, 3, np.random.default_rng(0)).shape == (
        0,
        3,
    )
