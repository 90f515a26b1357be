"""Reuse of memory between batches.

A batch of training or a block of ranked events allocates and frees tens of arrays of several
megabytes. By default the C library returns their memory to the operating system, and asks for it
again in the next batch, page by page: that takes an eighth of the time of a training step.
"""

import ctypes

# Parameters of glibc's mallopt; see its manual page.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_LARGEST_REUSED_ARRAY = 32 * 2**20  # the most that glibc accepts
_MOST_UNUSED_MEMORY = 512 * 2**20
_UNUSED_MEMORY_PER_THREAD = 256 * 2**20


def reuse_memory() -> None:
    """Let the process keep memory that it has freed, up to a limit; without glibc do nothing."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_REUSED_ARRAY)
        mallopt(_TRIM_THRESHOLD, _MOST_UNUSED_MEMORY)
        mallopt(_TOP_PAD, _UNUSED_MEMORY_PER_THREAD)
