"""Cached kernels are compiled again when code that they use in another file changes.

The tests copy `compilation.py` to a small package of the same name and run it in processes of their
own, so they use real caches and leave those of the package alone.
"""

import ast
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from tclgraph import compilation

FIELDS = "    first: int\n    second: int"
FILES = {
    "__init__.py": "",
    "constants.py": "FACTOR = 10\n",
    "records.py": f"""
from typing import NamedTuple

class Pair(NamedTuple):
{FIELDS}
""",
    "callee.py": """
from tclgraph.compilation import kernel
from tclgraph.constants import FACTOR

@kernel
def scaled(value):
    return FACTOR * value
""",
    "caller.py": """
from tclgraph.callee import scaled
from tclgraph.compilation import kernel
from tclgraph.records import Pair

@kernel
def total(pair):
    return scaled(pair.first) + pair.second
""",
    "unrelated.py": """
from tclgraph.compilation import kernel

@kernel(fastmath=True)
def double(value):
    return 2 * value
""",
}

PROGRAM = """
from tclgraph.caller import total
from tclgraph.records import Pair
from tclgraph.unrelated import double

def loaded(kernel):
    return sum(kernel.stats.cache_hits.values())

value = total(Pair(first=1, second=2)) + 1000 * double(1)
print(value, loaded(total), loaded(double))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "tclgraph"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    source = Path(compilation.__file__).read_text()
    (folder / "compilation.py").write_text(source)
    return folder


def start(package: Path, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=package.parent,
        env={**inherited, "PYTHONPATH": str(package.parent), **environment},
    )


def run(package: Path, **environment: str) -> list[int]:
    """Run the program; return its value and how many of both kernels came from the cache."""
    process = start(package, **environment)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return [int(word) for word in output.split()]


def edit(package: Path, name: str, old: str, new: str) -> None:
    text = (package / name).read_text()
    assert old in text
    (package / name).write_text(text.replace(old, new))


def test_a_change_in_another_file_is_noticed(package: Path) -> None:
    assert run(package) == [2012, 0, 0]
    assert run(package) == [2012, 1, 1]
    # The callee, then a constant that only the callee uses, then the order of fields.
    edit(package, "callee.py", "FACTOR * value", "FACTOR * value + 1")
    assert run(package) == [2013, 0, 1]
    edit(package, "constants.py", "10", "20")
    assert run(package) == [2023, 0, 1]
    fields = FIELDS.splitlines()
    edit(package, "records.py", FIELDS, "\n".join(reversed(fields)))
    assert run(package) == [2023, 0, 1]
    assert run(package) == [2023, 1, 1]


def test_a_named_cache_folder_is_used(package: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    assert run(package, NUMBA_CACHE_DIR=str(named)) == [2012, 0, 0]
    assert run(package, NUMBA_CACHE_DIR=str(named)) == [2012, 1, 1]
    assert len(list(named.glob("tclgraph.caller-*/**/*.nbi"))) == 1
    assert not list(package.rglob("*.nbi"))


def test_a_read_only_package_is_cached_in_the_folder_of_the_user(
    package: Path, tmp_path: Path
) -> None:
    # A file in place of __pycache__ is in the way even of root, whom permissions do not stop.
    (package / "__pycache__").write_text("")
    user_folder = tmp_path / "user"
    assert run(package, XDG_CACHE_HOME=str(user_folder)) == [2012, 0, 0]
    assert run(package, XDG_CACHE_HOME=str(user_folder)) == [2012, 1, 1]
    assert list((user_folder / "tclgraph").glob("tclgraph.caller-*"))


def test_kernels_work_without_any_cache_folder(package: Path) -> None:
    for name in ("__pycache__", "home"):
        (package / name).write_text("")
    nowhere = str(package / "home")
    assert run(package, XDG_CACHE_HOME=nowhere, HOME=nowhere) == [2012, 0, 0]
    assert run(package, XDG_CACHE_HOME=nowhere, HOME=nowhere) == [2012, 0, 0]


def test_processes_may_compile_at_once(package: Path) -> None:
    processes = [start(package) for _ in range(3)]
    for process in processes:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        assert output.split()[0] == "2012"
    assert run(package) == [2012, 1, 1]


def test_folders_of_earlier_source_are_removed_when_unused_for_a_week(package: Path) -> None:
    cache = package / "__pycache__"
    cache.mkdir()
    old, recent, foreign = (
        cache / f"tclgraph.{name}" for name in ("caller-old", "caller-recent", "other-old")
    )
    for folder in (old, recent, foreign):
        (folder / "inner").mkdir(parents=True)
    for folder in (old, foreign):
        os.utime(folder, (0, 0))
    run(package)
    assert not old.exists()
    assert recent.exists()
    assert foreign.exists()


def test_the_digest_covers_every_kind_of_import(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "_PACKAGE", package)
    (package / "room").mkdir()
    (package / "room" / "__init__.py").write_text("")
    imported = package / "room" / "imported.py"
    for statement in (
        "from tclgraph.room.imported import NAME",
        "from tclgraph.room import imported",
        "import tclgraph.room.imported",
        "from .room.imported import NAME",
        "from .room import imported",
    ):
        importer = package / "importer.py"
        importer.write_text(statement)
        imported.write_text("NAME = 1")
        before = compilation.source_digest(importer)
        imported.write_text("NAME = 2")
        assert compilation.source_digest(importer) != before, statement


def test_a_user_without_a_home_folder_has_no_user_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(compilation._numba_config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert list(compilation._cache_roots(Path("room/file.py"))) == [Path("room/__pycache__")]


@pytest.mark.parametrize("options", [compilation.BORROWING, compilation.INLINED])
def test_a_borrowing_function_counts_no_references(options: dict[str, Any]) -> None:
    @njit(**options)  # type: ignore[untyped-decorator]
    def add_row(row: int, values: Any, total: Any) -> None:
        numbers = values[row]
        for column in range(len(numbers)):
            total[column] += numbers[column]

    @njit
    def sum_rows(values: Any) -> Any:
        total = np.zeros(values.shape[1])
        for row in range(len(values)):
            add_row(row, values, total)
        return total

    values = np.random.default_rng(0).random((100, 3))
    before = sys.getrefcount(values)
    for _ in range(10):
        assert_allclose(sum_rows(values), values.sum(axis=0))
    assert sys.getrefcount(values) == before
    assert "NRT_incref" not in add_row.inspect_llvm(add_row.signatures[0])


def test_a_single_thread_parses_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 fails if two threads parse at the same time, but too rarely for a test."""
    parse, in_parse, overlaps = ast.parse, threading.Semaphore(1), []

    def checked(source: bytes) -> ast.Module:
        is_alone = in_parse.acquire(blocking=False)
        overlaps.append(not is_alone)
        time.sleep(0.001)  # lets another thread come here
        if is_alone:
            in_parse.release()
        return parse(source)

    path = Path(compilation.__file__).parent / "features" / "log_arrays.py"
    compilation._import_statements.cache_clear()
    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(ast, "parse", checked)
        digests = set(pool.map(compilation.source_digest, [path] * 4))
    assert len(digests) == 1
    assert len(overlaps) > 4
    assert not any(overlaps)
