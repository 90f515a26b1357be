"""The folder that a training run leaves.

| file               | what                                                               |
|--------------------|--------------------------------------------------------------------|
| config.json        | model, settings, and what it is trained on                         |
| environment.json   | machine and versions                                               |
| metrics.jsonl      | one line per epoch: loss, rate, validation metrics; first the heuristic |
| last.safetensors   | where training stands, to resume from                              |
| model.safetensors  | the best epoch so far, to load and use                             |

Every file is written under another name and then renamed, so that a crash leaves the old or the
new one, never half of one.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from tclgraph.environment import environment
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.writers import replacing


class RunFolder:
    """Where a run lives."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoint = self.path / "last.safetensors"

    def open(self, config: dict[str, Any], *, resume: bool) -> None:
        """Begin a run, or check that this is the one to resume."""
        if not resume:
            self.refuse_another()
        config = json.loads(json.dumps(config))  # as it reads back: JSON has no tuples
        for left_over in self.path.glob(".*.part"):  # by a process that was killed
            left_over.unlink()
        known = self.read_config()
        if known is None:
            self.write("environment.json", json.dumps(environment(), indent=2))
            self.write("config.json", json.dumps(config, indent=2))
            return
        for part, wanted in config.items():
            had = known.get(part)
            if had != wanted:
                raise InputError(
                    f"{self.path} was begun with other {part} ({_difference(had, wanted)}); "
                    "go on with the same, or begin in another folder"
                )

    def refuse_another(self) -> None:
        """One run to a folder."""
        if self.read_config() is not None:
            raise InputError(
                f"{self.path} holds a run already; continue it with --resume (in Python: "
                "resume=True) or give another folder"
            )

    def read_config(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.path / "config.json").read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {self.path / 'config.json'} ({error})") from None
        return found

    def write_metrics(self, entries: list[dict[str, Any]]) -> None:
        self.write("metrics.jsonl", "\n".join(json.dumps(entry) for entry in entries))

    def read_metrics(self) -> list[dict[str, Any]]:
        """Entries of the finished epochs."""
        lines = (self.path / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines[1:]]

    def write(self, name: str, text: str) -> None:
        with replacing(self.path / name) as temporary:
            temporary.write_text(text + "\n")


def fingerprint(split: Split) -> dict[str, Any]:
    """What a run is trained on, told apart from anything else."""
    events = split.events
    content = hashlib.sha256()
    for column in (events.source, events.target, events.time):
        content.update(column.tobytes())
    return {
        "kind": events.kind,
        "split": str(split),
        "sizes": split.sizes,
        "sources": events.num_sources,
        "targets": events.num_targets,
        "sha256": content.hexdigest(),
    }


def _difference(had: Any, wanted: Any) -> str:
    if isinstance(had, dict) and isinstance(wanted, dict):
        for name in wanted:
            if had.get(name) != wanted[name]:
                return f"{name}: then {had.get(name)!r}, now {wanted[name]!r}"
    return f"then {had!r}, now {wanted!r}"
