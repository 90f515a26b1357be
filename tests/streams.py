"""Real data sets and small files for tests; random streams are in `tclgraph.testing.streams`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tclgraph.events.catalog import CATALOG, find, load
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind


def refuse_notices(message: str) -> None:
    """Fail the test; passed as `notify` if no notice is expected."""
    raise AssertionError(f"unexpected notice: {message}")


def collegemsg(kind: GraphKind = "one-mode") -> Split:
    """Return CollegeMsg as the paper's authors split it."""
    return load("collegemsg", kind=kind).split(0.6, 0.2, seen_only=True)


def wikipedia() -> EventStream:
    if find(CATALOG["wikipedia"]) is None:
        pytest.skip("wikipedia is not on this machine: set TCLGRAPH_DATA to a folder that has it")
    return load("wikipedia")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


Cli = Callable[..., tuple[int, str, str]]
"""Runs `tclgraph` with the given arguments and returns exit code, stdout and stderr."""
