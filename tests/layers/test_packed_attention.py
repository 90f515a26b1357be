"""Compare compiled attention, plain torch and a loop over queries, in values and gradients."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.layers.packed_attention import KeyLists, attention_by_gathering, packed_attention

Attention = Callable[[Tensor, Tensor, KeyLists, int], Tensor]

# (heads, head width): a kernel is compiled for each, so there are few, most of them TCL's.
SHAPES = ((1, 4), (2, 4), (4, 2), (3, 2), (2, 5), (5, 1))
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


@pytest.fixture(autouse=True)
def _single_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def attention_by_loops(query: Tensor, key_value: Tensor, lists: KeyLists, num_heads: int) -> Tensor:
    output = torch.zeros_like(query)
    key, value = key_value.chunk(2, dim=1)
    start = lists.start.tolist()
    for index in range(len(query)):
        keys = lists.keys[start[index] : start[index + 1]]
        for head in range(num_heads):
            columns = slice(head, None, num_heads)
            score = (
                key[keys, columns] @ query[index, columns] / query[index, columns].numel() ** 0.5
            )
            output[index, columns] = torch.softmax(score, dim=0) @ value[keys, columns]
    return output


def random_lists(random: np.random.Generator, lengths: Any, num_rows: int) -> KeyLists:
    """Return random key lists; a key that occurs twice in a list counts twice."""
    start = np.concatenate([[0], np.cumsum(lengths)])
    keys = random.integers(num_rows, size=start[-1])
    return KeyLists(torch.from_numpy(start), torch.from_numpy(keys))


def random_inputs(
    random: np.random.Generator,
    lists: KeyLists,
    num_rows: int,
    width: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    query = random.normal(size=(len(lists.start) - 1, width))
    key_value = random.normal(size=(num_rows, 2 * width))
    tensors = [torch.from_numpy(rows).to(dtype).requires_grad_() for rows in (query, key_value)]
    return tensors[0], tensors[1]


def output_and_gradients(
    attention: Attention, query: Tensor, key_value: Tensor, lists: KeyLists, num_heads: int
) -> list[Tensor]:
    output = attention(query, key_value, lists, num_heads)
    # Every element has its own weight, so that swapped gradients do not go unnoticed.
    weight = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    return [output, *torch.autograd.grad((output * weight).sum(), [query, key_value])]


@settings(max_examples=60)
@given(
    shape=st.sampled_from(SHAPES),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    num_rows=st.integers(1, 12),
    seed=st.integers(0, 999),
)
def test_compiled_attention_torch_and_loops_agree(
    shape: tuple[int, int], dtype: torch.dtype, lengths: list[int], num_rows: int, seed: int
) -> None:
    num_heads, head_width = shape
    random = np.random.default_rng(seed)
    lists = random_lists(random, lengths, num_rows)
    inputs = random_inputs(random, lists, num_rows, num_heads * head_width, dtype)
    compiled, gathered, slow = (
        output_and_gradients(attention, *inputs, lists, num_heads)
        for attention in (packed_attention, attention_by_gathering, attention_by_loops)
    )
    for fast in (compiled, gathered):
        assert_close(fast, slow, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("longest", [40, 20_000])
def test_threads_divide_the_queries(num_threads: int, dtype: torch.dtype, longest: int) -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 40, size=1_500)  # enough pairs for every thread
    lengths[random.integers(1_500)] = longest  # a single query may have most of the pairs
    lists = random_lists(random, lengths, num_rows=700)
    inputs = random_inputs(random, lists, 700, 8, dtype)
    torch.set_num_threads(num_threads)
    compiled, gathered = (
        output_and_gradients(attention, *inputs, lists, 2)
        for attention in (packed_attention, attention_by_gathering)
    )
    # The sums over many pairs are in a different order.
    tolerance = 100 * TOLERANCE[dtype]
    assert_close(compiled, gathered, rtol=tolerance, atol=tolerance)


@given(spread=st.sampled_from([1, 8, 20, 60]), seed=st.integers(0, 999))
def test_scores_far_apart_in_single_precision(spread: int, seed: int) -> None:
    """Integers and a head width of 4 make scores exact, so only the exponential can differ."""
    random = np.random.default_rng(seed)
    lists = random_lists(random, [1, 2, 5, 9], num_rows=6)
    query = torch.from_numpy(random.integers(-spread, spread + 1, size=(4, 8))).double()
    key_value = torch.from_numpy(random.integers(-4, 5, size=(6, 16))).double()
    double, single = (
        output_and_gradients(
            packed_attention,
            query.to(dtype).requires_grad_(),
            key_value.to(dtype).requires_grad_(),
            lists,
            2,
        )
        for dtype in (torch.float64, torch.float32)
    )
    assert_close([tensor.double() for tensor in single], double, rtol=1e-5, atol=1e-4)


def test_scores_that_would_overflow_an_exponential() -> None:
    query = torch.zeros(2, 4)
    query[:, 0] = torch.tensor([1000.0, -1000.0])
    key_value = torch.zeros(2, 8)
    key_value[:, 0] = torch.tensor([1.0, -1.0])
    key_value[:, 4] = torch.tensor([2.0, 7.0])
    lists = KeyLists(torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1]))
    for attention in (packed_attention, attention_by_gathering):
        output, query_gradient, key_value_gradient = output_and_gradients(
            attention, query.requires_grad_(), key_value.requires_grad_(), lists, 1
        )
        assert output[:, 0].tolist() == [2.0, 7.0]
        assert query_gradient.abs().max() < 1e-30
        assert key_value_gradient[:, :4].abs().max() < 1e-30
        # Each value has the full weight of one query, whose output gradient it gets.
        assert_close(key_value_gradient[:, 4:].ravel(), torch.linspace(-1, 1, 8))
