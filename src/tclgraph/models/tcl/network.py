"""TCL's two-stream encoder (sections "Graph Transformer" and "Encoders for Dynamic Embeddings").

The two streams of an encoding are the sub-graphs of the two parties of one past event. The encoder
turns them into two states, and the projection into two predictive vectors, one for either party,
which hold until that party's next event. They depend on neither the query's time nor the candidate.

Shapes: R rows, Q queries, S streams (two to an event), D width; see `dependency_subgraphs`.
"""

import numpy as np
import torch
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.time_units import TimeUnits
from tclgraph.layers.packed_attention import KeyLists
from tclgraph.layers.projection import Discriminator, FutureProjection, PairIntensity
from tclgraph.layers.transformer import TransformerLayer
from tclgraph.models.tcl.config import TCLConfig
from tclgraph.models.tcl.terms import HistoryTerms
from tclgraph.sampling.dependency_subgraphs import PackedSubgraphs

_INPUT_DEVIATION = 0.02
_USUAL_RATE = 0.01


class TCLNetwork(nn.Module):
    """Everything that is learned."""

    usual: Tensor

    def __init__(self, config: TCLConfig, num_nodes: int, units: TimeUnits) -> None:
        super().__init__()
        self.config = config
        self.units = units
        width = config.width
        # One row more than there are nodes: the absent partner of a node without a past.
        self.node = nn.Embedding(num_nodes + 1, width)
        if config.depth_embedding:
            self.depth = nn.Embedding(config.levels, width)
        if config.time_embedding:
            self.interval = nn.Linear(1, width, bias=False)

        def layers() -> nn.ModuleList:
            return nn.ModuleList(
                TransformerLayer(
                    width,
                    config.heads,
                    feed_forward_width=config.feed_forward_width or width,
                    residual=config.residual,
                    head_width=config.head_width,
                )
                for _ in range(config.blocks)
            )

        self.graph_layers = layers()
        if config.cross_attention:
            self.cross_layers = layers()
        self.projection = FutureProjection(width)
        self.discriminator = Discriminator(width)
        if config.objective == "point-process":
            self.intensity = PairIntensity()
        self._initialize()
        self.terms = HistoryTerms(config) if config.contrast == "full" else None
        if config.centered:
            # The mean vector of sources, as the last hundred batches or so had them.
            self.register_buffer("usual", torch.zeros(width))

    def _initialize(self) -> None:
        """Paper: not said. Here: the input embeddings small, Glorot's rule for other matrices.

        Because: Adam moves a weight by at most the learning rate in a step, and there are some
        1,400 steps in 20 epochs of CollegeMsg. Tables that begin with deviation 1 hardly change.
        """
        for name, parameter in self.named_parameters():
            if name.split(".")[0] in ("node", "depth", "interval"):
                nn.init.normal_(parameter, std=_INPUT_DEVIATION)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    @property
    def absent(self) -> int:
        """The node that stands for a partner who is not there."""
        return self.node.num_embeddings - 1

    @property
    def device(self) -> torch.device:
        return self.node.weight.device

    def forward(self, packed: PackedSubgraphs, random: np.random.Generator | None = None) -> Tensor:
        """Predictive vectors of both parties of every event, [S, D].

        With a random generator the input is dropped out, as in training.
        """
        state_SD = self._encode(packed, random)
        partner_SD = state_SD.view(-1, 2, self.config.width).flip(1).flatten(0, 1)
        future: Tensor = self.projection(state_SD, partner_SD)
        return future

    def ranking_key(self, asking_BD: Tensor, *, learning: bool = False) -> Tensor:
        """What candidates' vectors are multiplied with.

        Centred, only what sets a source apart from others counts. What all sources agree on is how
        popular a target is; that was learned of the past, and facts know it as of now.
        """
        if not self.config.centered:
            return self.discriminator.ranking_key(asking_BD)
        usual = self.usual
        if learning:
            usual = asking_BD.mean(dim=0)
            self.usual.lerp_(usual.detach(), _USUAL_RATE)
        return self.discriminator.multiplicative * (asking_BD - usual)

    def _encode(self, packed: PackedSubgraphs, random: np.random.Generator | None) -> Tensor:
        """The states of the roots."""
        hidden: Tensor = self._embed(packed, random)
        asking, lists = packed.query_row, self._lists(packed.key_start, packed.key_row)
        # What stands for each member of each stream: at first a query that streams may share, then,
        # once a cross layer has made every member its own, its position in the streams.
        member, root = packed.stream_query, packed.root_query
        for block in range(self.config.blocks):
            is_last = block == self.config.blocks - 1
            hidden = self.graph_layers[block](hidden, self._index(asking), lists)
            wanted = root if is_last else member
            if self.config.cross_attention:
                across = self._lists(*packed.keys_across(member, roots_only=is_last))
                hidden = self.cross_layers[block](hidden, self._index(wanted), across)
            else:
                hidden = hidden.index_select(0, self._index(wanted))
            if not is_last:
                asking = member = np.arange(len(packed.stream_query))
                root = packed.stream_start[:-1]
                lists = self._lists(*packed.keys_by_slot())
        return hidden

    def _embed(self, packed: PackedSubgraphs, random: np.random.Generator | None) -> Tensor:
        """Node, depth and time-interval embedding of every row, added up."""
        embedded_RD: Tensor = self.node(self._index(packed.row_node))
        if self.config.depth_embedding:
            embedded_RD = embedded_RD + self.depth(self._index(packed.row_depth))
        if self.config.time_embedding:
            # Paper: seconds as they are. Here: scaled, because seconds make training explode. In
            # float64 on the host, as not every device has that.
            seconds = packed.row_interval
            if self.config.intervals == "log":
                scaled = np.log1p(seconds) / self.units.log_deviation
            else:
                scaled = seconds / self.units.mean
            scaled_R = self.numbers(scaled)
            embedded_RD = embedded_RD + self.interval(scaled_R[:, None])
        if random is not None and self.config.input_dropout > 0:
            # Drawn once per distinct (instance, depth) of a batch, like everything that a row has.
            kept = 1.0 - self.config.input_dropout
            drawn = random.random(embedded_RD.shape, dtype=np.float32) < kept
            mask = torch.from_numpy(drawn).to(self.device, embedded_RD.dtype)
            embedded_RD = embedded_RD * (mask / kept)
        return embedded_RD

    def numbers(self, array: FloatArray) -> Tensor:
        """In the network's precision, where the network is."""
        return torch.from_numpy(array).to(self.node.weight.dtype).to(self.device)

    def _index(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def _lists(self, start: IntArray, keys: IntArray) -> KeyLists:
        return KeyLists(self._index(start), self._index(keys))
