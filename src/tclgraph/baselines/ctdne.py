"""CTDNE: vectors from temporal walks by the skip-gram (Nguyen et al., 2018).

Shapes: B queries, D width, N nodes, I targets.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.baselines.frozen import FrozenModel
from tclgraph.baselines.skip_gram import NOISE_POWER, learn_walks, noise_of
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.sampling.temporal_walks import Bias, TemporalWalks
from tclgraph.training.config import TrainingConfig
from tclgraph.training.loop import Step

# The rate never falls below this share of its first value, as in word2vec.
_LEAST_RATE = 1 / 250


@dataclass(frozen=True, kw_only=True)
class CTDNEConfig(TrainingConfig):
    """The defaults are those of the published code, but for the width, `bias` and `epochs`."""

    width: PositiveInt = 64
    """Size of every vector."""
    walks_per_node: PositiveInt = 10
    """Walks of an epoch, for every node that occurs in training."""
    walk_length: Annotated[int, Field(ge=2)] = 80
    """Nodes of a walk, at most."""
    window: PositiveInt = 10
    """Steps between two nodes of a walk that are learned from, at most."""
    negatives: PositiveInt = 5
    """Nodes drawn from the noise for each pair."""
    bias: Bias = "uniform"
    """Which later event a walk takes: any alike, or rather one that follows soon.

    Paper: exponential, in the published code. Here: uniform. Because: it ranks better on the
    validation events of CollegeMsg, at half the cost, as walks are shorter.
    """
    score_by: Literal["likelihood", "input-output", "input-input"] = "likelihood"
    """likelihood: by how often a target is met near the source. input-output: how much more often
    than in the noise. input-input: by how like each other they are."""
    batch_size: PositiveInt = 512
    """Walks in a batch. Descent goes pair by pair all the same: a batch has one learning rate."""
    learning_rate: PositiveFloat = 0.025
    """Of the first batch; it falls evenly, towards 0 at the end of all epochs."""


class SkipGram(nn.Module):
    """Both tables, and how far their training has come."""

    log_noise: Tensor
    batches_done: Tensor

    def __init__(self, num_nodes: int, width: int) -> None:
        super().__init__()
        self.input_ND = nn.Parameter((torch.rand(num_nodes, width) - 0.5) / width)
        self.output_ND = nn.Parameter(torch.zeros(num_nodes, width))
        self.register_buffer("log_noise", torch.zeros(num_nodes))
        # A tensor, so that a checkpoint keeps it; of fractions, so that it can be averaged.
        self.register_buffer("batches_done", torch.zeros((), dtype=torch.float64))


class CTDNE(FrozenModel):
    """Continuous-time dynamic network embeddings.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = CTDNE(epochs=1, width=16).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 16))
    """

    name = "ctdne"
    config_type = CTDNEConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 1e-1),
        "batch_size": (128, 256, 512),
    }
    config: CTDNEConfig
    network: SkipGram

    # Learning

    def prepare(self, split: Split) -> int:
        config = self.config
        graph = DependencyGraph(NodeSpace.of(split.train))
        graph.append(split.train)
        # Paper: walks of fewer nodes than the window are dropped. Here: all are kept. Because:
        # those that begin late are short, so the latest events would be lost.
        self._walks = TemporalWalks(graph, config.bias)
        self.start(split.events)

        times_seen = np.bincount(graph.node, minlength=graph.space.num_nodes)
        self._num_walks = config.walks_per_node * int(np.count_nonzero(times_seen))
        self._num_batches = -(-self._num_walks // config.batch_size)
        self._count_nodes(times_seen > 0)
        return self._num_batches

    def _count_nodes(self, is_seen: BoolArray) -> None:
        """Make the noise.

        Paper: the corpus is made once, and nodes are drawn as noise by how often they occur in it.
        Here: in an epoch's worth of walks that are not learned from. Because: every batch draws
        its walks anew, so that none is learned by heart and none has to be kept.
        """
        random = np.random.default_rng(self.config.seed)
        count = np.zeros(len(is_seen), dtype=np.int64)
        for _ in range(self._num_batches):
            walks = self._walks.draw(self.config.batch_size, self.config.walk_length, random)
            count += np.bincount(walks[walks >= 0], minlength=len(is_seen))
        count = np.maximum(count, is_seen)  # walks to come may meet who was in none of these
        self._noise = noise_of(count)
        # Who never occurs has no vector, and is a little less likely than who occurs once.
        log_noise = NOISE_POWER * np.log(np.maximum(count, 0.5))
        with torch.no_grad():
            self.network.log_noise.copy_(torch.from_numpy(log_noise))
            self.network.input_ND[torch.from_numpy(~is_seen)] = 0.0

    def build_network(self) -> SkipGram:
        return SkipGram(self.graph.space.num_nodes, self.config.width)

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Goes where a batch wants to go; the descent itself is the kernel's, at its own rate."""
        return torch.optim.SGD(self.parameter_groups(), lr=1.0)

    def learn(
        self, batch: int, random: np.random.Generator, optimizer: torch.optim.Optimizer
    ) -> Step:
        """Descend with copies of the tables; the tables move when the loop has seen the loss."""
        tables = list(self.network.parameters())
        loss, ends = self._descend(batch, random)
        for table, end in zip(tables, ends, strict=True):
            table.grad = table.detach() - end.to(table.device)
        norm = clip_grad_norm_(tables, self.config.max_gradient_norm or np.inf)

        def apply() -> None:
            optimizer.step()
            self.network.batches_done += 1

        return Step(loss, norm.item(), apply)

    def _descend(
        self, batch: int, random: np.random.Generator
    ) -> tuple[float, tuple[Tensor, Tensor]]:
        """Walk, and learn from it: the mean loss, and where the tables would be."""
        config = self.config
        num_walks = min(config.batch_size, self._num_walks - batch * config.batch_size)
        share_done = self.network.batches_done.item() / (config.epochs * self._num_batches)
        input_ND, output_ND = (one.detach().cpu().clone() for one in self.network.parameters())
        loss = learn_walks(
            self._walks.draw(num_walks, config.walk_length, random),
            config.window,
            config.negatives,
            self._noise,
            input_ND.numpy(),
            output_ND.numpy(),
            config.learning_rate * max(1 - share_done, _LEAST_RATE),
            int(random.integers(2**63)),
        )
        return loss, (input_ND, output_ND)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Mean over the pairs as they are met, each after the steps for those before; no gradient.

        `learn` does not need it.
        """
        return torch.tensor(self._descend(batch, random)[0], dtype=torch.float64)

    # Ranking

    def make_vectors(self) -> Tensor:
        return self.network.input_ND.detach().clone()

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        """Of all targets, whatever the time.

        Paper: a classifier is trained on differences of vectors. Here: input · output + log noise.
        Because: it is what the skip-gram was taught. It tells pairs from noise best where
        input · output is the log of the odds that a node is near another, less that of its share
        in the noise. With this added, targets come in the order of how likely they are.
        """
        if self.config.score_by == "input-input":
            return super().score(source, time)
        vectors, first_target = self._all_vectors, self.graph.space.first_target
        asking_BD = vectors[torch.tensor(source, device=vectors.device)]
        score_BI = asking_BD @ self.network.output_ND.detach()[first_target:].T
        if self.config.score_by == "likelihood":
            score_BI += self.network.log_noise[first_target:]
        return score_BI.cpu().numpy()
