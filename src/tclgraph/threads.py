"""Threads for kernels and for torch, which release Python's global interpreter lock while they run.

Torch's own threads wait for each other after every operation. If one of them has to share its core
with other work, all wait: then fewer threads are faster.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from threading import Lock
from typing import Any

import torch

_pool = ThreadPoolExecutor(thread_name_prefix="kernels")


def _renew_pool() -> None:
    global _pool
    _pool = ThreadPoolExecutor(thread_name_prefix="kernels")


os.register_at_fork(after_in_child=_renew_pool)  # threads do not survive a fork


def num_parts(size: int, min_size: int) -> int:
    """Return the number of threads for work of this size, each with at least `min_size` of it.

    It is at most the number of threads that torch uses.
    """
    return max(1, min(torch.get_num_threads(), size // min_size))


def run_in_parts(cuts: list[int], work: Callable[[int, int, int], Any]) -> None:
    """Call work(part, cuts[part], cuts[part + 1]) for all parts, each in a thread of its own."""
    parts = list(enumerate(pairwise(cuts)))
    others = [_pool.submit(work, part, first, last) for part, (first, last) in parts[1:]]
    part, (first, last) = parts[0]
    work(part, first, last)
    for other in others:
        other.result()


def run_all(jobs: Sequence[Callable[[], Any]]) -> None:
    """Run independent jobs, as many at a time as torch has threads; torch has one in each."""
    num_threads = torch.get_num_threads()
    if num_threads == 1 or len(jobs) == 1:
        for job in jobs:
            job()
        return
    waiting = iter(jobs)
    lock = Lock()

    def work(*_: int) -> None:
        while True:
            with lock:
                job = next(waiting, None)
            if job is None:
                return
            job()

    with num_torch_threads(1):
        run_in_parts(list(range(num_threads + 1)), work)


def even_cuts(size: int, parts: int) -> list[int]:
    """Return the ends of equal parts of a range, and its start.

    >>> even_cuts(10, 3)
    [0, 3, 6, 10]
    """
    return [size * part // parts for part in range(parts + 1)]


@contextmanager
def num_torch_threads(wanted: int | None) -> Iterator[None]:
    """Let torch compute with this number of threads; None: as many as before."""
    original = torch.get_num_threads()
    torch.set_num_threads(wanted or original)
    try:
        yield
    finally:
        torch.set_num_threads(original)
