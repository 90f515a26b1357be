"""TCL's two-stream encoder (sections "Graph Transformer" and "Encoders for Dynamic Embeddings").

The two streams of an encoding are the sub-graphs of the two parties of one past event. The encoder
turns them into two states, and the projection φ turns these into one predictive vector per party,
which holds until that party's next event. A vector depends neither on the time of the query nor on
the candidate.

Shapes: R rows, Q queries, S streams (two per event), D width; see `dependency_subgraphs`.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import ConfigDict, Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale, Scaling
from tclgraph.encoding.dropout_kernels import NUM_RANDOM_VALUES, choose_kept
from tclgraph.encoding.parts import apply_in_parts
from tclgraph.layers.input_embeddings import Dropout, EmbeddingTables, RowInputs, embed_rows
from tclgraph.layers.node_tables import NodeEmbedding
from tclgraph.layers.packed_attention import KeyLists
from tclgraph.layers.projection import FutureProjection
from tclgraph.layers.transformer import AttentionScale, HeadWidth, Residual, TransformerLayer
from tclgraph.random_bits import STEP, mixed
from tclgraph.sampling.dependency_subgraphs import PackedSubgraphs, pack
from tclgraph.threads import num_parts, run_in_parts

# Fewer pairs are not worth a second thread.
_MIN_PAIRS_PER_THREAD = 64


@dataclass(frozen=True, kw_only=True)
class TwoStreamConfig:
    """Settings of the encoder; the defaults are the paper's, where it gives a value."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    width: PositiveInt = 64
    """Size of every embedding, d in the paper."""
    heads: PositiveInt = 16
    """Number of attention heads."""
    levels: PositiveInt = 5
    """Number of levels of a sub-graph, its root included; k in the paper."""
    blocks: PositiveInt = 1
    """Number of pairs of a graph Transformer layer and a cross-attention layer, B in the paper."""
    input_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.6
    """Dropout rate of the input embeddings."""
    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the nodes whose identity is hidden in a training batch: they have the embedding of
    the unknown node, which nodes that are added after training have too. 0: there is no unknown
    node, and an added node has a random embedding."""
    time_embedding: bool = True
    """Whether inputs have a time-interval embedding. False: "w/o TE" of the ablation."""
    depth_embedding: bool = True
    """Whether inputs have a depth embedding. False: "w/o DE" of the ablation."""
    cross_attention: bool = True
    """Whether streams attend to each other. False: "w/o CA-Transformer" of the ablation."""
    residual: Residual = "query"
    """What is added to the attention output. query: the projected query, as printed; input: the
    input of the layer, as usual."""
    head_width: HeadWidth = "split"
    """Width of a head. split: the embedding width divided by the number of heads, as usual; full:
    the embedding width, as printed."""
    attention_scale: AttentionScale = "head"
    """Number by whose square root attention is divided. head: the width of a head, as usual; width:
    the embedding width, as printed."""
    interval_scale: Scaling = "linear"
    """Scaling of intervals; the paper does not give one. linear: Δ divided by its training mean;
    log: log(1 + Δ / unit) divided by its standard deviation, with a unit of a hundred-thousandth of
    this mean."""
    feed_forward_width: PositiveInt | None = None
    """Hidden width of the feed-forward layers; the paper does not give it. None: the embedding
    width."""
    input_deviation: PositiveFloat = 0.02
    """Standard deviation of the input embeddings before training; the paper does not give it."""

    def __post_init__(self) -> None:
        if self.head_width == "split" and self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split a width of {self.width} evenly; "
                "give a width that is a multiple of the number of heads"
            )

    def unused_settings(self) -> dict[str, str]:
        """Return the settings without effect in this configuration, each with the reason."""
        unused = {}
        if not self.time_embedding:
            unused["interval_scale"] = "without time_embedding"
        if self.head_width == "full":
            unused["attention_scale"] = "with head_width=full"
        return unused


class EncoderInputs(NamedTuple):
    """Sub-graphs to encode, and which of their input embeddings dropout leaves."""

    packed: PackedSubgraphs
    row_node: IntArray
    """Row of the node embedding of each row of the sub-graphs; hidden nodes have the unknown's."""
    dropout: Dropout | None


class TwoStreamEncoder(nn.Module):
    """Encodes past events into predictive vectors of both parties."""

    max_events_at_once = 1024

    def __init__(self, config: TwoStreamConfig, num_nodes: int, scale: IntervalScale) -> None:
        super().__init__()
        self.config = config
        self.scale = scale
        self.width = width = config.width
        # The row after the nodes is the absent node: the partner of a node without events. If
        # identities are hidden in training, the unknown node follows.
        self._has_unknown_node = config.hidden_share > 0
        self.node = NodeEmbedding(
            num_nodes + 1 + self._has_unknown_node,
            width,
            deviation=config.input_deviation,
            unknown=-1 if self._has_unknown_node else None,
        )
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
                    attention_scale=config.attention_scale,
                )
                for _ in range(config.blocks)
            )

        self.graph_layers = layers()
        if config.cross_attention:
            self.cross_layers = layers()
        self.projection = FutureProjection(width)

    def initialize(self) -> None:
        """Draw initial weights.

        The owner calls this after it has built its other modules, which keeps the order of random
        draws, and so the weights of a seed, as they were when results were stored.

        Paper: not given. Here: small input embeddings, Glorot's rule for other matrices. Because:
        Adam moves a weight by at most the learning rate in a step, and there are some 1,400 steps
        in 20 epochs of CollegeMsg. Embeddings that begin with deviation 1 would hardly change.
        """
        for name, parameter in self.named_parameters():
            if name.split(".")[0] in ("node", "depth", "interval"):
                nn.init.normal_(parameter, std=self.config.input_deviation)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    @property
    def absent_node(self) -> int:
        """Node that stands for the missing partner of a node without events."""
        return len(self.node.weight) - 1 - self._has_unknown_node

    @property
    def weight(self) -> Tensor:
        """A parameter that gives the precision and the device of vectors."""
        return self.node.weight

    def encode(
        self, graph: DependencyGraph, pairs: IntArray, random: np.random.Generator | None = None
    ) -> Tensor:
        """Return the predictive vectors of both roots of every pair, [2 · pairs, D]."""
        vectors: Tensor = self(self.inputs(graph, pairs, random))
        return vectors

    def inputs(
        self, graph: DependencyGraph, pairs: IntArray, random: np.random.Generator | None = None
    ) -> list[EncoderInputs]:
        """Return what the encoder needs to encode pairs; it does not depend on weights.

        A random generator switches input dropout and hidden identities on, as in training. There is
        a part of the pairs for every thread. Threads take pairs in turn: later pairs have larger
        subgraphs.
        """

        def drawn_seed(rate: float) -> int | None:
            return int(random.integers(1 << 63)) if random is not None and rate > 0 else None

        seed, hiding_seed = (
            drawn_seed(self.config.input_dropout),
            drawn_seed(self.config.hidden_share),
        )
        is_on_cpu = self.weight.device.type == "cpu"
        count = num_parts(len(pairs), _MIN_PAIRS_PER_THREAD) if is_on_cpu else 1
        parts: dict[int, EncoderInputs] = {}

        def work(part: int, *_: int) -> None:
            packed = pack(graph, pairs[part::count], self.config.levels)
            row_node = self._with_hidden_nodes(packed.row_node, hiding_seed)
            parts[part] = EncoderInputs(packed, row_node, self._dropout(packed, seed))

        run_in_parts(list(range(count + 1)), work)
        return [parts[part] for part in range(count)]

    def _with_hidden_nodes(self, node: IntArray, seed: int | None) -> IntArray:
        """Replace the nodes that are hidden in a batch by the unknown node.

        Whether a node is hidden depends on the seed and the node only.
        """
        if seed is None:
            return node
        bits = mixed(np.uint64(seed) + STEP * (node + 1).astype(np.uint64))
        is_hidden = (bits >> np.uint64(11)) * 2.0**-53 < self.config.hidden_share
        unknown_node = self.absent_node + 1
        return np.where(is_hidden & (node != self.absent_node), unknown_node, node)

    def _dropout(self, packed: PackedSubgraphs, seed: int | None) -> Dropout | None:
        """Choose the numbers to keep: one choice per distinct (instance, depth) of a batch."""
        if seed is None:
            return None
        threshold = max(1, round((1.0 - self.config.input_dropout) * NUM_RANDOM_VALUES))
        is_kept = np.empty((len(packed.row_node), self.width), dtype=bool)
        choose_kept(seed, threshold, packed.row_instance, packed.row_depth, is_kept)
        return Dropout(is_kept, threshold / NUM_RANDOM_VALUES)

    def forward(self, inputs: list[EncoderInputs]) -> Tensor:
        """Return the predictive vectors of both parties of every event, [S, D]."""
        vectors = apply_in_parts(self._vectors, inputs, list(self.parameters()))
        if len(inputs) == 1:
            return vectors
        num_pairs, count = len(vectors) // 2, len(inputs)
        pair = np.concatenate([np.arange(part, num_pairs, count) for part in range(count)])
        in_order = vectors.view(num_pairs, -1).index_select(0, self._index(pair.argsort()))
        return in_order.view_as(vectors)

    def _vectors(self, inputs: EncoderInputs) -> Tensor:
        state_SD = self._root_states(inputs)
        partner_SD = state_SD.view(-1, 2, self.width).flip(1).flatten(0, 1)
        future: Tensor = self.projection(state_SD, partner_SD)
        return future

    def _root_states(self, inputs: EncoderInputs) -> Tensor:
        packed = inputs.packed
        hidden: Tensor = self._embed(inputs)
        query = packed.query_row
        lists = self._lists(packed.key_start, packed.key_row, packed.num_single)
        # Row of each member of each stream. At first streams share rows; once a cross-attention
        # layer has made every member's state its own, it is the member's slot in its stream.
        member, root = packed.stream_query, packed.root_query
        for block in range(self.config.blocks):
            is_last = block == self.config.blocks - 1
            hidden = self.graph_layers[block](hidden, self._index(query), lists)
            needed = root if is_last else member
            if self.config.cross_attention:
                across = self._lists(*packed.keys_across(member, roots_only=is_last))
                hidden = self.cross_layers[block](hidden, self._index(needed), across)
            else:
                hidden = hidden.index_select(0, self._index(needed))
            if not is_last:
                query = member = np.arange(len(packed.stream_query))
                root = packed.stream_start[:-1]
                lists = self._lists(*packed.keys_by_slot())
        return hidden

    def _embed(self, inputs: EncoderInputs) -> Tensor:
        """Return the sum of the node, depth and time-interval embeddings of every row."""
        config, packed = self.config, inputs.packed
        tables = EmbeddingTables(
            self.node.weight,
            self.depth.weight if config.depth_embedding else None,
            self.interval.weight if config.time_embedding else None,
        )
        interval = self.scale.scaled(packed.row_interval, config.interval_scale)
        return embed_rows(
            tables, RowInputs(inputs.row_node, packed.row_depth, interval), inputs.dropout
        )

    def numbers(self, array: FloatArray) -> Tensor:
        """Convert an array to a tensor of the network's precision, on its device."""
        return torch.from_numpy(array).to(self.weight.dtype).to(self.weight.device)

    def _index(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self.weight.device)

    def _lists(self, start: IntArray, keys: IntArray, num_single: int = 0) -> KeyLists:
        return KeyLists(self._index(start), self._index(keys), num_single)
