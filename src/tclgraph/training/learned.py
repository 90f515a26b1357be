"""What all learned models have in common: nodes, a network, the events that were observed, a file.

A model says how its network is built, what a batch costs, and how its state follows events. From
that come fitting, saving, loading, and answers in the words of the log.
"""

import copy
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import polars as pl
import torch
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.errors import InputError
from tclgraph.events.identifiers import Identifiers, Key
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind, check_kind
from tclgraph.events.writers import replacing
from tclgraph.models.interface import Model
from tclgraph.training.checkpoint import part_of
from tclgraph.training.config import TrainingConfig, checked
from tclgraph.training.loop import Step, train
from tclgraph.training.progress import ProgressCallback, progress_bar
from tclgraph.training.run_folder import RunFolder


class Recommendation(NamedTuple):
    """A target and how well it fits; scores compare within one list only."""

    target: Key
    score: float


class LearnedModel(Model):
    """A model with a network that is trained batch by batch."""

    config_type: ClassVar[type[TrainingConfig]]
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3),
        "batch_size": (128, 256, 512),
    }
    """Settings that are worth tuning, and the values worth trying."""
    in_order: ClassVar[bool] = False
    """Whether each batch begins where the one before ended, so that they cannot be shuffled. What
    is carried from one to the next are then buffers of the network, and batch 0 begins anew."""

    config: TrainingConfig
    network: nn.Module
    graph: DependencyGraph
    """All events observed so far."""
    measured: dict[str, Any]
    """Figures of the training data that the network is built with; kept as JSON."""

    def __init__(self, **settings: Any) -> None:
        self.config = checked(self.config_type, settings)

    # Learning

    @abstractmethod
    def prepare(self, split: Split) -> int:
        """Call `start`, and make all that batches are drawn from; returns how many there are."""

    @abstractmethod
    def build_network(self) -> nn.Module:
        """Fresh, for the nodes of `self.graph.space` and by what was measured."""

    @abstractmethod
    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Of one batch; equal generators give equal losses."""

    def learn(
        self, batch: int, random: np.random.Generator, optimizer: torch.optim.Optimizer
    ) -> Step:
        """Make one step; `Step.apply` does so once the loop has seen that nothing is wrong."""
        loss = self.loss(batch, random)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        most = self.config.max_gradient_norm or np.inf
        norm = clip_grad_norm_(self.network.parameters(), most)
        return Step(loss.item(), norm.item(), optimizer.step)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """What is moved, and how fast: all at the same rate, unless a model knows better."""
        return [{"params": list(self.network.parameters())}]

    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameter_groups(), lr=self.config.learning_rate)

    def start(self, events: EventStream, **measured: Any) -> None:
        """Take over the nodes, and build a network whose first weights depend on the seed alone."""
        self._take(events.kind, events.sources, events.targets, measured)

    def fit(
        self,
        split: Split,
        *,
        run: str | Path | None = None,
        resume: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Train, and keep the epoch that does best on valid; the state ends with train.

        With `run` everything is kept in that folder as training goes, and `resume` continues what
        was interrupted there, to the same weights as if it had not been. `progress` is called after
        every batch; without it a bar is shown where someone watches.
        """
        folder = RunFolder(run) if run is not None else None
        with nullcontext(progress) if progress else progress_bar(always=False) as callback:
            train(self, split, run=folder, resume=resume, progress=callback)
        return self

    def _take(
        self, kind: GraphKind, sources: Identifiers, targets: Identifiers, measured: dict[str, Any]
    ) -> None:
        self.sources, self.targets, self.measured = sources, targets, measured
        self.graph = DependencyGraph(
            NodeSpace(kind=kind, num_sources=len(sources), num_targets=len(targets))
        )
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(self.config.seed)
            self.network = self.build_network().to(self.config.device)
        self.begin()

    # Following the stream

    def begin(self) -> None:
        """Make the state that there is before the first event, beside the empty graph."""

    def follow(self, events: EventStream) -> None:
        """Let the state follow these events, which the graph already has."""

    def observe(self, events: EventStream) -> None:
        self.check_nodes(events)
        self.graph.append(events)
        self.follow(events)

    def forget(self) -> None:
        if hasattr(self, "graph"):
            self.graph = DependencyGraph(self.graph.space)
            self.begin()

    def state_tensors(self) -> dict[str, Tensor]:
        """What scores depend on beside the network and the graph, to the last digit."""
        return {}

    def take_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Stand where the model stood that gave these."""

    def check_fitted(self) -> None:
        if not hasattr(self, "network"):
            raise InputError("this model has learned nothing yet; fit it, or load a saved one")

    def check_nodes(self, events: EventStream) -> None:
        """Refuse events of other nodes than those the model knows."""
        self.check_fitted()
        space = self.graph.space
        same = (events.sources is self.sources or events.sources == self.sources) and (
            events.targets is self.targets or events.targets == self.targets
        )
        if not same or events.kind != space.kind:
            raise InputError(
                "these events have other nodes than those the model was fitted on "
                f"({events.num_sources} sources and {events.num_targets} targets, fitted on "
                f"{space.num_sources} and {space.num_targets}); "
                "give the same log with the same split, or fit again"
            )

    # Answers in the words of the log

    @abstractmethod
    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """Of nodes (not ids: targets of a bipartite graph come after its sources), as of a time."""

    def shown_scores(self, node: int, scores: ScoreArray) -> ScoreArray:  # noqa: ARG002
        """Scores of all targets for one source as a person should see them, in the same order."""
        return scores

    def recommend(
        self, source: Key, *, top: int = 10, at: float | None = None
    ) -> list[Recommendation]:
        """The likeliest next targets of a source, best first.

        `at` (seconds, as in the log) takes the state from the events strictly before that time;
        without it, from all events observed so far.
        """
        self.check_fitted()
        past, now = self._as_of(at)
        node = self.sources.id(source)
        scores = past.score(np.array([node]), np.array([now]))[0]
        scores = past.shown_scores(node, scores)
        best = np.argsort(-scores, kind="stable")[:top]
        return [Recommendation(self.targets.key(one), float(scores[one])) for one in best.tolist()]

    def embed(
        self,
        keys: Sequence[Key] | None = None,
        *,
        side: Literal["source", "target"] = "source",
        at: float | None = None,
    ) -> ScoreArray:
        """Vectors, one row per key (all of a side, without keys); `at` is as in `recommend`."""
        self.check_fitted()
        past, now = self._as_of(at)
        identifiers = self.sources if side == "source" else self.targets
        ids = np.arange(len(identifiers)) if keys is None else identifiers.ids(keys)
        return past.vectors(ids if side == "source" else ids + self.graph.space.first_target, now)

    def embeddings(self, *, at: float | None = None) -> pl.DataFrame:
        """All vectors as a table: side ("both" in a one-mode graph), key, vector."""
        self.check_fitted()
        sides: tuple[Literal["source", "target"], ...] = ("source", "target")
        if self.graph.space.kind == "one-mode":
            sides = ("source",)
        frames = []
        for side in sides:
            identifiers = self.sources if side == "source" else self.targets
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

    def _as_of(self, time: float | None) -> tuple[Self, float]:
        """A model that knows the events strictly before a time, and that time.

        Without one: all events, and the time of the last.
        """
        last = float(self.graph.time[-1]) if len(self.graph) else 0.0
        if time is None:
            return self, last
        if not len(self.graph) or time > last:
            return self, time
        num_events = int(np.searchsorted(self.graph.time, time, side="left"))
        past = copy.copy(self)
        past.forget()
        past.observe(self._events(self.graph.node[: 2 * num_events], self.graph.time[:num_events]))
        return past, time

    def _events(self, node: IntArray, time: FloatArray) -> EventStream:
        """A stretch of the graph as a stream again."""
        return EventStream(
            source=node[0::2].copy(),
            target=node[1::2] - self.graph.space.first_target,
            time=time.copy(),
            sources=self.sources,
            targets=self.targets,
            kind=self.graph.space.kind,
        )

    # Keeping

    def save(self, folder: str | Path) -> None:
        self.check_fitted()
        tensors = {
            **{f"network.{name}": one for name, one in self.network.state_dict().items()},
            **{f"state.{name}": one for name, one in self.state_tensors().items()},
            "graph.node": torch.from_numpy(self.graph.node.copy()),
            "graph.time": torch.from_numpy(self.graph.time.copy()),
            "sources": _text(self.sources),
            "targets": _text(self.targets),
        }
        metadata = {
            "model": self.name,
            "config": json.dumps(asdict(self.config)),
            "measured": json.dumps(self.measured),
            "kind": self.graph.space.kind,
        }
        with replacing(Path(folder) / self.saved_as) as path:
            path.write_bytes(to_bytes(tensors, metadata))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        with safe_open(Path(folder) / cls.saved_as, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        model = cls(**json.loads(metadata["config"]))
        graph = check_kind(metadata["kind"])
        sources = _identifiers(tensors["sources"])
        targets = sources if graph == "one-mode" else _identifiers(tensors["targets"])
        model._take(graph, sources, targets, json.loads(metadata["measured"]))
        model.network.load_state_dict(part_of(tensors, "network."))
        model.graph.extend(tensors["graph.node"].numpy(), tensors["graph.time"].numpy())
        model.take_state_tensors(part_of(tensors, "state."))
        return model


def _text(identifiers: Identifiers) -> Tensor:
    """Keys as the bytes of a JSON list: a safetensors file has no text."""
    keys = json.dumps(identifiers.keys.to_list()).encode()
    return torch.from_numpy(np.frombuffer(keys, dtype=np.uint8).copy())


def _identifiers(text: Tensor) -> Identifiers:
    keys = json.loads(text.numpy().tobytes())
    is_text = bool(keys) and isinstance(keys[0], str)
    return Identifiers(pl.Series(keys, dtype=pl.String if is_text else pl.Int64))
