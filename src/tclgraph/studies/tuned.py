"""Settings that `tclgraph tune` has chosen for the baselines, on validation events.

`tuned.json` beside this file has a record for every log, graph kind, split and model.
`scripts/results tune` runs the searches, stores the trials below `results/tuning`, and makes the
records from them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, TypeAdapter

from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tclgraph.events.writers import replacing

FILE = Path(__file__).with_name("tuned.json")
_NOT_TUNED = ("seed", "threads", "device")


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedSettings:
    """The best settings of a search, and where its trials are."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    log: str
    """Name of the log."""
    kind: GraphKind
    split: str
    """Description of the split, as `str(split)`."""
    model: str
    settings: dict[str, Any]
    """Settings of the best trial: those that were searched, and those that all trials shared."""
    metric: str
    """Validation metric that was optimized."""
    valid: float
    """Validation metric of the best trial."""
    untuned_valid: float | None
    """Validation metric of the default settings; None if they failed."""
    trials: int
    """Number of trials."""
    combinations: int
    """Number of combinations in the search space."""
    minutes: float
    """Duration of all trials."""
    file: str
    """File with all trials, as a path in the repository."""
    command: str
    """Command that ran the search."""

    @classmethod
    def from_search(cls, search: Mapping[str, Any], file: str) -> Self:
        """Take the best trial of a search, given as `tclgraph tune --json` prints it."""
        metric = search["metric"]
        untuned = [
            trial["valid"][metric]
            for trial in search["trials"]
            if trial["settings"] == search["untuned"] and trial["valid"]
        ]
        shared = {name: value for name, value in search["fixed"].items() if name not in _NOT_TUNED}
        return cls(
            log=search["log"],
            kind=search["kind"],
            split=search["split"],
            model=search["model"],
            settings={**shared, **search["best"]["settings"]},
            metric=metric,
            valid=search["best"]["valid"][metric],
            untuned_valid=untuned[0] if untuned else None,
            trials=len(search["trials"]),
            combinations=search["combinations"],
            minutes=round(sum(trial["seconds"] for trial in search["trials"]) / 60, 1),
            file=file,
            command=search["made_by"],
        )


def tuned_settings(model: str, log: str, split: Split) -> TunedSettings | None:
    """Return the settings tuned for a model on a log that is read and split like this, or None."""
    wanted = (model, log, split.events.kind, str(split))
    for record in stored_records():
        if (record.model, record.log, record.kind, record.split) == wanted:
            return record
    return None


@cache
def stored_records() -> tuple[TunedSettings, ...]:
    """Return the records of `tuned.json`."""
    return TypeAdapter(tuple[TunedSettings, ...]).validate_json(FILE.read_text())


def collect_records(repository: Path) -> tuple[TunedSettings, ...]:
    """Make the records from the trials in `results/tuning` of a copy of the repository."""
    return tuple(
        TunedSettings.from_search(
            json.loads(path.read_text()), path.relative_to(repository).as_posix()
        )
        for path in sorted((repository / "results" / "tuning").glob("*/*.json"))
    )


def write_records(records: tuple[TunedSettings, ...], path: Path) -> None:
    """Write records as `tuned.json` has them."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps([asdict(record) for record in records], indent=1) + "\n")
