"""An encoder gives the same vectors and gradients however its pairs are divided among threads."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.encoding import two_stream
from tclgraph.encoding.parts import apply_in_parts
from tclgraph.encoding.two_stream import TwoStreamConfig, TwoStreamEncoder
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import streams
from tclgraph.threads import use_torch_threads


def encoded(stream: EventStream, num_parts: int, seed: int) -> tuple[Tensor, list[Tensor | None]]:
    """Return the vectors after all events, and the gradients of a sum of them."""
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    torch.manual_seed(0)
    config = TwoStreamConfig(width=8, heads=2, levels=3, input_dropout=0.4)
    encoder = TwoStreamEncoder(config, graph.space.num_nodes, IntervalScale.measure(graph)).double()
    pairs = np.arange(2 * len(graph)).reshape(-1, 2)
    with pytest.MonkeyPatch.context() as patch, use_torch_threads(num_parts):
        patch.setattr(two_stream, "_MIN_PAIRS_PER_THREAD", 1)
        inputs = encoder.inputs(graph, pairs, np.random.default_rng(seed))
        assert len(inputs) == min(num_parts, len(pairs))
        vectors: Tensor = encoder(inputs)
        weights = torch.linspace(-1, 2, vectors.numel(), dtype=vectors.dtype)
        (vectors.flatten() * weights).sum().backward()  # type: ignore[no-untyped-call]
    return vectors.detach(), [parameter.grad for parameter in encoder.parameters()]


@given(stream=streams(), num_parts=st.integers(2, 4), seed=st.integers(0, 99))
def test_vectors_and_gradients_do_not_depend_on_parts(
    stream: EventStream, num_parts: int, seed: int
) -> None:
    expected, expected_gradients = encoded(stream, 1, seed)
    vectors, gradients = encoded(stream, num_parts, seed)
    assert_close(vectors, expected, rtol=1e-10, atol=1e-12)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        if expected_gradient is None:
            assert gradient is None or not gradient.any()
        else:
            assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-11)


def test_nothing_is_stored_for_gradients_if_there_are_none() -> None:
    weight = torch.ones(1, requires_grad=True)
    are_recorded = []

    def network(part: int) -> Tensor:
        result = part * weight
        are_recorded.append(result.requires_grad)
        return result

    with torch.no_grad():
        assert apply_in_parts(network, [1, 2, 3], [weight]).tolist() == [1, 2, 3]
    assert are_recorded == [False] * 3
