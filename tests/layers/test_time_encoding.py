"""Test the time encoding against cosines computed in double precision."""

import numpy as np
import torch
from numpy.testing import assert_allclose

from tclgraph.layers.time_encoding import TimeEncoding


def test_a_code_is_the_cosine_of_every_frequency() -> None:
    encoding = TimeEncoding(3)
    encoding.phase.data = torch.tensor([0.0, 1.0, 2.0])
    code = encoding(torch.tensor([0.25, 40.0])).detach()
    expected = np.cos([0.25 * 1e3, 0.25 + 1, 0.25 * 1e-3 + 2])
    assert_allclose(code[0], expected, atol=1e-4)
    assert_allclose(code[1, 1:], [np.cos(41.0), np.cos(2.04)], atol=1e-4)
    assert_allclose(encoding.of_now.detach(), np.cos(range(3)), atol=1e-6)


def test_turns_are_exact_for_large_times() -> None:
    encoding = TimeEncoding(16)
    encoding.phase.data.normal_(generator=torch.Generator().manual_seed(0))
    now = torch.tensor([1e6 + 0.5, 1e6 + 7], dtype=torch.float64)
    then = now - torch.tensor([0.125, 6.0], dtype=torch.float64)
    product = encoding.turns(now, at_end=True) * encoding.turns(then, at_end=False)
    cosines, sines = product.chunk(2, dim=1)
    frequency = encoding.frequency.detach().double()
    expected = ((now - then)[:, None] * frequency + encoding.phase.detach().double()).cos()
    assert product.dtype == torch.float32
    assert_allclose(cosines + sines, expected, atol=1e-6)


def test_an_optimizer_step_keeps_slow_frequencies_slow() -> None:
    """Adam moves every weight by about the learning rate, which exceeds the slowest frequency."""
    encoding = TimeEncoding(8)
    before = encoding.frequency.detach()
    optimizer = torch.optim.Adam(encoding.parameters(), lr=0.01)
    encoding(torch.tensor([3.0])).sum().backward()
    optimizer.step()
    assert_allclose(encoding.frequency.detach() / before, np.ones(8), atol=0.011)
    assert (encoding.frequency.detach() != before).all()
