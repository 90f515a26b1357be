"""A network applied to several parts of a batch, each in a thread of its own.

Torch's threads share every operation, and wait for each other at its end. Threads that compute
separate parts wait only once.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from tclgraph.threads import run_in_parts

Part = TypeVar("Part")
Result = TypeVar("Result")


def apply_in_parts(
    network: Callable[[Part], Tensor], parts: Sequence[Part], parameters: Sequence[Tensor]
) -> Tensor:
    """Return the rows that the network computes for all parts, one part after the other.

    The parameters are those of the network; only they get gradients.
    """
    if len(parts) == 1:
        return network(parts[0])
    is_training = torch.is_grad_enabled()
    rows: Tensor = _InParts.apply(network, parts, is_training, *parameters)  # type: ignore[no-untyped-call]
    return rows


class _InParts(torch.autograd.Function):
    """Keep the autograd graph of every part, and run their backward passes in parallel."""

    @staticmethod
    def forward(
        ctx: Any,
        network: Callable[[Any], Tensor],
        parts: Sequence[Any],
        is_training: bool,
        *parameters: Tensor,
    ) -> Tensor:
        def apply(part: int) -> Tensor:
            with torch.set_grad_enabled(is_training):
                return network(parts[part])

        ctx.outputs = _each(apply, len(parts))
        ctx.parameters = parameters
        return torch.cat([output.detach() for output in ctx.outputs])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        outputs, parameters = ctx.outputs, ctx.parameters
        output_gradients = torch.split(gradient, [len(output) for output in outputs])

        def backward_part(part: int) -> tuple[Tensor | None, ...]:
            parameter_gradients: tuple[Tensor | None, ...] = torch.autograd.grad(
                outputs[part], parameters, output_gradients[part], allow_unused=True
            )
            return parameter_gradients

        # Added in the order of the parts, so that the sum does not depend on which ends first.
        gradients_by_parameter = zip(*_each(backward_part, len(outputs)), strict=True)
        return None, None, None, *(_sum(gradients) for gradients in gradients_by_parameter)


def _each(job: Callable[[int], Result], count: int) -> list[Result]:
    """Return the results of a job for every part."""
    results: dict[int, Result] = {}

    def work(part: int, *_: int) -> None:
        results[part] = job(part)

    run_in_parts(list(range(count + 1)), work)
    return [results[part] for part in range(count)]


def _sum(tensors: Sequence[Tensor | None]) -> Tensor | None:
    present = [tensor for tensor in tensors if tensor is not None]
    return sum(present[1:], present[0]) if present else None
