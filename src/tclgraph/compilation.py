"""Compile kernels with numba and cache the machine code in a folder that changes with the source.

numba recompiles a cached function when the file that defines it changes. It does not notice a
change of a function, a constant or a NamedTuple that the function takes from another file, and
then runs stale machine code. Here the cache folder of a module is named after a digest of the
module and of every module of this package that it imports, directly or not, so any such change
leads to another folder.

The folder lies where numba would put it: in NUMBA_CACHE_DIR if that is set, else in the
`__pycache__` next to the module, else in the user's cache folder. If none of these is writable,
kernels are compiled in every process. Only kernel files import this module, because it imports
numba.
"""

import ast
import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from inspect import getfile
from pathlib import Path
from typing import Any

import numba
from numba import njit

_PACKAGE = Path(__file__).resolve().parent
_MAX_UNUSED_SECONDS = 7 * 86_400.0
_lock = threading.Lock()
# Some versions of Python fail with a SystemError if two threads parse at the same time.
_parsing = threading.Lock()
_numba_config: Any = numba.config  # its settings have no types

REORDERED_SUMS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract", "arcp", "nsz", "reassoc"},
}
"""Options with which the compiler may reorder sums, and so vectorize them. NaN and infinity are
handled correctly, and a division by zero gives one of them."""

BORROWING: dict[str, Any] = {"_nrt": False}
"""Options of a function that kernels call and that neither makes nor returns an array. Then numba
does not count references. Otherwise every call counts those to all arrays in its arguments, with
operations that are slow, most of all if several threads count at the same time. numba has no public
name for this option; a test notices if it is gone."""
INLINED: dict[str, Any] = {**BORROWING, "forceinline": True}
"""Options of a small such function: the compiler copies it into the loop that calls it."""


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    """Compile a function with numba, release the GIL while it runs, and cache it.

    Use it as `@kernel`, or with further options of `numba.njit` as `@kernel(**REORDERED_SUMS)`.
    """
    if function is None:
        return partial(kernel, **options)
    folder = cache_folder(function.__module__, Path(getfile(function)).resolve())
    if folder is None:
        return njit(nogil=True, **options)(function)  # type: ignore[no-any-return]
    # numba reads CACHE_DIR once, when it decorates the function.
    with _lock:
        previous = _numba_config.CACHE_DIR
        _numba_config.CACHE_DIR = str(folder)
        try:
            return njit(cache=True, nogil=True, **options)(function)  # type: ignore[no-any-return]
        finally:
            _numba_config.CACHE_DIR = previous


@cache
def cache_folder(module: str, path: Path) -> Path | None:
    """Return the cache folder of a module's kernels, or None if no place for it is writable."""
    if not path.is_file():
        return None
    name = f"{module}-{source_digest(path)}"
    for root in _cache_roots(path):
        folder = root / name
        try:
            is_new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            os.utime(folder)  # marks it as in use
        except OSError:
            continue
        if is_new:
            _remove_unused(root, module)
        return folder
    return None


def source_digest(path: Path) -> str:
    """Return a digest of a file and of every file of the package that it depends on."""
    files = {path}
    pending = [path]
    while pending:
        imported = set(_imported_files(pending.pop())) - files
        files |= imported
        pending += imported
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _imported_files(path: Path) -> Iterator[Path]:
    """Yield the files of the package that import statements of a file name."""
    for level, modules in _import_statements(path.read_bytes()):
        base = path.parents[level - 1] if level else _PACKAGE.parent
        for module in modules:
            stem = base.joinpath(*module.split("."))
            for file in (stem.with_suffix(".py"), stem / "__init__.py"):
                if file.is_relative_to(_PACKAGE) and file.is_file():
                    yield file


@cache
def _import_statements(source: bytes) -> list[tuple[int, list[str]]]:
    """Return the level of every import (the number of its leading dots) and what it may name.

    Parsing takes most of the time of a digest, and many kernel files depend on the same files.
    """
    with _parsing:
        tree = ast.parse(source)
    statements = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            statements.append((0, [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            # `from package import name` may name a module of the package.
            parent = node.module or ""
            modules = [f"{parent}.{alias.name}".lstrip(".") for alias in node.names]
            statements.append((node.level, [parent, *modules]))
    return statements


def _cache_roots(path: Path) -> Iterator[Path]:
    """Yield the places for a cache folder of the module at `path`, in the order of preference."""
    if _numba_config.CACHE_DIR:
        yield Path(_numba_config.CACHE_DIR)
    yield path.parent / "__pycache__"
    if user_folder := os.environ.get("XDG_CACHE_HOME"):
        yield Path(user_folder) / "tclgraph"
    else:
        with suppress(RuntimeError):  # a user without a home folder
            yield Path.home() / ".cache" / "tclgraph"


def _remove_unused(root: Path, module: str) -> None:
    """Remove the module's folders of other digests that no process has opened for a week.

    A younger folder may belong to a process that still runs the earlier source.
    """
    for folder in root.glob(f"{module}-*"):
        try:
            is_unused = time.time() - folder.stat().st_mtime > _MAX_UNUSED_SECONDS
        except FileNotFoundError:  # another process has just removed it
            continue
        if is_unused:
            shutil.rmtree(folder, ignore_errors=True)
