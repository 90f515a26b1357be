"""Run the examples of README, docs and docstrings in an empty folder; they may write files."""

from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem


@pytest.fixture(autouse=True)
def _empty_folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(request.node, DoctestItem):
        monkeypatch.chdir(tmp_path)
