"""From the words of `tclgraph reproduce` to studies and their jobs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.catalog import CATALOG, find
from tclgraph.events.log_spec import LogSpec
from tclgraph.jobs.job import Job
from tclgraph.studies.ablation import ranker_ablation, tcl_ablation
from tclgraph.studies.noise import noise_study
from tclgraph.studies.overall import DEFAULT_MODELS, overall_study
from tclgraph.studies.parts import parts_ahead_study, parts_study
from tclgraph.studies.published import DATA_SETS
from tclgraph.studies.reading import reading_study
from tclgraph.studies.study import OpenLog, Study
from tclgraph.studies.sweep import DEPTH, HEADS, sweep_study


class Topic(StrEnum):
    """What can be reproduced."""

    DATASETS = "datasets"
    OVERALL = "overall"
    ABLATION = "ablation"
    DEPTH = "depth"
    HEADS = "heads"
    PARTS = "parts"
    READING = "reading"
    NOISE = "noise"


ALL = "all"
"""Stands for all tables and figures of the paper: not for `parts`, `reading` and `noise`."""
_ALL_TOPICS = frozenset(Topic) - {Topic.PARTS, Topic.READING, Topic.NOISE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The logs and the studies that were asked for."""

    logs: tuple[OpenLog, ...]
    studies: tuple[Study, ...]

    def jobs(self, num_seeds: int) -> list[Job]:
        """Return every job once, those of the first seed of all studies first."""
        jobs: dict[str, Job] = {}
        for seed in range(num_seeds):
            for study in self.studies:
                for job in study.jobs(num_seeds):
                    if job.seed == seed:
                        jobs.setdefault(job.key, job)
        return list(jobs.values())


def make_plan(
    words: Sequence[str], logs: Sequence[LogSpec], models: Sequence[str] | None = None
) -> Plan:
    """Open the logs and return the studies of them.

    `words` are topics or `all`. Without logs, the data sets of the paper are used that are on this
    machine. `models` are those of the overall comparison, and of TCL and the ranker only those
    among them have an ablation.
    """
    topics = _parse_topics(words)
    for name, count in Counter(spec.name for spec in logs).items():
        if count > 1:
            raise InputError(
                f"{count} logs are called {name!r}, and their tables would have the same file "
                "names; rename a log, or run the command once for each with its own --out"
            )
    opened: list[OpenLog] = []
    studies: list[Study] = []
    for spec in logs or local_data_sets():
        log = OpenLog.open(as_published(spec))
        opened.append(log)
        studies += _studies(topics, log, models or DEFAULT_MODELS)
    return Plan(logs=tuple(opened), studies=tuple(studies))


def _parse_topics(words: Sequence[str]) -> frozenset[Topic]:
    known = (*Topic, ALL)
    topics: frozenset[Topic] = frozenset()
    for word in words:
        if word not in known:
            raise InputError(f"cannot reproduce {word!r}; {did_you_mean(word, known)}")
        topics |= _ALL_TOPICS if word == ALL else {Topic(word)}
    return topics


def _studies(topics: frozenset[Topic], log: OpenLog, models: Sequence[str]) -> Iterator[Study]:
    if Topic.OVERALL in topics:
        yield overall_study(log, models)
    if Topic.ABLATION in topics:
        names = {model.partition(":")[0] for model in models}
        if "tcl" in names:
            yield tcl_ablation(log)
        if "ranker" in names:
            yield ranker_ablation(log)
    if Topic.DEPTH in topics:
        yield sweep_study(log, DEPTH)
    if Topic.HEADS in topics:
        yield sweep_study(log, HEADS)
    if Topic.PARTS in topics:
        yield parts_study(log)
        yield parts_ahead_study(log)
    if Topic.READING in topics:
        yield reading_study(log)
    if Topic.NOISE in topics:
        yield noise_study(log)


def local_data_sets() -> list[LogSpec]:
    """Return the paper's data sets that are on this machine."""
    return [LogSpec(log=name) for name in DATA_SETS if find(CATALOG[name]) is not None]


def as_published(spec: LogSpec) -> LogSpec:
    """Return the spec of a log as the paper's authors prepared it: CollegeMsg with seen nodes only.

    Its kind stays that of the catalog, one-mode. With `kind="bipartite"` it has two id spaces.
    """
    return replace(spec, seen_only=True) if spec.log == "collegemsg" else spec
