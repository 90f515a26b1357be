"""SASRec: a causal Transformer over the latest events of a source, in its form of 2025 (eSASRec).

The history of a source is the sequence of its latest targets, without timestamps. A Transformer
with gated blocks reads it, and its state at the newest target is the *query* of the source. The
score of a target is the product of its vector with the query. The same vectors are the input of the
Transformer. A query changes with events of its source only, so it is stored until the next one.

In training each position of a sequence predicts its successor, by a softmax over all targets of the
training events.

A history begins with a learned start token, which is all that a source without events has. All
targets that are absent from the training events share a learned vector. It is trained by hiding a
few targets in every batch: their vectors are replaced by the shared one, as input and as candidate.

Shapes: B queries, T targets, W windows, P positions of a window, L the largest number of positions,
R positions that count in the loss, N negatives, D width.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.token_transformer import TokenTransformer
from tclgraph.models.learned import LearnedModel
from tclgraph.objectives.contrastive import contrastive_loss
from tclgraph.objectives.pairwise import gbce_loss
from tclgraph.objectives.softmax import softmax_loss
from tclgraph.sampling.latest_tokens import (
    NO_TOKEN,
    START,
    AppendedTokens,
    LabeledWindows,
    LatestTokens,
    TokenArray,
    TrainingSequences,
    chunks_by_length,
)
from tclgraph.training.config import TrainingConfig

MAX_SOFTMAX_TARGETS = 20_000
"""Number of training targets up to which the default loss compares with all of them."""
DEFAULT_NEGATIVES = 256
"""Default number of negatives if there are more training targets, or with the objective gbce."""
# Windows are encoded in chunks of this many positions, whose arrays fit in cache.
_POSITIONS_PER_CHUNK = 4096


@dataclass(frozen=True, kw_only=True)
class SASRecConfig(TrainingConfig):
    """Settings of SASRec.

    The defaults are near those of the published code after tuning, and were chosen by validation
    events of CollegeMsg. The code's own defaults are 2 blocks, 4 heads, width 256 and length 100.
    """

    epochs: PositiveInt = 30
    """Maximum number of passes over the training stream."""
    batch_size: PositiveInt = 16
    """Number of windows in a batch. A window is up to `length` consecutive events of a source.
    Published: 128. Here: 16. Because: a log of a thousand sources would have eight steps per
    epoch."""
    learning_rate: PositiveFloat = 3e-3
    """Learning rate of Adam. Published: 1e-3."""
    patience: PositiveInt | None = 5
    """Epochs without a better validation metric before training stops; None: never stop early."""
    width: PositiveInt = 64
    """Size of the vectors of targets and of queries."""
    heads: PositiveInt = 1
    """Number of attention heads."""
    blocks: PositiveInt = 1
    """Number of Transformer blocks."""
    length: PositiveInt = 20
    """Number of latest events of a source that its query depends on."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.4
    """Dropout of the input and of the branches of the blocks during training. Published: 0.2."""
    history: Literal["sent", "both"] = "sent"
    """Events in the history of a node of a one-mode graph: those it sent, or also those it
    received, which are marked by a learned vector."""
    objective: Literal["softmax", "gbce"] = "softmax"
    """Training objective: cross-entropy of the true target among the candidates, or the generalized
    binary cross-entropy of gSASRec."""
    negatives: PositiveInt | Literal["all"] | None = None
    """Targets that a true target is compared with: all others of the training events, or a number
    that is drawn per window. None: all if there are at most 20,000 and the objective is softmax,
    else 256."""
    calibration: Annotated[float, Field(ge=0, le=1)] = 0.75
    """Calibration of gbce (t in the paper): 0 is the ordinary binary cross-entropy, and 1 corrects
    completely for the number of negatives."""
    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """Share of the targets that are hidden in a batch, to train the vector of unseen targets."""

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split a width of {self.width} evenly; "
                "give another number of heads"
            )
        if self.negatives == "all" and self.objective == "gbce":
            raise ValueError(
                "negatives=all does not work with objective=gbce; "
                "give a number, such as negatives=256"
            )

    def unused_settings(self) -> dict[str, str]:
        return {"calibration": "with objective=softmax"} if self.objective == "softmax" else {}

    def num_negatives(self, num_targets: int) -> int | None:
        """Return the number of negatives of a window, None for all training targets."""
        if self.negatives is None:
            uses_all = self.objective == "softmax" and num_targets <= MAX_SOFTMAX_TARGETS
            return None if uses_all else DEFAULT_NEGATIVES
        return self.negatives if isinstance(self.negatives, int) else None


class SASRec(LearnedModel):
    """Self-attentive sequential recommendation (SASRec), with gated blocks.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = SASRec(epochs=1, width=8, length=20).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 8))
    """

    name = "sasrec"
    config_type = SASRecConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (1e-3, 3e-3, 5e-3),
        "batch_size": (16, 32, 128),
        "length": (20, 50, 100, 200),
        "dropout": (0.1, 0.2, 0.4),
        "blocks": (1, 2, 3),
        "heads": (1, 2, 4),
        "width": (32, 64, 128),
    }
    config: SASRecConfig
    network: TokenTransformer

    # Training

    def prepare(self, split: Split) -> int:
        config, train = self.config, split.train
        if config.history == "both" and train.kind == "bipartite":
            raise InputError(
                "history=both needs a one-mode graph, because the sources of a bipartite graph "
                "receive nothing; leave it out, or read the log with kind='one-mode'"
            )
        self.start(split.events)
        self._candidates = np.unique(train.target)
        self.network.is_known[self._index(self._candidates)] = 1.0
        tokens = self._no_histories().append(*self._tokens_of(train))
        self._sequences = TrainingSequences(tokens, max_label=train.num_targets)
        # Which windows share a batch does not change between epochs.
        order = np.random.default_rng(config.seed).permutation(len(self._sequences))
        self._batches = np.split(order, range(config.batch_size, len(order), config.batch_size))
        return len(self._batches)

    def build_network(self) -> TokenTransformer:
        config = self.config
        return TokenTransformer(
            self.graph.space.num_targets,
            config.width,
            num_heads=config.heads,
            num_blocks=config.blocks,
            max_length=config.length,
            dropout=config.dropout,
            has_received_tokens=config.history == "both",
        )

    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(
            self.parameter_groups(), lr=self.config.learning_rate, betas=(0.9, 0.98), fused=True
        )

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the mean loss of the events that count in a batch of windows."""
        windows = self._sequences.windows(self._batches[batch])
        is_hidden_T = random.random(self.network.target.shape[0]) < self.config.hidden_share
        negative_WN = self._draw_negatives(len(windows.token), random)
        generator = torch.Generator().manual_seed(int(random.integers(2**63)))
        vectors = self.network.token_vectors(self._index(is_hidden_T))
        total = vectors.new_zeros(())
        for rows, most in chunks_by_length(windows.length, _POSITIONS_PER_CHUNK):
            negatives = None if negative_WN is None else negative_WN[rows]
            chunk = windows.select(rows, most)
            total = total + self.window_loss(chunk, vectors, negatives, generator)
        return total / int(windows.is_counted.sum())

    def window_loss(
        self,
        windows: LabeledWindows,
        vectors: Tensor,
        negative_WN: IntArray | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the sum of the losses of the positions that count.

        `vectors` are those of all tokens, and `negative_WN` the target ids that the windows are
        compared with; None: all targets of the training events. Without a generator there is no
        dropout.
        """
        hidden_WPD = self.network(
            vectors, self._index(windows.token), self._index(windows.length), generator=generator
        )
        counted_R = np.flatnonzero(windows.is_counted)
        row_R, true_R = self._index(counted_R), windows.label.ravel()[counted_R] - 1
        query_RD = hidden_WPD.flatten(0, 1).index_select(0, row_R)
        if negative_WN is None:
            candidate_KD = vectors.index_select(0, self._index(1 + self._candidates))
            column_R = np.searchsorted(self._candidates, true_R)
            return softmax_loss(query_RD, candidate_KD, self._index(column_R))
        positive_R = (query_RD * vectors.index_select(0, self._index(1 + true_R))).sum(dim=1)
        negative_WND = functional.embedding(self._index(1 + negative_WN), vectors)
        score_WPN = hidden_WPD @ negative_WND.transpose(1, 2)
        score_RN = score_WPN.flatten(0, 1).index_select(0, row_R)
        is_true_RN = negative_WN[counted_R // windows.token.shape[1]] == true_R[:, None]
        score_RN = score_RN.masked_fill(self._index(is_true_RN), -torch.inf)
        return len(true_R) * self._sampled_loss(positive_R, score_RN)

    def _sampled_loss(self, positive_R: Tensor, negative_RN: Tensor) -> Tensor:
        """Return the mean loss of events whose negatives were drawn."""
        if self.config.objective == "softmax":
            return contrastive_loss(positive_R, negative_RN)
        return gbce_loss(
            positive_R,
            negative_RN,
            num_others=len(self._candidates) - 1,
            calibration=self.config.calibration,
        )

    def _draw_negatives(self, num_windows: int, random: np.random.Generator) -> IntArray | None:
        """Draw target ids for each window uniformly with replacement, [W, N]; None: all.

        Published: each position has negatives of its own. Here: the positions of a window share
        them. Because: gathering their vectors for each position would take longer than the encoder.
        """
        count = self.config.num_negatives(len(self._candidates))
        return None if count is None else random.choice(self._candidates, (num_windows, count))

    # Following the stream

    def reset_state(self) -> None:
        self._latest = self._no_histories()
        self._compute_vectors()
        start_11, length_1 = np.full((1, 1), START, dtype=np.int32), np.ones(1, dtype=np.int64)
        start_D = self._encode(start_11, length_1)[0]
        self._query = start_D.repeat(self.graph.space.num_sources, 1)

    def update_state(self, events: EventStream) -> None:
        tokens = self._latest.append(*self._tokens_of(events))
        self._encode_after(tokens, tokens.is_last)

    def state_tensors(self) -> dict[str, Tensor]:
        return {"query": self._query}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._compute_vectors()
        self._latest.append(*self._tokens_of(self.state.events()))
        # A copy, because BLAS may round in another way if an array begins elsewhere in memory.
        self._query = tensors["query"].to(self.config.device, copy=True)

    def _no_histories(self) -> LatestTokens:
        return LatestTokens(self.graph.space.num_sources, self.config.length)

    def _tokens_of(self, events: EventStream) -> tuple[IntArray, IntArray]:
        """Return the nodes whose histories get a token with the events, and the tokens."""
        if self.config.history == "sent":
            return events.source, 1 + events.target
        node = np.stack([events.source, events.target], axis=1)
        token = np.stack([1 + events.target, 1 + len(events.targets) + events.source], axis=1)
        # A self-loop counts once, as sent.
        is_token = np.stack([np.ones(len(events), dtype=bool), events.source != events.target], 1)
        return node[is_token], token[is_token]

    @torch.no_grad()
    def _compute_vectors(self) -> None:
        self._vectors = self.network.token_vectors()

    def _encode_after(self, tokens: AppendedTokens, is_needed: BoolArray) -> Tensor:
        """Encode the windows after some tokens and store the queries of their nodes.

        The result has the queries in the order of the tokens.
        """
        needed = np.flatnonzero(is_needed)
        query_ND = self._encode(tokens.windows_after(needed), tokens.lengths_after(needed))
        is_last = tokens.is_last[needed]
        self._query[self._index(tokens.node[needed[is_last]])] = query_ND[self._index(is_last)]
        return query_ND

    @torch.no_grad()
    def _encode(self, token_WP: TokenArray, length_W: IntArray) -> Tensor:
        """Return the states of the newest positions of windows, [W, D]."""
        query_WD = self._vectors.new_empty(len(token_WP), self.config.width)
        for rows, most in chunks_by_length(length_W, _POSITIONS_PER_CHUNK):
            token = self._index(token_WP[rows, token_WP.shape[1] - most :])
            length = self._index(length_W[rows])
            newest_W1D = self.network(self._vectors, token, length, only_newest=True)
            query_WD[self._index(rows)] = newest_W1D[:, 0]
        return query_WD

    # Ranking

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        return self._scores(self._query[self._index(source)])

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        """Score events with the query of the source before the block or after its latest event."""
        events = self.admit(events)
        self.graph.append(events)
        node, token = self._tokens_of(events)
        tokens = self._latest.append(node, token)
        # An event is ranked with the query after the previous token of its source.
        previous = tokens.previous[token <= self.graph.space.num_targets]
        has_previous = previous != NO_TOKEN
        is_needed = tokens.is_last.copy()
        is_needed[previous[has_previous]] = True
        query_BD = self._query[self._index(events.source)]
        after_ND = self._encode_after(tokens, is_needed)
        row = (np.cumsum(is_needed) - 1)[previous[has_previous]]
        query_BD[self._index(has_previous)] = after_ND[self._index(row)]
        return self._scores(query_BD)

    def _scores(self, query_BD: Tensor) -> ScoreArray:
        target_TD = self._vectors[1 : 1 + self.graph.space.num_targets]
        return (query_BD @ target_TD.T).cpu().numpy()

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """Return the queries of sources and the vectors of targets.

        In a one-mode graph all nodes are sources.
        """
        space = self.graph.space
        vectors = np.empty((len(node), self.config.width), dtype=np.float32)
        is_source = node < space.num_sources
        target = node[~is_source] - space.first_target
        vectors[is_source] = self._query[self._index(node[is_source])].cpu().numpy()
        vectors[~is_source] = self._vectors[self._index(1 + target)].cpu().numpy()
        return vectors

    def _index(self, array: NDArray[Any]) -> Tensor:
        """Return a copy of the array as a tensor on the network's device."""
        # A copy, because the columns of a stream are read-only and torch tensors cannot be.
        return torch.tensor(array, device=self.config.device)
