"""Compare the layer with the steps of its formula, in values and all gradients."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.layers import absorbed_attention, feed_forward, packed_attention, row_projections
from tclgraph.layers.packed_attention import KeyLists, attention_by_gathering
from tclgraph.layers.transformer import TransformerLayer

WIDTH = 6
# Number and width of heads: kernels are compiled for each, so there are few.
HEADS = ((1, "full"), (2, "split"), (3, "full"))


def random_layer(num_heads: int, residual: Any, head_width: Any) -> TransformerLayer:
    """Return a layer without zeros and ones, so that no error hides behind them."""
    layer = TransformerLayer(
        WIDTH, num_heads, feed_forward_width=5, residual=residual, head_width=head_width
    ).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    return layer


def random_lists(
    random: np.random.Generator, lengths: list[int], num_single: int, num_rows: int
) -> tuple[Tensor, KeyLists]:
    """Return the row of each query, and lists of which the last ones hold this row only."""
    query = random.integers(num_rows, size=len(lengths) + num_single)
    start = np.concatenate([[0], np.cumsum([*lengths, *[1] * num_single])])
    keys = np.concatenate([random.integers(num_rows, size=sum(lengths)), query[len(lengths) :]])
    lists = KeyLists(torch.from_numpy(start), torch.from_numpy(keys), num_single)
    return torch.from_numpy(query), lists


def by_steps(layer: TransformerLayer, hidden: Tensor, query: Tensor, lists: KeyLists) -> Tensor:
    own = hidden[query]
    projected = layer.query(own)
    attended = attention_by_gathering(
        layer.head_query(projected), layer.key_value(hidden), lists, layer.num_heads
    )
    residual = projected if layer.residual == "query" else own
    middle = layer.attention_norm(layer.output(attended) + residual)
    states: Tensor = layer.output_norm(layer.contract(torch.relu(layer.expand(middle))) + middle)
    return states


def assert_equal_to_steps(layer: TransformerLayer, query: Tensor, lists: KeyLists) -> None:
    num_rows = int(torch.cat([query, lists.keys]).max()) + 1
    hidden = torch.randn(num_rows, WIDTH, dtype=torch.float64).requires_grad_()
    parameters = list(layer.parameters())
    results = []
    for states in (layer(hidden, query, lists), by_steps(layer, hidden, query, lists)):
        # Every element has its own weight, so that swapped gradients do not go unnoticed.
        weight = torch.linspace(-1, 2, states.numel(), dtype=states.dtype).reshape(states.shape)
        gradients = torch.autograd.grad((states * weight).sum(), [hidden, *parameters])
        results.append([states, *gradients])
    assert_close(*results, rtol=1e-9, atol=1e-9)


@given(
    heads=st.sampled_from(HEADS),
    residual=st.sampled_from(["query", "input"]),
    lengths=st.lists(st.integers(1, 7), max_size=9),
    num_single=st.integers(0, 9),
    num_rows=st.integers(1, 60),  # with many rows, the layer absorbs their projection
    seed=st.integers(0, 999),
)
def test_layer_equals_its_steps(
    heads: tuple[int, str],
    residual: str,
    lengths: list[int],
    num_single: int,
    num_rows: int,
    seed: int,
) -> None:
    if not lengths and not num_single:
        return
    num_heads, head_width = heads
    layer = random_layer(num_heads, residual, head_width)
    random = np.random.default_rng(seed)
    assert_equal_to_steps(layer, *random_lists(random, lengths, num_single, num_rows))


@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize(("num_lists", "num_single"), [(9, 0), (0, 8), (8, 9), (13, 16)])
def test_several_chunks_and_threads(
    monkeypatch: pytest.MonkeyPatch, absorbing: bool, num_lists: int, num_single: int
) -> None:
    for module in (feed_forward, row_projections):
        monkeypatch.setattr(module, "_CHUNK_SIZE", 4)
    monkeypatch.setattr(packed_attention, "_MIN_PAIRS_PER_THREAD", 8)
    cost = 0.0 if absorbing else 1e9
    monkeypatch.setattr(absorbed_attention, "_RELATIVE_COST", cost)
    random = np.random.default_rng(0)
    lengths = random.integers(1, 6, size=num_lists).tolist()
    layer = random_layer(2, "query", "split")
    query, lists = random_lists(random, lengths, num_single, num_rows=12)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert_equal_to_steps(layer, query, lists)
    finally:
        torch.set_num_threads(before)
