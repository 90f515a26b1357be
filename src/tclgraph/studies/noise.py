"""Robustness to noise: what models lose if random interactions are among the training events.

The paper says that the contrastive objective makes TCL robust to noisy interactions, and has no
experiment on it. This study trains TCL, its point-process variant and TGN with shares of random
interactions (see `events.noise`). All models of a seed get the same ones.

Noise is added to the training events only. The validation and test events are the same as without
noise, and so are the candidates. A model ranks them with a state that has observed the noise: it is
part of the history that sub-graphs, neighborhoods and memories are made from. The epoch is chosen
by validation, as always.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tclgraph.studies.study import Entry, OpenLog, Role, Study
from tclgraph.studies.tuned import tuned_settings

SHARES = (0.0, 0.05, 0.1, 0.2)
"""Random interactions as a share of the training events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyModel:
    """A model trained with every share of random interactions."""

    name: str
    entries: tuple[Entry, ...]
    """An entry for each of `SHARES`."""

    @property
    def clean(self) -> Entry:
        """Return the model trained without noise."""
        return self.entries[0]

    @property
    def noisiest(self) -> Entry:
        """Return the model trained with the largest share."""
        return self.entries[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseStudy(Study):
    """Models that are trained with and without random interactions."""

    contrastive: NoisyModel
    """TCL with its default settings."""
    others: tuple[NoisyModel, ...]
    """The models that TCL is compared with, its point-process variant first."""

    @property
    def name(self) -> str:
        return "noise"

    @property
    def models(self) -> tuple[NoisyModel, ...]:
        return (self.contrastive, *self.others)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for model in self.models for entry in model.entries)


def noise_study(log: OpenLog) -> NoiseStudy:
    """Return the study of a log."""
    tuned = tuned_settings("tgn", log.spec.name, log.split)
    # TGN validates on a sample by default; the losses of all models are on the same events.
    tgn = {**(tuned.settings if tuned else {}), "max_valid_events": None}
    return NoiseStudy(
        log=log,
        contrastive=_noisy(log, "TCL", "tcl", {}, Role.OURS),
        others=(
            _noisy(log, "point process", "tcl", {"objective": "point-process"}, Role.OURS),
            _noisy(log, "TGN", "tgn", tgn, Role.BASELINE),
        ),
    )


def _noisy(
    log: OpenLog, name: str, model: str, settings: Mapping[str, Any], role: Role
) -> NoisyModel:
    # Without noise, the jobs of TCL are those of the overall comparison and of the ablation.
    job = log.job(model, settings)
    return NoisyModel(
        name=name,
        entries=tuple(
            Entry(name=f"{name}, {100 * share:g} %", role=role, jobs=(replace(job, noise=share),))
            for share in SHARES
        ),
    )
