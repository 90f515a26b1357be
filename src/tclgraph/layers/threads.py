"""Threads for compiled kernels, which release Python's global interpreter lock while they run."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
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


def even_cuts(size: int, parts: int) -> list[int]:
    """Return the ends of equal parts of a range, and its start.

    >>> even_cuts(10, 3)
    [0, 3, 6, 10]
    """
    return [size * part // parts for part in range(parts + 1)]
