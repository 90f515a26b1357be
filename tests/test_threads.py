from functools import partial
from threading import current_thread, main_thread

import pytest
import torch

from tclgraph.threads import (
    num_parts,
    num_threads,
    run_all,
    run_in_parts,
    threads_for_parts,
    use_torch_threads,
)


def test_parts_cover_the_range() -> None:
    done: list[tuple[int, int, int]] = []
    run_in_parts([0, 3, 3, 10], lambda *part: done.append(part))
    assert sorted(done) == [(0, 0, 3), (1, 3, 3), (2, 3, 10)]


@pytest.mark.parametrize("num_threads", [1, 2, 4])
@pytest.mark.parametrize("num_jobs", [0, 1, 2, 9])
def test_every_job_runs_once(num_threads: int, num_jobs: int) -> None:
    done: list[int] = []
    with use_torch_threads(num_threads):
        run_all([partial(done.append, job) for job in range(num_jobs)])
        assert torch.get_num_threads() == num_threads
    assert sorted(done) == list(range(num_jobs))


def test_an_error_in_another_thread_reaches_the_caller() -> None:
    def fail_elsewhere(*_: int) -> None:
        if current_thread() is not main_thread():
            raise ValueError("elsewhere")

    with pytest.raises(ValueError, match="elsewhere"):
        run_in_parts([0, 1, 2], fail_elsewhere)


def test_small_work_has_one_part() -> None:
    with use_torch_threads(2):
        assert (num_parts(9, 10), num_parts(19, 10), num_parts(99, 10)) == (1, 1, 2)


def test_a_part_has_one_thread() -> None:
    numbers: list[tuple[int, int]] = []

    def note(*_: int) -> None:
        numbers.append((num_threads(), torch.get_num_threads()))

    with use_torch_threads(3):
        run_in_parts([0, 1, 2, 3], note)
        assert numbers == [(1, 1)] * 3
        assert (num_threads(), torch.get_num_threads()) == (3, 3)
        run_in_parts([0, 1], note)
        assert numbers[-1] == (3, 3)


def test_parts_can_have_the_threads_of_torch() -> None:
    with use_torch_threads(3):
        with threads_for_parts(), threads_for_parts():
            assert (num_threads(), torch.get_num_threads()) == (3, 1)
        assert (num_threads(), torch.get_num_threads()) == (3, 3)
