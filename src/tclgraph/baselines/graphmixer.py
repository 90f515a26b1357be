"""GraphMixer: an MLP-mixer over a node's latest links, and a mean over its partners.

A node's vector at a time has two parts. The link encoder reads how long ago the node's latest links
were; it has no attention, and its time encoding is fixed. The node encoder adds the mean features
of the partners that the node has had in the latest events of the log.

The first part changes with time, without any event, for every target. So ranking encodes the links
of all targets once for each distinct query time.

Shapes: V all nodes, R rows (nodes), K slots for links, T width of a time code, D width, B events,
C columns of a batch (the true target and the negatives), H hidden width of the decoder.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.dependency_graph.interval_scaling import in_units
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.mixer import Mixer
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.layers.pair_decoder import PairMerge
from tclgraph.layers.time_encoding import TimeEncoding
from tclgraph.models.learned import LearnedModel
from tclgraph.objectives.contrastive import contrastive_loss
from tclgraph.sampling.recent_neighbors import TimedBatches, TimedNodes, recent_neighbors
from tclgraph.sampling.recent_partners import PartnerLists, PartnerWindow
from tclgraph.threads import run_all, threads_for_parts
from tclgraph.training.config import TrainingConfig

# Links are encoded in chunks whose intermediate arrays fit in cache.
_LINKS_PER_CHUNK = 2048
# Features are added to the sums of partners in chunks that bound memory.
_EVENTS_PER_CHUNK = 4096


@dataclass(frozen=True, kw_only=True)
class GraphMixerConfig(TrainingConfig):
    """Settings of GraphMixer."""

    learning_rate: PositiveFloat = 1e-3
    """Learning rate of Adam."""
    patience: PositiveInt | None = 3
    """Epochs without a better validation metric before training stops; None: never stop early."""
    max_valid_events: PositiveInt | None = 1024
    """Largest number of validation events to rank after an epoch; None: all."""
    width: PositiveInt = 64
    """Size of node features, time codes, links and of both parts of a vector."""
    neighbors: PositiveInt = 20
    """Number of latest links of a node that the link encoder reads."""
    layers: PositiveInt = 1
    """Number of mixer blocks."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Dropout of the mixer during training."""
    window: PositiveInt | None = 2000
    """Number of latest events of the log, of all nodes, in which the node encoder looks for
    partners. None: all events."""
    identity_tokens: bool = False
    """Whether a link also has the features of its two nodes. Otherwise the link encoder knows when
    a node interacted, but not with whom."""
    negatives: PositiveInt = 5
    """Number of negatives of an event."""
    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """Share of nodes that a batch treats as unseen, which trains the features of unseen nodes."""


class NodeFeatures(NodeModule):
    """Learned features of nodes; all unseen nodes have the same."""

    is_seen: Tensor

    def __init__(self, num_nodes: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_nodes, width))
        self.unseen = nn.Parameter(torch.zeros(width))
        # 1 or 0 as a number, because an average of weights is taken of buffers too.
        self.register_buffer("is_seen", torch.ones(num_nodes))
        nn.init.normal_(self.weight, std=width**-0.5)

    def node_tables(self) -> list[NodeTable]:
        return [NodeTable(name="weight"), NodeTable(name="is_seen")]

    def forward(self, is_hidden: Tensor | None = None) -> Tensor:
        """Return the features of all nodes, [V, D]; hidden nodes have those of unseen nodes."""
        is_seen = self.is_seen > 0
        if is_hidden is not None:
            is_seen = is_seen & ~is_hidden
        return torch.where(is_seen[:, None], self.weight, self.unseen)


class Links(NamedTuple):
    """The latest links of nodes, the latest in slot 0, each node at its own time."""

    node_R: Tensor
    partner_KR: Tensor
    code_KRT: Tensor
    """Codes of the gaps between the links and the time."""
    is_real_KR: Tensor
    """Mask of the slots that hold a link."""


class GraphMixerNetwork(nn.Module):
    """All learned parts of GraphMixer."""

    def __init__(self, config: GraphMixerConfig, num_nodes: int) -> None:
        super().__init__()
        width = config.width
        # Paper: features are given. Here: they are learned. Because: the logs have no features.
        self.features = NodeFeatures(num_nodes, width)
        self.encoding = TimeEncoding(width).requires_grad_(False)
        self.token = nn.Linear(width, width)
        self.identity = nn.Linear(width, width, bias=False) if config.identity_tokens else None
        self.mixer = Mixer(config.neighbors, width, layers=config.layers, dropout=config.dropout)
        self.head = nn.Linear(width, width)
        self.decoder = PairMerge(2 * width, 2 * width, width, 1)

    def index(self, array: IntArray | BoolArray) -> Tensor:
        """Return an array as a tensor on the network's device; a copy, for read-only columns."""
        return torch.tensor(array, device=self.features.weight.device)

    def codes(self, gap: FloatArray) -> Tensor:
        """Return the codes of gaps along a new last axis.

        A gap can be millions of radians. So angles are computed in double precision, and on the CPU
        because not every device supports that. The phases of a fixed encoding are 0.
        """
        frequency_T = self.encoding.frequency.cpu().double()
        return (torch.from_numpy(gap)[..., None] * frequency_T).cos().to(self.features.weight)

    def identities(self, features_VD: Tensor) -> Tensor | None:
        """Return what the features of each node add to a link, [V, D]; None: nothing."""
        return None if self.identity is None else self.identity(features_VD)

    def encode_links(
        self, links: Links, identity_VD: Tensor | None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the first part of the vectors of nodes, [R, D]; a generator enables dropout."""
        token_KRD = self.token(links.code_KRT)
        if identity_VD is not None:
            own_RD = functional.embedding(links.node_R, identity_VD)
            token_KRD = token_KRD + own_RD + functional.embedding(links.partner_KR, identity_VD)
        token_KRD = token_KRD * links.is_real_KR[..., None]
        vector_RD: Tensor = self.head(self.mixer(token_KRD, generator))
        return vector_RD


class PartnerSums:
    """Sums of the features of every node's recent partners, at a position of the log.

    The sums are in double precision, so that what additions and subtractions leave behind is far
    below the precision of the features.
    """

    def __init__(self, window: PartnerWindow, width: int) -> None:
        num_nodes = window.graph.space.num_nodes
        self.window = window
        self.position = 0
        self.total_VD = torch.zeros(num_nodes, width, dtype=torch.float64)
        self.count_V = torch.zeros(num_nodes, dtype=torch.int64)

    def copy(self) -> "PartnerSums":
        """Return a copy that moves on its own."""
        other = PartnerSums(self.window, self.total_VD.shape[1])
        other.position = self.position
        other.total_VD, other.count_V = self.total_VD.clone(), self.count_V.clone()
        return other

    def move(self, position: int, features_VD: Tensor) -> None:
        """Move to another position, forward or backward."""
        while self.position != position:
            begin = self.position
            end = max(begin - _EVENTS_PER_CHUNK, min(begin + _EVENTS_PER_CHUNK, position))
            changes = self.window.changes(min(begin, end), max(begin, end))
            node, sign = torch.from_numpy(changes.node), torch.from_numpy(changes.sign)
            if end < begin:
                sign = -sign
            partner = torch.from_numpy(changes.partner).to(features_VD.device)
            change = features_VD[partner].cpu().double() * sign[:, None]
            self.total_VD.index_add_(0, node, change)
            self.count_V.index_add_(0, node, sign)
            self.position = end

    def means(self, node: Tensor) -> Tensor:
        """Return the mean features of the partners of nodes, [R, D]; 0 without partners."""
        return self.total_VD[node] / self.count_V[node].clamp_min(1)[:, None]


class GraphMixer(LearnedModel):
    """MLP-mixer over the latest links, and mean over recent partners (GraphMixer).

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = GraphMixer(epochs=1, width=8, neighbors=5).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 16))
    """

    name = "graphmixer"
    config_type = GraphMixerConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3),
        "neighbors": (10, 20, 30),
        "layers": (1, 2),
        "dropout": (0.1, 0.3, 0.5),
        "window": (2000, None),
        "identity_tokens": (False, True),
        "negatives": (5, 20),
    }
    config: GraphMixerConfig
    network: GraphMixerNetwork

    # Training

    def prepare(self, split: Split) -> int:
        config = self.config
        self.batches = TimedBatches(split.train, config.batch_size, config.negatives)
        graph = self.batches.graph
        self._partners = PartnerLists(graph, config.window)
        self.start(split.events, mean_gap=_mean_positive_gap(graph))
        return len(self.batches)

    def build_network(self) -> GraphMixerNetwork:
        return GraphMixerNetwork(self.config, self.graph.space.num_nodes)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the cross-entropy of the true targets among their negatives."""
        queries = self.batches.draw(batch, random)
        is_hidden = random.random(self.graph.space.num_nodes) < self.config.hidden_share
        generator = torch.Generator().manual_seed(int(random.integers(2**63)))
        vectors = self.encode_training(queries, is_hidden, generator)
        decoder, position_BC = self.network.decoder, self.network.index(queries.position)
        source_BH = decoder.first_half(vectors[position_BC[:, 0]])
        target_BCH = decoder.second_half(vectors)[position_BC[:, 1:]]
        score_BC = decoder.of_halves(source_BH[:, None], target_BCH).squeeze(-1)
        return contrastive_loss(score_BC[:, 0], score_BC[:, 1:])

    def encode_training(
        self, queries: TimedNodes, is_hidden: BoolArray, generator: torch.Generator | None
    ) -> Tensor:
        """Return the vectors of nodes at their times, [R, 2D]; without a generator no dropout."""
        network, graph = self.network, self.batches.graph
        features_VD = network.features(network.index(is_hidden))
        links = self.links(graph, queries.node, queries.latest, queries.time)
        link_RD = network.encode_links(links, network.identities(features_VD), generator)
        position = np.searchsorted(graph.time, queries.time)
        partner, start = self._partners.before(queries.node, position)
        mean_RD = functional.embedding_bag(
            network.index(partner), features_VD, network.index(start), mode="mean"
        )
        own_RD = functional.embedding(links.node_R, features_VD)
        return torch.cat([link_RD, own_RD + mean_RD], dim=1)

    def links(
        self, graph: DependencyGraph, node: IntArray, latest: IntArray, time: FloatArray
    ) -> Links:
        """Return the latest links of nodes in a graph, strictly before a time of each node.

        `latest` is an instance of each node that is not earlier than these links.
        """
        neighbors = recent_neighbors(graph, latest, time, self.config.neighbors)
        gap = in_units(time[:, None] - neighbors.time, self.measured["mean_gap"])
        network = self.network
        return Links(
            node_R=network.index(node),
            partner_KR=network.index(np.ascontiguousarray(neighbors.node.T)),
            code_KRT=network.codes(np.ascontiguousarray(gap.T)),
            is_real_KR=network.index(np.ascontiguousarray(neighbors.is_real.T)),
        )

    # Following the stream

    def reset_state(self) -> None:
        window = PartnerWindow(self.graph, self.config.window)
        self._sums = PartnerSums(window, self.config.width)

    @torch.no_grad()
    def update_state(self, events: EventStream) -> None:
        self._sums.window.update()
        self._sums.move(len(self.graph), self.network.features())

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the sums; recomputed in another order they could differ in the last digit."""
        return {"partner_sum": self._sums.total_VD, "num_partners": self._sums.count_V}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        sums = self._sums
        sums.window.update()
        sums.position = len(self.graph)
        sums.total_VD, sums.count_V = tensors["partner_sum"], tensors["num_partners"]

    # Ranking

    @threads_for_parts()
    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        targets, decoder = self.graph.space.target_nodes, self.network.decoder
        scores = self.network.features.weight.new_empty(len(source), len(targets))
        encoder = _Encoder(self)
        order = np.argsort(time, kind="stable")
        times, begin = np.unique(time[order], return_index=True)
        for now, rows in zip(times.tolist(), np.split(order, begin)[1:], strict=True):
            nodes = np.union1d(source[rows], targets)  # the targets come last
            vectors = encoder.vectors(nodes, now)
            own = self.network.index(np.searchsorted(nodes, source[rows]))
            source_BH = decoder.first_half(vectors[own])
            target_H = decoder.second_half(vectors[-len(targets) :])
            for row, source_H in zip(rows.tolist(), source_BH, strict=True):
                scores[row] = decoder.of_halves(source_H, target_H).squeeze(-1)
        return scores.cpu().numpy()

    @threads_for_parts()
    def score_each(self, events: EventStream) -> ScoreArray:
        events = self.admit(events)
        self.observe(events)
        return self.score(events.source, events.time)

    @threads_for_parts()
    @torch.no_grad()
    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        return _Encoder(self).vectors(node, time).cpu().numpy()


class _Encoder:
    """Encodes nodes at times that do not decrease, and holds what does not depend on the time."""

    def __init__(self, model: GraphMixer) -> None:
        network = model.network
        self.model, self.graph = model, model.graph
        self.features_VD: Tensor = network.features()
        self.identity_VD = network.identities(self.features_VD)
        self.sums = model._sums.copy()
        self.unlinked_D = self._encode_links(np.zeros(1, np.int64), np.full(1, NONE), 0.0)[0]

    def vectors(self, node: IntArray, time: float) -> Tensor:
        """Return the vectors of nodes at a time, [R, 2D], from events strictly before it."""
        network, graph, width = self.model.network, self.graph, self.model.config.width
        self.sums.move(int(np.searchsorted(graph.time, time)), self.features_VD)
        mean_RD = self.sums.means(torch.tensor(node)).to(self.features_VD)
        vectors = self.features_VD.new_empty(len(node), 2 * width)
        vectors[:, width:] = self.features_VD[network.index(node)] + mean_RD
        latest = graph.last_instance[node]
        vectors[network.index(latest == NONE), :width] = self.unlinked_D

        @torch.no_grad()
        def encode(rows: IntArray) -> None:
            links_RD = self._encode_links(node[rows], latest[rows], time)
            vectors[network.index(rows), :width] = links_RD

        linked = np.flatnonzero(latest != NONE)
        num_chunks = -(-len(linked) * self.model.config.neighbors // _LINKS_PER_CHUNK)
        run_all([partial(encode, rows) for rows in np.array_split(linked, max(1, num_chunks))])
        return vectors

    def _encode_links(self, node: IntArray, latest: IntArray, time: float) -> Tensor:
        links = self.model.links(self.graph, node, latest, np.full(len(node), time))
        return self.model.network.encode_links(links, self.identity_VD)


def _mean_positive_gap(graph: DependencyGraph) -> float:
    """Return the mean gap between consecutive events of a node, without gaps of 0."""
    gap = graph.interval[graph.interval > 0]
    return float(gap.mean()) if len(gap) else 0.0
