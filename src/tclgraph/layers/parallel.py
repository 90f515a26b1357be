"""Compiled loops that several threads share.

Kernels release Python's global interpreter lock, so threads of one process suffice.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

_pool = ThreadPoolExecutor(thread_name_prefix="kernels")


def _renew_pool() -> None:
    global _pool
    _pool = ThreadPoolExecutor(thread_name_prefix="kernels")


os.register_at_fork(after_in_child=_renew_pool)  # threads do not survive a fork


def run_in_parts(work: Callable[[int, int, int], None], cuts: Sequence[int]) -> None:
    """Call work(part, first, end) for each range between two successive cuts, all at a time."""
    ranges = list(zip(range(len(cuts)), cuts, cuts[1:], strict=False))
    others = [_pool.submit(work, *part) for part in ranges[1:]]
    work(*ranges[0])
    for other in others:
        other.result()


def even_cuts(count: int, num_parts: int) -> list[int]:
    """Return the cuts of ranges of about equal size.

    >>> even_cuts(10, 3)
    [0, 3, 6, 10]
    """
    return [count * part // num_parts for part in range(num_parts + 1)]
