"""The batches of an epoch in their order, drawn ahead in other threads if the model gains by it."""

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch

from tclgraph.threads import threads_for_parts, use_torch_threads
from tclgraph.training.trainable import Trainable


class DrawnBatch(NamedTuple):
    """A batch and the generator of the random numbers that its loss takes."""

    batch: Any
    random: np.random.Generator


def drawn_batches(
    model: Trainable, batches: Iterable[tuple[int, np.random.Generator]]
) -> Generator[DrawnBatch]:
    """Yield the batches, each with its generator, in the same order and with the same numbers.

    If the model uses threads for drawing, torch computes the current batch in one thread, and all
    other threads draw the next batches. Beside parts of a batch that use all threads, drawing ahead
    gains nothing.
    """

    def draw(batch: int, random: np.random.Generator) -> DrawnBatch:
        return DrawnBatch(model.draw_batch(batch, random), random)

    num_threads = torch.get_num_threads()
    if num_threads == 1 or model.use_of_threads != "drawing":
        with threads_for_parts() if model.use_of_threads == "parts" else nullcontext():
            for batch, random in batches:
                yield draw(batch, random)
        return
    pool = ThreadPoolExecutor(num_threads - 1, thread_name_prefix="drawing")
    pending: deque[Future[DrawnBatch]] = deque()
    try:
        with use_torch_threads(1):
            for batch, random in batches:
                pending.append(pool.submit(draw, batch, random))
                if len(pending) > num_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
