"""Compare drawn partners with powers of the transition matrix, and with stored walks."""

import numpy as np

from tclgraph.arrays import FloatArray
from tclgraph.sampling.context_pairs import ContextPairs
from tclgraph.sampling.snapshots import adjacency

# 0 and 1 interact three times, 1 and 2 once, 2 and 0 once, 2 and 3 twice; 4 has no events.
EVENTS = [0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 2, 3, 3, 2]
GRAPH = adjacency(np.array(EVENTS), 5)
WEIGHT = np.array([[0, 3, 1, 0], [3, 0, 1, 0], [1, 1, 0, 2], [0, 0, 2, 0]], dtype=float)
STEP = WEIGHT / WEIGHT.sum(1, keepdims=True)


def share(drawn: list[int]) -> FloatArray:
    return np.bincount(drawn, minlength=5) / len(drawn)


def test_partners_follow_powers_of_the_transition_matrix() -> None:
    expected, power = np.zeros((4, 4)), np.eye(4)
    for distance in range(1, 11):
        power = power @ STEP
        expected += (20 - distance) / 145 * power
    random = np.random.default_rng(0)
    drawn = ContextPairs(GRAPH).draw(np.array([3, 0, 0]), 40_000, random)
    assert drawn.shape == (3, 40_000)
    for row, node in enumerate([3, 0, 0]):
        drawn_share = share(drawn[row].tolist())
        assert drawn_share[4] == 0
        assert np.abs(drawn_share[:4] - expected[node]).max() < 0.01


def test_partners_are_distributed_as_on_stored_walks() -> None:
    random = np.random.default_rng(1)
    partners: list[int] = []
    for _ in range(300):
        # The walk starts in the stationary distribution.
        walk = [int(random.choice(4, p=WEIGHT.sum(1) / WEIGHT.sum()))]
        while len(walk) < 20:
            walk.append(int(random.choice(4, p=STEP[walk[-1]])))
        partners += [
            walk[other]
            for place in range(20)
            for other in range(max(0, place - 10), min(20, place + 11))
            if other != place and walk[place] == 3
        ]
    drawn = ContextPairs(GRAPH).draw(np.array([3]), 20_000, random)
    assert np.abs(share(drawn[0].tolist()) - share(partners)).max() < 0.02


def test_a_step_leads_to_a_neighbor() -> None:
    """Weights differ so much that a rounded sum could point past the end of a row."""
    graph = adjacency(np.array([0, 1] * 1_000 + [2, 3]), 4)
    drawn = ContextPairs(graph).draw(np.array([0, 3]), 1_000, np.random.default_rng(0))
    assert set(drawn[0].tolist()) == {0, 1}
    assert set(drawn[1].tolist()) == {2, 3}


def test_no_nodes_have_no_partners() -> None:
    no_nodes = np.empty(0, dtype=np.int64)
    drawn = ContextPairs(adjacency(no_nodes, 2)).draw(no_nodes, 3, np.random.default_rng(0))
    assert drawn.shape == (0, 3)
