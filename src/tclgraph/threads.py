"""Threads for kernels and for torch, which release Python's global interpreter lock while they run.

Torch's own threads wait for each other after every operation. If one of them has to share its core
with other work, all wait: then fewer threads are faster.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch


def _new_pool() -> ThreadPoolExecutor:
    # Torch keeps its number of threads per thread.
    return ThreadPoolExecutor(
        thread_name_prefix="parts", initializer=torch.set_num_threads, initargs=(1,)
    )


def _renew_pool() -> None:
    global _pool
    _pool = _new_pool()


_pool = _new_pool()
os.register_at_fork(after_in_child=_renew_pool)  # threads do not survive a fork
_num_for_parts: int | None = None
_this_thread = threading.local()


def num_threads() -> int:
    """Return how many threads work may be divided among here; a part is not divided further."""
    if getattr(_this_thread, "computes_part", False):
        return 1
    return _num_for_parts or torch.get_num_threads()


def num_parts(size: int, min_size: int) -> int:
    """Return the number of threads for work of this size, each with at least `min_size` of it."""
    return max(1, min(num_threads(), size // min_size))


def run_in_parts(cuts: list[int], work: Callable[[int, int, int], Any]) -> None:
    """Call work(part, cuts[part], cuts[part + 1]) for all parts, each in a thread of its own.

    Within a part torch has a single thread, unless there is only this part.
    """
    parts = list(enumerate(pairwise(cuts)))
    if len(parts) == 1:
        work(0, *cuts)
        return

    def compute(part: int, ends: tuple[int, int]) -> None:
        _this_thread.computes_part = True
        try:
            work(part, *ends)
        finally:
            _this_thread.computes_part = False

    with use_torch_threads(1):
        others = [_pool.submit(compute, *part) for part in parts[1:]]
        compute(*parts[0])
        for other in others:
            other.result()


def run_all(jobs: Sequence[Callable[[], Any]]) -> None:
    """Run independent jobs, as many at a time as there are threads."""
    waiting = iter(jobs)
    lock = threading.Lock()

    def work(*_: int) -> None:
        while True:
            with lock:
                job = next(waiting, None)
            if job is None:
                return
            job()

    run_in_parts(list(range(max(1, min(num_threads(), len(jobs))) + 1)), work)


def even_cuts(size: int, parts: int) -> list[int]:
    """Return the ends of equal parts of a range, and its start.

    >>> even_cuts(10, 3)
    [0, 3, 6, 10]
    """
    return [size * part // parts for part in range(parts + 1)]


@contextmanager
def use_torch_threads(wanted: int | None) -> Iterator[None]:
    """Let torch compute with this number of threads; None: as many as before."""
    original = torch.get_num_threads()
    torch.set_num_threads(wanted or original)
    try:
        yield
    finally:
        torch.set_num_threads(original)


@contextmanager
def threads_for_parts() -> Iterator[None]:
    """Divide work among as many threads as torch has now, and let torch have a single one.

    Otherwise torch's other threads wait for its next operation, and take time from the parts.
    """
    global _num_for_parts
    previous, _num_for_parts = _num_for_parts, num_threads()
    try:
        with use_torch_threads(1):
            yield
    finally:
        _num_for_parts = previous
