"""A lock for processes that share a file."""

import fcntl
from typing import IO

from optuna.storages.journal import JournalFileOpenLock


class ByteLock(JournalFileOpenLock):
    """Advisory lock on one byte of a file; the operating system releases it when the process exits.

    The locks of optuna are files. A killed process leaves its file behind, and the other processes
    then wait for it. Locks on different bytes of the same file are independent.
    """

    def __init__(self, file: IO[bytes], byte: int) -> None:
        self._file, self._byte = file, byte

    def acquire(self, mode: int = fcntl.LOCK_EX) -> bool:
        """Take the lock, or convert it to another mode; `LOCK_NB` raises OSError if it is taken."""
        fcntl.lockf(self._file, mode, 1, self._byte)
        return True

    def release(self) -> None:
        """Release the lock."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._byte)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
