"""Random projections of temporal walk matrices, the state of TPNet.

A walk goes backwards in the log: every step uses an event before that of the previous step, in the
order of events, so simultaneous events follow each other. At time t, a step along an event of time
s has the weight e^(-λ(t - s)), and a walk has the product of the weights of its steps. The entry
(u, w) of the walk matrix A^(k) is the sum of the weights of all walks of k steps from u to w. A^(0)
is the identity.

A walk matrix has an entry for every pair of nodes, so its product with a random matrix of few
columns is stored instead. The entries of the random matrix are independent, with a mean of 0 and a
variance of 1 over the number of columns, so the product of two stored rows is an unbiased estimate
of the product of the two rows of walk matrices.

The stored matrices are those at a time called the origin, as if all events had happened by then: at
time t, A^(k) is the stored one times e^(-kλ(t - origin)). So nothing changes as time passes, and an
event of time s changes the rows of its two nodes only, by a step of weight e^(λ(s - origin)). If
this weight would exceed e, the origin moves to the time of the event, and all rows decay. A stored
number is therefore at most e^k times the number that it stands for, and single precision costs a
rounding error per event. Numbers of walks grow with the power of k, so products of rows are
computed in double precision, in which they do not overflow.

Shapes: V all nodes, N given nodes, K walk matrices A^(0), A^(1), …, L the same without A^(0), D
width of a projected row, E events, B queries, C candidates of a query, P products.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.baselines.coupled_states import as_index
from tclgraph.events.stream import GraphKind
from tclgraph.sampling.t_batches import LatestInstances, t_batches

# Largest λ(s - origin) of an event of time s.
_MAX_AGE = 1.0


class WalkTable(NamedTuple):
    """The stored rows of nodes before each event of a range."""

    node: IntArray
    """Ascending nodes whose rows are known."""
    row: Tensor
    """Rows of `node` before the range, then the rows of both nodes of every event after it,
    [N + 2E, K, D]."""
    latest: LatestInstances
    """Latest instances of nodes in the range, counted from 0."""

    def row_index(self, node: IntArray, event: IntArray) -> IntArray:
        """Return the index in `row` of nodes just before events, counted from 0."""
        instance = self.latest.before(node, event)
        return np.where(instance >= 0, len(self.node) + instance, np.searchsorted(self.node, node))


class WalkState:
    """The projected walk matrices of all nodes after the events so far.

    >>> state = WalkState(torch.eye(3), torch.zeros(3, 1, 3), origin=0.0, decay=0.0)
    >>> _ = state.update(np.array([[0, 1], [0, 1], [1, 2]]), np.zeros(3))
    >>> state.rows(np.array([1])).tolist()  # two walks of a step to node 0, one to node 2
    [[[0.0, 1.0, 0.0], [2.0, 0.0, 1.0]]]
    """

    def __init__(
        self, identity_VD: Tensor, walks_VLD: Tensor, *, origin: float, decay: float
    ) -> None:
        """Take the random matrix, the other matrices, and the decay per second (λ).

        `identity_VD` is also the projection of A^(0). `update` changes `walks_VLD` in place.
        """
        self.identity_VD, self.walks_VLD = identity_VD, walks_VLD
        self.origin, self.decay = origin, decay

    def ages(self, time: FloatArray) -> FloatArray:
        """Return λ(t - origin) of times t; an earlier time counts as the origin."""
        ages: FloatArray = self.decay * np.maximum(time - self.origin, 0.0)
        return ages

    def rows(self, node: IntArray) -> Tensor:
        """Return the stored rows of nodes, [N, K, D]."""
        index = as_index(node, self.walks_VLD)
        return torch.cat([self.identity_VD[index][:, None], self.walks_VLD[index]], dim=1)

    def stretches(self, time: FloatArray, most: int) -> Iterator[slice]:
        """Divide events into ranges of at most `most` events, with one origin each.

        The origin moves before a range is yielded, so update the state by each range before asking
        for the next. Where the origin moves depends on the events and not on `most`.
        """
        begin = 0
        while begin < len(time):
            if self.ages(time[begin : begin + 1])[0] > _MAX_AGE:
                self._move_origin(float(time[begin]))
            ages = self.ages(time[begin : begin + most])
            end = begin + int(np.searchsorted(ages, _MAX_AGE, side="right"))
            yield slice(begin, end)
            begin = end

    def _move_origin(self, time: float) -> None:
        age = torch.from_numpy(self.ages(np.array([time])))
        decay_L = level_decay(age, self.walks_VLD.shape[1] + 1)[0, 1:]
        self.walks_VLD *= decay_L.to(self.walks_VLD)[:, None]
        self.origin = time

    def update(self, pairs: IntArray, time: FloatArray) -> Tensor:
        """Update the rows by events of one stretch; return those of their nodes after each event.

        `pairs` has the source and the target of each event, [E, 2], and the result is [E, 2, K, D].
        It equals that of one event after another, where each adds its partner's row of A^(k - 1)
        before the event to a node's row of A^(k). Events without a common node are processed
        together.
        """
        node, position = np.unique(pairs, return_inverse=True)
        position = position.reshape(pairs.shape)
        row_NKD = self.rows(node)
        weight_E = torch.from_numpy(np.exp(self.ages(time))).to(row_NKD).view(-1, 1, 1, 1)
        after_E2KD = row_NKD.new_empty(*pairs.shape, *row_NKD.shape[1:])
        order, start = t_batches(position[:, 0].copy(), position[:, 1].copy())
        order_E, row_E2 = as_index(order, row_NKD), as_index(position[order], row_NKD)
        for begin, end in pairwise(start.tolist()):
            event, row = order_E[begin:end], row_E2[begin:end]
            pair_B2KD = row_NKD[row]
            pair_B2KD[:, :, 1:] += weight_E[event] * pair_B2KD.flip(1)[:, :, :-1]
            # The two rows of a self-loop are equal, so it is one step of its node.
            row_NKD[row] = pair_B2KD
            after_E2KD[event] = pair_B2KD
        self.walks_VLD[as_index(node, row_NKD)] = row_NKD[:, 1:]
        return after_E2KD

    def follow(self, node: IntArray, pairs: IntArray, time: FloatArray) -> WalkTable:
        """Update the rows by events of one stretch; return those of nodes before each event.

        `node` has the ascending nodes whose rows are needed.
        """
        before_NKD = self.rows(node)
        after_NKD = self.update(pairs, time).flatten(0, 1)
        return WalkTable(node, torch.cat([before_NKD, after_NKD]), LatestInstances(pairs.ravel()))


class WalkProducts(nn.Module):
    """The products of stored rows that describe a source and a candidate.

    They are the products of the source's rows with each other (*own*), of the candidate's rows with
    each other, and of the source's rows with the candidate's (*cross*).

    Paper: all entries of the matrix of products of the 2K rows. Here: two changes.
    Each product is taken once. Because: the matrix is symmetric.
    In a bipartite graph, products that are truly zero are left out. Because: their estimates are
    noise. After an even number of steps a walk is back on its side, so walks of k and of j steps
    from one node have common ends only if k + j is even, and walks from a source and from a target
    only if it is odd.

    >>> products = WalkProducts("bipartite", 2)
    >>> products.own_pairs, products.cross_pairs
    ([(0, 0), (1, 1)], [(0, 1), (1, 0)])
    """

    own_index: Tensor
    own_steps: Tensor
    cross_index: Tensor
    cross_steps: Tensor

    def __init__(self, kind: GraphKind, num_matrices: int) -> None:
        super().__init__()
        levels = [(k, j) for k in range(num_matrices) for j in range(num_matrices)]
        own, cross = [(k, j) for k, j in levels if k <= j], levels
        if kind == "bipartite":
            own = [(k, j) for k, j in own if (k + j) % 2 == 0]
            cross = [(k, j) for k, j in cross if (k + j) % 2 == 1]
        self.own_pairs, self.cross_pairs = own, cross
        for name, pairs in (("own", own), ("cross", cross)):
            index = torch.tensor([k * num_matrices + j for k, j in pairs])
            steps = torch.tensor([k + j for k, j in pairs], dtype=torch.float64)
            self.register_buffer(f"{name}_index", index, persistent=False)
            self.register_buffer(f"{name}_steps", steps, persistent=False)

    def own(self, row_NKD: Tensor) -> Tensor:
        """Return the products of each node's rows with each other, [N, P]."""
        return (row_NKD @ row_NKD.mT).flatten(1)[:, self.own_index]

    def cross(self, source_BKD: Tensor, candidate_NKD: Tensor) -> Tensor:
        """Return the products of each source's rows with those of all candidates, [B, N, P]."""
        product = source_BKD.flatten(0, 1) @ candidate_NKD.flatten(0, 1).T
        product_BKNK = product.view(*source_BKD.shape[:2], *candidate_NKD.shape[:2])
        return product_BKNK.transpose(1, 2).flatten(2)[..., self.cross_index]

    def cross_pairwise(self, source_BKD: Tensor, candidate_BCKD: Tensor) -> Tensor:
        """Return the products of each source's rows with those of its candidates, [B, C, P]."""
        product_BCKK = source_BKD[:, None] @ candidate_BCKD.mT
        return product_BCKK.flatten(2)[..., self.cross_index]

    def source_features(self, own_BP: Tensor, age_B: Tensor) -> Tensor:
        """Return the features of sources at times of these ages, [B, P]."""
        return features(own_BP, self.own_steps, age_B[:, None])

    def candidate_features(self, own_BCP: Tensor, cross_BCP: Tensor, age_B: Tensor) -> Tensor:
        """Return the features of candidates at times of these ages, [B, C, P]."""
        product_BCP = torch.cat([own_BCP, cross_BCP], dim=2)
        steps_P = torch.cat([self.own_steps, self.cross_steps])
        return features(product_BCP, steps_P, age_B[:, None, None])


def features(product: Tensor, steps: Tensor, age: Tensor) -> Tensor:
    """Return log(1 + max(0, product)), where the product decays by e^(-age) for each step.

    >>> features(torch.tensor([1.0, 1.0, -1.0]), torch.tensor([0.0, 1.0, 1.0]), torch.tensor(2.0))
    tensor([0.6931, 0.1269, 0.0000])
    """
    return (product * torch.exp(-age * steps)).clamp_min(0.0).log1p()


def level_decay(age_B: Tensor, num_matrices: int) -> Tensor:
    """Return the factor of each stored matrix at times of these ages, [B, K]."""
    return torch.exp(-age_B[:, None] * torch.arange(num_matrices, device=age_B.device))
