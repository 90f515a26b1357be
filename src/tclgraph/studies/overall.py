"""The overall comparison (Table 2): heuristics, baselines, TCL and the ranker on one log."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tclgraph import registry
from tclgraph.baselines.graphsage import AGGREGATORS
from tclgraph.errors import InputError, did_you_mean
from tclgraph.heuristics.rules import Heuristic, heuristics_for
from tclgraph.studies.published import published_overall
from tclgraph.studies.study import Entry, OpenLog, Role, Study
from tclgraph.studies.tuned import tuned_settings

STATIC = ("graphsage",)
DISCRETE_TIME = ("ctdne", "dyngem", "dysat")
FIRST_ORDER = ("jodie", "deepcoevolve")
"""Continuous-time baselines to which the paper contrasts those of high order."""
HIGH_ORDER = ("tgat", "tgn", "tdig-mpnn")
"""Continuous-time baselines that, as the paper says, use high-order neighborhoods."""
CONTINUOUS_TIME = (*FIRST_ORDER, *HIGH_ORDER)
BASELINES = (*STATIC, *DISCRETE_TIME, *CONTINUOUS_TIME)
"""Names in the registry, in the categories and in the order of Table 2."""
ALL_HEURISTICS = "heuristics"
"""Stands for all heuristics of the log's kind of graph in a list of models."""
DEFAULT_MODELS = (ALL_HEURISTICS, *BASELINES, "tcl", "ranker")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallStudy(Study):
    """The comparison of models on one log."""

    entries: tuple[Entry, ...]
    tcl: Entry | None
    """TCL with its default settings, if it is compared."""
    ranker: Entry | None
    """The ranker with its default settings, if it is compared."""

    @property
    def name(self) -> str:
        return "overall"


def overall_study(log: OpenLog, models: Sequence[str] = DEFAULT_MODELS) -> OverallStudy:
    """Return the comparison of these models.

    A model is a name in the registry, `heuristics` for all heuristics, or a name with settings:
    `tcl:negative_pool=256`. A baseline without settings has those that were tuned for this log, see
    `tuned_settings`.
    """
    entries = sorted(_entries(models, log), key=lambda entry: list(Role).index(entry.role))
    return OverallStudy(
        log=log,
        entries=tuple(entries),
        tcl=_with_default_settings(entries, "tcl"),
        ranker=_with_default_settings(entries, "ranker"),
    )


def _entries(models: Iterable[str], log: OpenLog) -> Iterator[Entry]:
    for model in dict.fromkeys(models):
        if model == ALL_HEURISTICS:
            for heuristic in heuristics_for(log.split.events.kind):
                yield _entry(heuristic.name, log)
        else:
            yield _entry(model, log)


def _entry(model: str, log: OpenLog) -> Entry:
    name, given = _parse(model)
    tuned = None
    if name in BASELINES and not given:
        tuned = tuned_settings(name, log.spec.name, log.split)
    settings = tuned.settings if tuned else given
    if name == "graphsage" and settings.get("aggregator") is None:
        jobs = [log.job(name, {**settings, "aggregator": aggregator}) for aggregator in AGGREGATORS]
    else:
        jobs = [log.job(name, settings)]
    # The ranker is compared with the figures that the paper reports for its own model.
    published_as = "tcl" if name == "ranker" else name
    return Entry(
        name=", ".join([name, *(f"{setting}={value}" for setting, value in given.items())]),
        role=_role_of(name),
        jobs=tuple(jobs),
        published={} if given else published_overall(published_as, log.spec.name),
        tuned=tuned,
    )


def _parse(model: str) -> tuple[str, dict[str, Any]]:
    """Split `name:setting=value:…` into the name and the settings."""
    name, *words = model.split(":")
    known = (*registry.names(), ALL_HEURISTICS)
    if name not in known:
        raise InputError(f"unknown model {name!r}; {did_you_mean(name, known)}")
    settings = {}
    for word in words:
        setting, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"cannot read the setting {word!r} of {model!r}; write NAME=VALUE")
        settings[setting] = value
    registry.build(name, **settings)  # refuses unknown settings before any job runs
    return name, settings


def _role_of(name: str) -> Role:
    if name in ("tcl", "ranker"):
        return Role.OURS
    if name in BASELINES:
        return Role.BASELINE
    if issubclass(registry.model_class(name), Heuristic):
        return Role.HEURISTIC
    return Role.EXTERNAL


def _with_default_settings(entries: Iterable[Entry], model: str) -> Entry | None:
    for entry in entries:
        if entry.jobs[0].model == model and not entry.jobs[0].settings:
            return entry
    return None
