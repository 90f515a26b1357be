"""Experts: models whose scores join the explore head.

An expert is any model that keeps the contract. It learns by its own objective and knows nothing of
the ranker. Its scores, as log-probabilities over all known targets, are multiplied by a single
number, its *trust*, and added to the explore head's scores of targets new to the source. The trust
is chosen on the validation events, on which neither the expert nor the heads were trained. With a
trust of 0 the ranker is what it is without the expert.

Shapes: B queries, T targets, U unknown targets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import TypedDict

from tclgraph import registry
from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.models.interface import Model
from tclgraph.models.learned import LearnedModel
from tclgraph.models.ranker.unknown import UnknownTargets
from tclgraph.models.saving import SavedModel, tensors_below
from tclgraph.models.stream_state import StreamState
from tclgraph.training.progress import ProgressCallback

PREFIX = "expert."
"""Beginning of the names of experts' tensors in a saved ranker."""


class ExpertSettings(TypedDict):
    """Name of a model in the registry, and all of its settings."""

    model: str
    settings: dict[str, Any]


def parse_experts(value: Any) -> Any:
    """Return the settings of experts that are given as models, as names, or as text.

    >>> [expert["model"] for expert in parse_experts("tcl:levels=3, popularity")]
    ['tcl', 'popularity']
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    if not isinstance(value, Sequence):
        return value
    return tuple(_parse_expert(expert) for expert in value)


def _parse_expert(expert: Any) -> Any:
    if isinstance(expert, str):
        name, *assignments = expert.split(":")
        pairs = (assignment.partition("=") for assignment in assignments)
        try:
            expert = registry.build(name, **{key: given for key, _, given in pairs})
        except InputError as error:
            raise ValueError(str(error)) from None
    if isinstance(expert, Model):
        return ExpertSettings(model=expert.name, settings=expert.settings())
    return expert


@dataclass(frozen=True, slots=True)
class Experts:
    """The fitted experts of a ranker, which observe the same events as the ranker."""

    models: tuple[Model, ...] = ()

    @classmethod
    def fitted(
        cls,
        settings: Sequence[ExpertSettings],
        split: Split,
        *,
        run: Path | None,
        resume: bool,
        progress: ProgressCallback | None,
    ) -> Self:
        """Fit every expert; a learned one has a run folder below that of the ranker."""
        models = [_build(expert) for expert in settings]
        for number, model in enumerate(models):
            if isinstance(model, LearnedModel):
                folder = None if run is None else run / "experts" / f"{number}-{model.name}"
                is_begun = resume and folder is not None and folder.exists()
                model.fit(split, run=folder, resume=is_begun, progress=progress)
            else:
                model.fit(split)
        return cls(tuple(models))

    def without_events(self) -> Self:
        """Return copies of the experts that have observed nothing; these keep their state."""
        return replace(self, models=tuple(model.without_events() for model in self.models))

    def extended(self, state: StreamState) -> Self:
        """Return copies with a larger vocabulary that have observed nothing."""
        copies = self.without_events()
        for model in copies.models:
            model.extend(state.without_events())
        return copies

    def observe(self, events: EventStream) -> None:
        """Let all experts observe the events."""
        for model in self.models:
            model.observe(events)

    def score(
        self, source: IntArray, time: FloatArray, unknown: UnknownTargets, is_used: Sequence[bool]
    ) -> list[Tensor | None]:
        """Return the log-probabilities of every expert that is used, [B, T] each."""
        return [
            log_probabilities(model.score(source, time), unknown) if used else None
            for model, used in zip(self.models, is_used, strict=True)
        ]

    def score_each(
        self, events: EventStream, unknown: UnknownTargets, is_used: Sequence[bool]
    ) -> list[Tensor | None]:
        """Return the same before each event, and let all experts observe the events."""
        scores: list[Tensor | None] = []
        for model, used in zip(self.models, is_used, strict=True):
            if used:
                scores.append(log_probabilities(model.score_each(events), unknown))
            else:
                model.observe(events)
                scores.append(None)
        return scores

    # Saving

    def measured(self) -> list[dict[str, Any]]:
        """Return the measured figures of every expert."""
        return [model.measured for model in self.models]

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of all experts, under the number of the expert and their name."""
        return {
            f"{number}.{name}": tensor
            for number, model in enumerate(self.models)
            for name, tensor in model.tensors().items()
        }

    @classmethod
    def from_saved(
        cls, settings: Sequence[ExpertSettings], saved: SavedModel, *, device: str | None
    ) -> Self:
        """Restore the experts of a saved ranker."""
        tensors = tensors_below(saved.tensors, PREFIX)
        models = []
        for number, (expert, measured) in enumerate(
            zip(settings, saved.measured["experts"], strict=True)
        ):
            of_expert = SavedModel(
                model=expert["model"],
                settings=expert["settings"],
                measured=measured,
                state=saved.state.copy(),
                tensors=tensors_below(tensors, f"{number}."),
            )
            models.append(
                registry.model_class(expert["model"]).from_saved(of_expert, device=device)
            )
        return cls(tuple(models))


def combined(scores: Sequence[Tensor | None], trust: Sequence[float]) -> Tensor | None:
    """Return the sum of the experts' scores, each times its trust; None if there is none."""
    used = [
        share * score
        for score, share in zip(scores, trust, strict=True)
        if score is not None and share > 0
    ]
    return torch.stack(used).sum(0) if used else None


def log_probabilities(scores: ScoreArray, unknown: UnknownTargets) -> Tensor:
    """Return scores as log-probabilities over known targets, [B, T].

    Unknown targets have no part in the normalization, so their number changes nothing.
    """
    score_BT = torch.from_numpy(np.ascontiguousarray(scores))
    known_BT = score_BT
    if len(unknown.target):
        known_BT = score_BT.clone()
        is_unknown_BU = torch.from_numpy(unknown.is_unknown(len(score_BT)))
        known_BU = score_BT[:, unknown.target].masked_fill(is_unknown_BU, -torch.inf)
        known_BT[:, unknown.target] = known_BU
    return score_BT - known_BT.logsumexp(dim=1, keepdim=True)


def with_shared(expert: ExpertSettings, shared: Mapping[str, Any]) -> ExpertSettings:
    """Return the settings of an expert, of which a learned one takes those of the ranker."""
    if not issubclass(registry.model_class(expert["model"]), LearnedModel):
        return expert
    return ExpertSettings(model=expert["model"], settings={**expert["settings"], **shared})


def _build(expert: ExpertSettings) -> Model:
    cls = registry.model_class(expert["model"])
    if issubclass(cls, LearnedModel):
        return cls.from_settings(expert["settings"])
    return cls(**expert["settings"])
