"""Fixtures that many tests share."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

# Before torch is imported, here and in every process that a test starts: workers share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from tests.streams import Cli

# Shared machines stall now and then; a slow example is no failure. No state between runs.
settings.register_profile("tclgraph", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("tclgraph")


@pytest.fixture(scope="session")
def forking() -> Iterator["subprocess.Popen[str] | None"]:
    """The process that forks commands; None on macOS, whose libraries are not safe after a fork."""
    if sys.platform == "darwin":
        yield None
        return
    command = [sys.executable, "-m", "tests.forking"]
    root = Path(__file__).parents[1]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root) as process:
        yield process


@pytest.fixture
def cli(request: pytest.FixtureRequest, tmp_path: Path) -> Cli:
    """The real command in a process of its own, in an empty working folder."""

    def run(*words: str | Path, **environment: str) -> tuple[int, str, str]:
        forking = request.getfixturevalue("forking")
        if forking is None:
            return start(*words, **environment)
        with TemporaryDirectory() as folder:
            out, err = Path(folder) / "out", Path(folder) / "err"
            command = {
                "words": [str(word) for word in words],
                "folder": str(tmp_path),
                "out": str(out),
                "err": str(err),
                "environment": environment,
            }
            print(json.dumps(command), file=forking.stdin, flush=True)
            return int(forking.stdout.readline()), out.read_text(), err.read_text()

    def start(*words: str | Path, **environment: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tclgraph.cli.main", *map(str, words)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **environment},
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run
