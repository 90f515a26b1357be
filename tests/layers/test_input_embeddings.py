"""Compare compiled embeddings with plain torch, in values and gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tclgraph.layers import input_embeddings
from tclgraph.layers.input_embeddings import (
    Dropout,
    EmbeddingTables,
    RowInputs,
    embed_by_gathering,
    embed_rows,
)


def assert_equal_to_gathering(
    width: int, num_rows: int, seed: int, *, depth: bool, interval: bool, dropout: bool
) -> None:
    random = np.random.default_rng(seed)
    weights = [
        torch.from_numpy(random.normal(size=size)).requires_grad_()
        for size in ((7, width), (3, width), (width, 1))
    ]
    used = [True, depth, interval]
    tables = EmbeddingTables(
        weights[0], weights[1] if depth else None, weights[2] if interval else None
    )
    inputs = RowInputs(
        random.integers(7, size=num_rows),
        random.integers(3, size=num_rows),
        random.exponential(size=num_rows),
    )
    is_kept = random.random((num_rows, width)) < 0.4
    mask = Dropout(is_kept, 0.4) if dropout else None
    results = []
    for embed in (embed_rows, embed_by_gathering):
        embedded = embed(tables, inputs, mask)
        scale = torch.linspace(-1, 1, embedded.numel()).double().reshape(embedded.shape)
        read = [weight for weight, is_used in zip(weights, used, strict=True) if is_used]
        results.append([embedded, *torch.autograd.grad((embedded * scale).sum(), read)])
    assert_close(*results, rtol=1e-12, atol=1e-12)


@given(
    width=st.sampled_from([1, 4, 6, 64]),
    num_rows=st.integers(0, 20),
    seed=st.integers(0, 999),
    depth=st.booleans(),
    interval=st.booleans(),
    dropout=st.booleans(),
)
def test_compiled_embeddings_equal_torch(
    width: int, num_rows: int, seed: int, depth: bool, interval: bool, dropout: bool
) -> None:
    assert_equal_to_gathering(
        width, num_rows, seed, depth=depth, interval=interval, dropout=dropout
    )


@pytest.mark.parametrize("width", [6, 64, 96])
def test_threads_divide_rows_and_columns(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(input_embeddings, "_MIN_NUMBERS_PER_THREAD", 8)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert_equal_to_gathering(width, 11, 0, depth=True, interval=True, dropout=True)
    finally:
        torch.set_num_threads(before)
