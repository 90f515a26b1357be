import ctypes

import pytest

from tclgraph.allocation import reuse_memory


class Library:
    """A C library that records the calls of `mallopt`."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def mallopt(self, parameter: int, value: int) -> int:
        self.calls.append((parameter, value))
        return 1


def test_all_limits_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    reuse_memory()
    assert dict(library.calls) == {-3: 32 * 2**20, -1: 512 * 2**20, -2: 256 * 2**20}


def test_without_glibc_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    reuse_memory()
