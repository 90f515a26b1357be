"""The folder that a training run leaves.

| file               | content                                                              |
|--------------------|----------------------------------------------------------------------|
| config.json        | model, settings, and a fingerprint of the training data              |
| environment.json   | machine and versions                                                 |
| metrics.jsonl      | the best heuristic, then one line per epoch: loss, speed, validation |
| last.safetensors   | checkpoint to resume from                                            |
| model.safetensors  | the best epoch so far, to load and use                               |
| log.json           | how to read the log again; written by `tclgraph train` only          |

Every file is written under another name and then renamed, so that a crash leaves the old file or
the new one, never a part of one.
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
    """The files of one training run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoint = self.path / "last.safetensors"

    def open(self, config: dict[str, Any], *, resume: bool) -> None:
        """Begin a run, or check that the folder holds the run to resume."""
        if not resume:
            self.refuse_existing()
        config = json.loads(json.dumps(config))  # as it reads back: JSON has no tuples
        self.remove_partial_files()
        stored = self.read_config()
        if stored is None:
            self.write("environment.json", json.dumps(environment(), indent=2))
            self.write("config.json", json.dumps(config, indent=2))
            return
        for part, wanted in config.items():
            if stored.get(part) != wanted:
                raise InputError(
                    f"{self.path} was started with other {part} "
                    f"({difference(stored.get(part), wanted)}); "
                    f"use the same {part}, or give another folder"
                )

    def refuse_existing(self) -> None:
        """Refuse a folder that holds a run already."""
        if self.read_config() is not None:
            raise InputError(
                f"{self.path} holds a run already; continue it with --resume (in Python: "
                "resume=True) or give another folder"
            )

    def read_config(self) -> dict[str, Any] | None:
        """Return the content of config.json, or None if the folder holds no run."""
        try:
            config: dict[str, Any] = json.loads((self.path / "config.json").read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot read {self.path / 'config.json'} ({error}); begin in another folder"
            ) from None
        return config

    def remove_partial_files(self) -> None:
        """Remove what a process that was killed has left."""
        for partial_file in self.path.glob(".*.part"):
            partial_file.unlink()

    def write_metrics(self, records: list[dict[str, Any]]) -> None:
        """Write metrics.jsonl, one record per line."""
        self.write("metrics.jsonl", "\n".join(json.dumps(record) for record in records))

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the records of the finished epochs."""
        lines = (self.path / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines[1:]]

    def write(self, name: str, text: str) -> None:
        """Write a text file, completely or not at all."""
        with replacing(self.path / name) as temporary:
            temporary.write_text(text + "\n")


def fingerprint(split: Split) -> dict[str, Any]:
    """Return what identifies the training data: its shape, its split and a digest."""
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


def difference(stored: Any, wanted: Any) -> str:
    """Return the first difference between two values of config.json, as text."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        for name in wanted:
            if stored.get(name) != wanted[name]:
                if isinstance(wanted[name], dict):
                    return f"{name}: {difference(stored.get(name), wanted[name])}"
                return f"{name}: then {stored.get(name)!r}, now {wanted[name]!r}"
    return f"then {stored!r}, now {wanted!r}"
