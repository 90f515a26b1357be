"""TCL as a model: it trains on windows of events, ranks all targets, and follows the stream."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import polars as pl
import torch
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import DependencyGraph, NodeSpace
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.identifiers import Identifiers, Key
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, Graph, check_graph
from tclgraph.events.writers import replacing
from tclgraph.models.tcl import ranking
from tclgraph.models.tcl.config import PRESETS, TCLConfig
from tclgraph.models.tcl.network import TCLNetwork, TimeUnits
from tclgraph.models.tcl.state import NodeStates
from tclgraph.models.tcl.terms import Choice
from tclgraph.models.tcl.windows import FullWindow, TrainingWindows, Window
from tclgraph.objectives.contrastive import contrastive_loss
from tclgraph.objectives.point_process import point_process_loss
from tclgraph.training.checkpoint import part_of
from tclgraph.training.config import checked
from tclgraph.training.learned import LearnedModel


class Recommendation(NamedTuple):
    """A target and how well it fits; scores compare within one list only."""

    target: Key
    score: float


class TCL(LearnedModel):
    """Transformer-based dynamic graph modelling via contrastive learning.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TCL(preset="paper", epochs=1, width=16, levels=3).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 16))
    """

    name = "tcl"
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (5e-4, 1e-3, 2e-3, 5e-3),
        "input_dropout": (0.1, 0.3, 0.6),
        "levels": (3, 4, 5),
        "width": (32, 64, 128),
    }
    config: TCLConfig
    network: TCLNetwork

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        if preset not in PRESETS:
            raise InputError(f"unknown preset {preset!r}; {did_you_mean(preset, PRESETS)}")
        self.config = checked(TCLConfig, {**PRESETS[preset], **settings})
        self._followed: NodeStates | None = None

    # Learning

    def prepare(self, split: Split) -> int:
        events, config = split.events, self.config
        self._windows = TrainingWindows(split.train, config)
        graph = self._windows.graph
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(config.seed)
            network = TCLNetwork(config, graph.space.num_nodes, TimeUnits.of(graph))
        if network.terms:
            network.terms.measure(self._windows.sample_of_facts())
        self._take(network.to(config.device), events.graph, events.sources, events.targets)
        return len(self._windows)

    def _take(
        self, network: TCLNetwork, graph: Graph, sources: Identifiers, targets: Identifiers
    ) -> None:
        self.network = network
        self._sources, self._targets = sources, targets
        self._space = NodeSpace(graph=graph, num_sources=len(sources), num_targets=len(targets))
        self._followed = NodeStates(network, DependencyGraph(self._space))

    def parameter_groups(self) -> list[dict[str, Any]]:
        groups = super().parameter_groups()
        if self.network.terms:
            terms = list(self.network.terms.parameters())
            in_terms = {id(one) for one in terms}
            encoder = [one for one in groups[0]["params"] if id(one) not in in_terms]
            rate = self.config.learning_rate * self.config.term_rate
            groups = [{"params": encoder}, {"params": terms, "lr": rate}]
        return groups

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        if self.config.contrast == "full":
            return self.full_loss_of(self._windows.draw_full(batch, random), random)
        return self.loss_of(self._windows.draw(batch, random), random)

    def full_loss_of(self, window: FullWindow, random: np.random.Generator | None = None) -> Tensor:
        """Mean of -log p of what happened; without a generator nothing is dropped out."""
        network = self.network
        assert network.terms is not None

        def on_device(array: IntArray) -> Tensor:
            return torch.from_numpy(array).to(network.device)

        match_BK = network.node.weight.new_zeros(window.state.shape)
        if self.config.embeddings:
            vectors = network(window.packed, random)
            asking_BD = vectors.index_select(0, on_device(window.source_position))
            states_ID = vectors.index_select(0, on_device(window.state_position))
            match = network.ranking_key(asking_BD, learning=True) @ states_ID.T
            match_BK = match.gather(1, on_device(window.state))
        weight = None if window.weight is None else network.numbers(window.weight)
        found_BK: Tensor = network.terms(window.facts, match_BK, Choice(window.column_of, weight))
        return -found_BK.gather(1, on_device(window.true_column)[:, None]).mean()

    def loss_of(self, window: Window, random: np.random.Generator | None = None) -> Tensor:
        """Of given events and negatives; without a generator nothing is dropped out."""
        network = self.network
        position = torch.from_numpy(window.position).to(network.device)
        vector_BCD = functional.embedding(position, network(window.packed, random))
        match_BC = network.discriminator(vector_BCD[:, :1], vector_BCD[:, 1:])
        if self.config.objective == "contrastive":
            similarity_BC = functional.softplus(match_BC)
            return contrastive_loss(similarity_BC[:, 0], similarity_BC[:, 1:])
        intensity = network.intensity
        elapsed_BC = network.numbers(window.elapsed / network.units.mean)
        since_source_BC, since_target_BC = elapsed_BC[:, :1], elapsed_BC[:, 1:]
        line_BC = intensity.line(match_BC, since_source_BC, since_target_BC)
        span_BC = torch.minimum(since_source_BC, since_target_BC)
        return point_process_loss(
            line_BC[:, 0],
            line_BC - intensity.slope * span_BC,
            intensity.slope,
            span_BC,
            self.config.survival_weight,
        )

    # Following and ranking

    @property
    def _states(self) -> NodeStates:
        if self._followed is None:
            raise InputError("this model has learned nothing yet; fit it, or load a saved one")
        return self._followed

    def forget(self) -> None:
        if self._followed is not None:
            self._followed = NodeStates(self.network, DependencyGraph(self._space))

    def observe(self, events: EventStream) -> None:
        graph = self._states.graph
        self._check_nodes(events)
        graph.append(events)

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        return ranking.score_present(self.network, self._states, source, time)

    def score_each(self, events: EventStream) -> ScoreArray:
        self._check_nodes(events)
        return ranking.score_each(self.network, self._states, events)

    def _check_nodes(self, events: EventStream) -> None:
        same = (events.sources is self._sources or events.sources == self._sources) and (
            events.targets is self._targets or events.targets == self._targets
        )
        if not same or events.graph != self._space.graph:
            raise InputError(
                "these events have other nodes than those the model was fitted on "
                f"({events.num_sources} sources and {events.num_targets} targets, fitted on "
                f"{self._space.num_sources} and {self._space.num_targets}); "
                "give the same log with the same split, or fit again"
            )

    # Answers in the words of the log

    def recommend(
        self, source: Key, *, top: int = 10, at: float | None = None
    ) -> list[Recommendation]:
        """The likeliest next targets of a source, best first.

        `at` (seconds, as in the log) takes the state from the events strictly before that time;
        without it, from all events observed so far.
        """
        states = self._states_at(at)
        node = np.array([self._sources.id(source)])
        last = states.graph.time[-1] if len(states.graph) else 0.0
        now = np.array([last if at is None else at])
        scores = ranking.score_present(self.network, states, node, now)[0]
        if self.config.contrast == "full":
            scores = np.exp(scores)  # how likely each is
        elif self.config.objective == "contrastive":
            # What ranking leaves out, so that the figures are the paper's Sim.
            additive = states.vectors(node)[0] @ self.network.discriminator.additive
            scores = np.logaddexp(0.0, scores + additive.item())
        best = np.argsort(-scores, kind="stable")[:top]
        return [Recommendation(self._targets.key(one), float(scores[one])) for one in best.tolist()]

    def embed(
        self,
        keys: Sequence[Key] | None = None,
        *,
        side: Literal["source", "target"] = "source",
        at: float | None = None,
    ) -> ScoreArray:
        """Predictive vectors, one row per key (all of a side, without keys).

        Scores are made of these, so they are what a search index needs. `at` is as in `recommend`.
        """
        if not self.config.embeddings:
            raise InputError("this model was fitted with embeddings=False and has no vectors")
        states = self._states_at(at)
        identifiers = self._sources if side == "source" else self._targets
        ids = np.arange(len(identifiers)) if keys is None else identifiers.ids(keys)
        node = ids if side == "source" else ids + self._space.first_target
        return states.vectors(node).cpu().numpy()

    def embeddings(self, *, at: float | None = None) -> pl.DataFrame:
        """All vectors as a table: side ("both" in a one-mode graph), key, vector."""
        sides: tuple[Literal["source", "target"], ...] = ("source", "target")
        if self._space.graph == "one-mode":
            sides = ("source",)
        frames = []
        for side in sides:
            identifiers = self._sources if side == "source" else self._targets
            vectors = self.embed(side=side, at=at)
            frames.append(
                pl.DataFrame(
                    {
                        "side": [side if len(sides) == 2 else "both"] * len(identifiers),
                        # One type for both sides, whichever keys they have.
                        "key": identifiers.keys.cast(pl.String),
                        "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, vectors.shape[1])),
                    }
                )
            )
        return pl.concat(frames)

    def _states_at(self, time: float | None) -> NodeStates:
        graph = self._states.graph
        if time is None or not len(graph) or time > graph.time[-1]:
            return self._states
        num_events = int(np.searchsorted(graph.time, time, side="left"))
        past = DependencyGraph(self._space)
        past.extend(graph.node[: 2 * num_events], graph.time[:num_events])
        return NodeStates(self.network, past)

    # Keeping

    def save(self, folder: str | Path) -> None:
        graph = self._states.graph
        tensors = {
            **{f"network.{name}": one for name, one in self.network.state_dict().items()},
            **{f"state.{name}": one for name, one in self._states.to_tensors().items()},
            "graph.node": torch.from_numpy(graph.node.copy()),
            "graph.time": torch.from_numpy(graph.time.copy()),
            "sources": _text(self._sources),
            "targets": _text(self._targets),
        }
        metadata = {
            "model": self.name,
            "config": json.dumps(asdict(self.config)),
            "units": json.dumps(asdict(self.network.units)),
            "graph": self._space.graph,
        }
        with replacing(Path(folder) / self.saved_as) as path:
            path.write_bytes(to_bytes(tensors, metadata))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        with safe_open(Path(folder) / cls.saved_as, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        model = cls(**json.loads(metadata["config"]))
        graph = check_graph(metadata["graph"])
        sources = _identifiers(tensors["sources"])
        targets = sources if graph == "one-mode" else _identifiers(tensors["targets"])
        num_nodes = len(sources) + (0 if graph == "one-mode" else len(targets))
        units = TimeUnits(**json.loads(metadata["units"]))
        network = TCLNetwork(model.config, num_nodes, units)
        network.load_state_dict(part_of(tensors, "network."))
        model._take(network.to(model.config.device), graph, sources, targets)
        model._states.graph.extend(tensors["graph.node"].numpy(), tensors["graph.time"].numpy())
        model._states.take_tensors(part_of(tensors, "state."))
        return model


def _text(identifiers: Identifiers) -> Tensor:
    """Keys as the bytes of a JSON list: a safetensors file has no text."""
    keys = json.dumps(identifiers.keys.to_list()).encode()
    return torch.from_numpy(np.frombuffer(keys, dtype=np.uint8).copy())


def _identifiers(text: Tensor) -> Identifiers:
    keys = json.loads(text.numpy().tobytes())
    is_text = bool(keys) and isinstance(keys[0], str)
    return Identifiers(pl.Series(keys, dtype=pl.String if is_text else pl.Int64))
