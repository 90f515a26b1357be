"""The ranker as a model: it trains on windows of events, ranks all targets, follows the stream.

Shapes: B events or queries, R of them with candidate features, K candidates, T targets, D width.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.encoding.node_states import NodeStates
from tclgraph.encoding.training_windows import CandidateRoots
from tclgraph.encoding.two_stream import EncoderInputs
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState
from tclgraph.features.time_scale import TimeScale
from tclgraph.models.interface import Model
from tclgraph.models.learned import LearnedModel
from tclgraph.models.ranker.config import RankerConfig
from tclgraph.models.ranker.experts import PREFIX, Experts, combined
from tclgraph.models.ranker.heads import ScoreHeads
from tclgraph.models.ranker.match import MatchEncoder
from tclgraph.models.ranker.trust import choose_trust
from tclgraph.models.ranker.unknown import UnknownTargets
from tclgraph.models.ranker.windows import RankerWindows, Window
from tclgraph.models.saving import SavedModel
from tclgraph.models.stream_state import StreamState
from tclgraph.threads import even_cuts, num_parts, run_in_parts, threads_for_parts
from tclgraph.training.progress import ProgressCallback
from tclgraph.training.trainable import UseOfThreads

_MIN_EVENTS_PER_THREAD = 16
# Few at a time, because a source may have hundreds of pairs.
_EVENTS_AT_ONCE = 256


class DrawnWindow(NamedTuple):
    """The part of a batch's inputs that does not depend on the network."""

    window: Window
    inputs: list[EncoderInputs] | None
    """What the encoder encodes, if there is one."""


class RankerNetwork(nn.Module):
    """The score heads, and the encoder if there is one."""

    def __init__(self, config: RankerConfig, num_nodes: int, scale: IntervalScale) -> None:
        super().__init__()
        self.match = MatchEncoder(config.encoder, num_nodes, scale) if config.encoder else None
        self.heads = ScoreHeads(config)


class Ranker(LearnedModel):
    """The default model: how likely each target is next, given the history before the query.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = Ranker(epochs=1, encoder=None).fit(split)
    >>> len(model.recommend(0, top=5))
    5
    """

    name = "ranker"
    config_type = RankerConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (5e-4, 1e-3, 2e-3, 5e-3),
        "encoder.input_dropout": (0.1, 0.3, 0.6),
        "encoder.levels": (3, 4, 5),
        "encoder.width": (32, 64, 128),
    }
    config: RankerConfig
    network: RankerNetwork
    experts = Experts()
    """Fitted experts; there are none while the heads are trained."""

    # Training

    def fit(
        self,
        split: Split,
        *,
        run: str | Path | None = None,
        resume: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Train the heads, then the experts; choose on valid how far to trust the experts."""
        super().fit(split, run=run, resume=resume, progress=progress)
        if self.config.experts:
            folder = None if run is None else Path(run)
            self.experts = Experts.fitted(
                self.config.experts, split, run=folder, resume=resume, progress=progress
            )
            self.measured |= {"experts": self.experts.measured()}
            self.measured["trust"] = choose_trust(self, split)
            if folder is not None:
                self.save(folder)
        return self

    def prepare(self, split: Split) -> int:
        config = self.config
        self.experts = Experts()
        self.windows = RankerWindows(split.train, config)
        scale = asdict(IntervalScale.measure(self.windows.graph))
        self.start(
            split.events,
            scale=scale,
            time_scale=asdict(self.windows.time_scale),
            num_targets=split.events.num_targets,
            experts=[],
            trust=[],
        )
        self.network.heads.measure(self.windows.feature_sample())
        return len(self.windows)

    def build_network(self) -> RankerNetwork:
        scale = IntervalScale(**self.measured["scale"])
        return RankerNetwork(self.config, self.graph.space.num_nodes, scale)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return encoder and heads as two groups; heads learn faster."""
        rate = self.config.learning_rate * self.config.head_learning_rate_factor
        heads = {"params": list(self.network.heads.parameters()), "lr": rate}
        if self.network.match is None:
            return [heads]
        return [{"params": list(self.network.match.parameters())}, heads]

    @property
    def use_of_threads(self) -> UseOfThreads:
        return "drawing" if self.config.encoder is None else "parts"

    def draw_batch(self, batch: int, random: np.random.Generator) -> DrawnWindow:
        match = self.network.match
        if match is None:
            return DrawnWindow(self.windows.draw(batch, random), None)
        window = self.windows.draw(batch, random, match.encoder.absent_node)
        if window.roots is None:
            return DrawnWindow(window, None)
        return DrawnWindow(
            window, match.encoder.inputs(self.windows.graph, window.roots.pairs, random)
        )

    def loss(self, batch: int | DrawnWindow, random: np.random.Generator) -> Tensor:
        drawn = self.draw_batch(batch, random) if isinstance(batch, int) else batch
        return self.window_loss(drawn.window, drawn.inputs)

    def window_loss(self, window: Window, inputs: list[EncoderInputs] | None = None) -> Tensor:
        """Return the mean of -log p of the true targets; without inputs there is no dropout."""
        match_RK = None
        if self.network.match is not None and window.roots is not None:
            match_RK = self._training_match(self.network.match, window.roots, inputs)
        return self.network.heads.loss(
            window.features, window.candidates, window.true_target, match_RK
        )

    def _training_match(
        self, match: MatchEncoder, roots: CandidateRoots, inputs: list[EncoderInputs] | None
    ) -> Tensor:
        """Return the match scores of the events that have candidate features."""
        encoder = match.encoder
        vectors: Tensor = encoder(inputs or encoder.inputs(self.windows.graph, roots.pairs))

        def index(array: IntArray) -> Tensor:
            return torch.from_numpy(array).to(vectors.device)

        source_RD = vectors.index_select(0, index(roots.source_position))
        version_ND = vectors.index_select(0, index(roots.version_position))
        product_RN = match.ranking_key(source_RD, in_training=True) @ version_ND.T
        return product_RN.gather(1, index(roots.version))

    # State and ranking

    @property
    def _num_trained(self) -> int:
        """Number of targets that training knew."""
        return int(self.measured["num_targets"])

    def reset_state(self) -> None:
        match = self.network.match
        self._states = None if match is None else NodeStates(match.encoder, self.graph)
        time_scale = TimeScale(**self.measured["time_scale"])
        self._history = HistoryState(InteractionLog(self.graph, time_scale, self._num_trained))
        self.experts = self.experts.without_events()

    def extend(self, state: StreamState) -> None:
        super().extend(state)
        self.experts = self.experts.extended(state)

    def update_state(self, events: EventStream) -> None:
        self.experts.observe(events)

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        match_BT = None
        if self.network.match is not None and self._states is not None:
            key_BD = self.network.match.ranking_key(self._states.vectors(source))
            match_BT = key_BD @ self._states.vectors(self.graph.space.target_nodes).T
        self._history.update()
        unknown = UnknownTargets.at(self.graph, self._num_trained, len(source))
        trust = self.measured["trust"]
        of_experts = self.experts.score(source, time, unknown, [value > 0 for value in trust])
        match_BT = _sum(match_BT, combined(of_experts, trust))
        return self._log_probabilities(self._history.features(source, time), match_BT, unknown)

    def score_each(self, events: EventStream) -> ScoreArray:
        return self.score_with(events, [self.measured["trust"]])[0]

    @torch.no_grad()
    @threads_for_parts()
    def score_with(
        self, events: EventStream, trusts: Sequence[Sequence[float]]
    ) -> list[ScoreArray]:
        """Do the same as `score_each` for different values of the trust in each expert."""
        events = self.admit(events)
        self._history.update()
        unknown = UnknownTargets.at(self.graph, self._num_trained, len(events))
        unknown = unknown.revealing(events, self.graph)
        match_BT = None
        if self.network.match is not None and self._states is not None:
            block = self._states.advance(events)
            key_BD = self.network.match.ranking_key(block.source_BD)
            match_BT = block.select(key_BD @ block.before_TD.T, key_BD @ block.after_ID.T)
        else:
            self.graph.append(events)
        is_used = [any(column) for column in zip(*trusts, strict=True)]
        of_experts = self.experts.score_each(events, unknown, is_used)
        matches = [_sum(match_BT, combined(of_experts, trust)) for trust in trusts]
        start = len(self.graph) - len(events)
        self._history.update(start)  # links the new events, before several threads read them
        parts: dict[int, list[ScoreArray]] = {}

        def work(_: int, first: int, last: int) -> None:
            history = self._history.copy()
            for begin in range(first, last, _EVENTS_AT_ONCE):
                rows = slice(begin, min(begin + _EVENTS_AT_ONCE, last))
                history.update(start + begin)
                features = history.features(events.source[rows], events.time[rows], reveal=True)
                unknown_now = unknown.from_query(begin)
                parts[begin] = [
                    self._log_probabilities(
                        features, None if match is None else match[rows], unknown_now
                    )
                    for match in matches
                ]

        cuts = even_cuts(len(events), num_parts(len(events), _MIN_EVENTS_PER_THREAD))
        run_in_parts(cuts, work)
        in_order = [parts[begin] for begin in sorted(parts)]
        return [np.concatenate(blocks) for blocks in zip(*in_order, strict=True)]

    def _log_probabilities(
        self, features: HistoryFeatures, match_BT: Tensor | None, unknown: UnknownTargets
    ) -> ScoreArray:
        bias, heads = self.config.repeat_bias, self.network.heads
        return heads.log_probabilities(features, match_BT, bias, unknown).cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        return {} if self._states is None else self._states.to_tensors()

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        if self._states is not None:
            self._states.load_tensors(tensors)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """Return the vectors of the first expert that has any, else those of the encoder."""
        for expert in self.experts.models:
            if type(expert).vectors is not Model.vectors:
                return expert.vectors(node, time)
        if self._states is None:
            raise InputError(
                "this ranker has no vectors, because it was fitted without an encoder and without "
                "an expert that has vectors; fit it with experts=tcl, or use tcl"
            )
        return self._states.vectors(node).cpu().numpy()

    def display_scores(self, source: int, scores: ScoreArray) -> ScoreArray:  # noqa: ARG002
        """Return probabilities in place of their logarithms."""
        probability: ScoreArray = np.exp(scores)
        return probability

    # Saving

    def tensors(self) -> dict[str, Tensor]:
        experts = {PREFIX + name: tensor for name, tensor in self.experts.tensors().items()}
        return super().tensors() | experts

    @classmethod
    def from_saved(cls, saved: SavedModel, *, device: str | None = None) -> Self:
        model = super().from_saved(saved, device=device)
        model.experts = Experts.from_saved(model.config.experts, saved, device=device)
        return model


def _sum(match_BT: Tensor | None, expert_BT: Tensor | None) -> Tensor | None:
    if match_BT is None or expert_BT is None:
        return expert_BT if match_BT is None else match_BT
    return match_BT + expert_BT.to(match_BT)
