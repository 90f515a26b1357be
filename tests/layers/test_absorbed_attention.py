"""Compare attention that projects queries with attention that projects rows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from tclgraph.layers.absorbed_attention import absorbed_attention, is_absorbing_faster
from tclgraph.layers.packed_attention import KeyLists, attention_by_gathering

# (heads, head width, width): a kernel is compiled for each, so there are few.
SHAPES = ((1, 4, 4), (2, 4, 8), (3, 2, 5), (2, 5, 3), (5, 1, 7))
CASES = [
    *((shape, torch.float32) for shape in SHAPES),
    *((shape, torch.float64) for shape in SHAPES[1:4]),
]
TOLERANCE = {torch.float32: 3e-5, torch.float64: 1e-10}


@settings(max_examples=60)
@given(
    case=st.sampled_from(CASES),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    num_rows=st.integers(1, 12),
    seed=st.integers(0, 999),
)
def test_projecting_queries_equals_projecting_rows(
    case: tuple[tuple[int, int, int], torch.dtype], lengths: list[int], num_rows: int, seed: int
) -> None:
    (num_heads, head_width, width), dtype = case
    inner = num_heads * head_width
    random = np.random.default_rng(seed)
    start = torch.tensor([0, *np.cumsum(lengths)])
    lists = KeyLists(start, torch.from_numpy(random.integers(num_rows, size=sum(lengths))))
    sizes = ((len(lengths), inner), (num_rows, width), (2 * inner, width))
    query, hidden, weight = (
        torch.from_numpy(random.normal(size=size)).to(dtype).requires_grad_() for size in sizes
    )
    scale = torch.linspace(-1, 1, query.numel(), dtype=dtype).reshape(query.shape)
    absorbed = absorbed_attention(query, hidden, weight, lists, num_heads)
    projected = attention_by_gathering(query, hidden @ weight.T, lists, num_heads)
    results = [
        [output, *torch.autograd.grad((output * scale).sum(), [query, hidden, weight])]
        for output in (absorbed, projected)
    ]
    assert_close(*results, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize(("num_pairs", "expected"), [(100, True), (10_000, False)])
def test_absorbing_is_for_few_pairs(num_pairs: int, expected: bool) -> None:
    assert is_absorbing_faster(10, 64, 1_000, num_pairs, 16) is expected
