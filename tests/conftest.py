"""Fixtures that many tests share."""

import os
import subprocess
import sys
from pathlib import Path

# Before torch is imported, here and in every process that a test starts: workers share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from tests.streams import Cli

# Shared machines stall now and then; a slow example is no failure. No state between runs.
settings.register_profile("tclgraph", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("tclgraph")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The real command in a process of its own, in an empty working folder."""

    def run(*words: str | Path, **environment: str) -> tuple[int, str, str]:
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
