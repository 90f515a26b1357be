"""CTDNE: node vectors from temporal walks, trained by the skip-gram (Nguyen et al., 2018).

Shapes: B queries, D width, N nodes, T targets.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.frozen import FrozenModel
from tclgraph.baselines.own_target import measure_own_targets
from tclgraph.baselines.skip_gram import NOISE_POWER, noise_of, train_walks
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.sampling.temporal_walks import Bias, TemporalWalks
from tclgraph.training.config import TrainingConfig

# The learning rate never falls below this share of its initial value, as in word2vec.
_SMALLEST_RATE = 1 / 250
# An unseen node is a little less likely than a node with one occurrence.
_UNSEEN_COUNT = 0.5


@dataclass(frozen=True, kw_only=True)
class CTDNEConfig(TrainingConfig):
    """Settings of CTDNE; the defaults are published, except for width, `bias` and `epochs`."""

    width: PositiveInt = 64
    """Size of a vector."""
    walks_per_node: PositiveInt = 10
    """Number of walks in an epoch, per node of the training events."""
    walk_length: Annotated[int, Field(ge=2)] = 80
    """Largest number of nodes in a walk."""
    window: PositiveInt = 10
    """Largest number of steps between two nodes of a walk that form a training pair."""
    negatives: PositiveInt = 5
    """Number of negatives of a training pair, drawn from the noise distribution."""
    bias: Bias = "uniform"
    """How a walk chooses among the later events of a node: all are equally likely, or sooner events
    are more likely.

    Paper: exponential, in the published code. Here: uniform. Because: it ranks the validation
    events of CollegeMsg better, at half the cost, as walks are shorter."""
    score_by: Literal["likelihood", "input-output", "input-input"] = "likelihood"
    """What ranks the targets. likelihood: how often a target occurs near the source. input-output:
    how much more often than in the noise distribution. input-input: how similar the two nodes'
    input vectors are."""
    batch_size: PositiveInt = 512
    """Number of walks in a batch. Descent makes one step per pair; the learning rate is constant
    within a batch."""
    learning_rate: PositiveFloat = 0.025
    """Learning rate of the first batch; it falls linearly towards 0 at the end of training."""


class SkipGram(NodeModule):
    """Input and output vectors of all nodes, and the progress of their training."""

    log_noise: Tensor
    batches_done: Tensor

    def __init__(self, num_nodes: int, width: int) -> None:
        super().__init__()
        self.input_ND = nn.Parameter((torch.rand(num_nodes, width) - 0.5) / width)
        self.output_ND = nn.Parameter(torch.zeros(num_nodes, width))
        self.register_buffer("log_noise", torch.zeros(num_nodes))
        # A buffer, so that checkpoints hold it; a floating-point number, so that the EMA can
        # average it.
        self.register_buffer("batches_done", torch.zeros((), dtype=torch.float64))

    def node_tables(self) -> list[NodeTable]:
        return [
            NodeTable(name="input_ND"),
            NodeTable(name="output_ND"),
            NodeTable(name="log_noise", fill=NOISE_POWER * math.log(_UNSEEN_COUNT)),
        ]


class _LossOfDescent(torch.autograd.Function):
    """Gives a loss the gradients that lead from the current tables to given tables.

    The kernel descends pair by pair. With the gradients (table - table after the descent), a step
    of SGD with learning rate 1 moves the tables to where the kernel's descent ends.
    """

    @staticmethod
    def forward(
        ctx: Any, loss: float, input_ND: Tensor, output_ND: Tensor, ends: tuple[Tensor, Tensor]
    ) -> Tensor:
        ctx.save_for_backward(
            input_ND - ends[0].to(input_ND.device), output_ND - ends[1].to(output_ND.device)
        )
        return torch.tensor(loss, dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> Any:
        for_input_ND, for_output_ND = ctx.saved_tensors
        return None, scale * for_input_ND, scale * for_output_ND, None


class CTDNE(FrozenModel):
    """Continuous-time dynamic network embeddings (CTDNE).

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

    # Training

    def prepare(self, split: Split) -> int:
        config = self.config
        graph = DependencyGraph(NodeSpace.of(split.train))
        graph.append(split.train)
        # Paper: walks with fewer nodes than the window are dropped. Here: all walks are used.
        # Because: walks that begin late are short, so the latest events would be lost.
        self._walks = TemporalWalks(graph, config.bias)
        self.start(split.events, **measure_own_targets(split.train))

        num_occurrences = np.bincount(graph.node, minlength=graph.space.num_nodes)
        self._num_walks = config.walks_per_node * int(np.count_nonzero(num_occurrences))
        self._num_batches = -(-self._num_walks // config.batch_size)
        self._make_noise()
        return self._num_batches

    def _make_noise(self) -> None:
        """Make the noise distribution from walks.

        Paper: the corpus of walks is made once, and nodes are drawn as noise by how often they
        occur in it. Here: by how often they occur in as many walks as an epoch has, which are not
        trained on. Because: every batch draws new walks, so that the model does not overfit to a
        few and none has to be stored.
        """
        random = np.random.default_rng(self.config.seed)
        num_nodes = self.graph.space.num_nodes
        count = np.zeros(num_nodes, dtype=np.int64)
        for _ in range(self._num_batches):
            walks = self._walks.draw(self.config.batch_size, self.config.walk_length, random)
            count += np.bincount(walks[walks >= 0], minlength=num_nodes)
        count = np.maximum(count, 1)  # later walks may contain nodes that these do not
        self._noise = noise_of(count)
        with torch.no_grad():
            self.network.log_noise.copy_(torch.from_numpy(NOISE_POWER * np.log(count)))

    def build_network(self) -> SkipGram:
        return SkipGram(self.graph.space.num_nodes, self.config.width)

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Return SGD that moves the tables to the end of the kernel's descent (see `loss`)."""
        return torch.optim.SGD(self.parameter_groups(), lr=1.0)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the mean loss of the pairs of new walks, each before the step on that pair.

        The kernel descends on copies of the tables. The gradients of the loss are the differences
        between the tables and these copies. The learning rate falls with every call, by the number
        of batches so far.
        """
        config, network = self.config, self.network
        num_walks = min(config.batch_size, self._num_walks - batch * config.batch_size)
        progress = network.batches_done.item() / (config.epochs * self._num_batches)
        network.batches_done += 1
        tables = network.input_ND, network.output_ND
        input_ND, output_ND = (table.detach().cpu().clone() for table in tables)
        loss = train_walks(
            self._walks.draw(num_walks, config.walk_length, random),
            config.window,
            config.negatives,
            self._noise,
            input_ND.numpy(),
            output_ND.numpy(),
            config.learning_rate * max(1 - progress, _SMALLEST_RATE),
            int(random.integers(2**63)),
        )
        tensor: Tensor = _LossOfDescent.apply(  # type: ignore[no-untyped-call]
            loss, *tables, (input_ND, output_ND)
        )
        return tensor

    # Ranking

    def make_vectors(self) -> Tensor:
        return self.network.input_ND.detach().clone()

    def unseen_vector(self) -> Tensor:
        return self.network.input_ND.new_zeros(self.config.width)

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        """Return the scores of all targets; they do not depend on time.

        Paper: a classifier is trained on differences of vectors. Here: input · output + log noise.
        Because: this is what the skip-gram learns. It separates pairs from noise best if
        input · output is the log-odds that a node is near another, minus the log of the node's
        share in the noise distribution. With that share added, targets are ranked by how likely
        they are.
        """
        if self.config.score_by == "input-input":
            return super().score(source, time)
        vectors, first_target = self._all_vectors, self.graph.space.first_target
        query_BD = vectors[torch.tensor(source, device=vectors.device)]
        score_BT = query_BD @ self.network.output_ND.detach()[first_target:].T
        if self.config.score_by == "likelihood":
            score_BT += self.network.log_noise[first_target:]
        return score_BT.cpu().numpy()
