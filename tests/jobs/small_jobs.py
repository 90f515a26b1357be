"""Jobs that take a second."""

from typing import Any

from tclgraph.events.log_spec import LogSpec
from tclgraph.jobs.job import Job, digest_of

SMALL: dict[str, Any] = {"epochs": 3, "batch_size": 64, "width": 8, "heads": 2}
LONG: dict[str, Any] = {"epochs": 60, "patience": 60}


def make_job(spec: LogSpec, model: str = "tcl", seed: int = 0, **settings: Any) -> Job:
    if model == "tcl":
        settings = {**SMALL, **settings}
    digest = digest_of(spec.open())
    return Job(spec=spec, events=digest, model=model, settings=settings, seed=seed)
