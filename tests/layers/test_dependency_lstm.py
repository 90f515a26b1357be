"""Compare the batched layers of TDIG-MPNN with loops over rows, in values and gradients."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from tclgraph.layers.dependency_lstm import DependencyLSTM, LocalAttention, Selection

WIDTH = 3


def filled(module: nn.Module, seed: int) -> nn.Module:
    """Fill all parameters with random values, so that a zero cannot hide an error."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def assert_same(module: nn.Module, ours: Tensor, theirs: Tensor, *inputs: Tensor) -> None:
    """Assert that values are equal, and gradients of a sum with a different weight per element."""
    assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    share = torch.linspace(0.5, 1.5, ours.numel(), dtype=torch.float64).view_as(ours)
    into = [*module.parameters(), *inputs]
    gradients, expected = (
        torch.autograd.grad((output * share).sum(), into, allow_unused=True, materialize_grads=True)
        for output in (ours, theirs)
    )
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-10)


def recursive_states(
    lstm: nn.Module, inputs: Tensor, interval: Tensor, children: list[list[list[int]]]
) -> list[list[Tensor]]:
    """Return the states of all rows, one row at a time, with weights named as in the equations."""
    named = dict(lstm.named_parameters())
    written = dict(zip("zos", named["written.weight"].chunk(3), strict=True))
    written_bias = dict(zip("zos", named["written.bias"].chunk(3), strict=True))
    keep = dict(zip(("f0", "g0", "f1", "g1"), named["forget.weight"].chunk(4), strict=True))
    keep_bias = dict(zip(("f0", "g0", "f1", "g1"), named["forget.bias"].chunk(4), strict=True))
    from_child = [
        dict(zip("zosfg", named[f"{party}.weight"].chunk(5), strict=True))
        for party in ("from_own", "from_partner")
    ]
    sizes = [len(level) for level in children]
    sizes.append(len(inputs) - sum(sizes))

    def state(level: int, place: int) -> tuple[Tensor, Tensor]:
        row = sum(sizes[:level]) + place
        x, delta = inputs[row], interval[row]
        below = [(torch.zeros_like(x), torch.zeros_like(x))] * 2
        if level < len(children):
            for party, child in enumerate(children[level][place]):
                if child < sizes[level + 1]:
                    below[party] = state(level + 1, child)

        def gate(name: str) -> Tensor:
            total = written[name] @ x + written_bias[name]
            for party, (h, _) in enumerate(below):
                total = total + from_child[party][name] @ h
            return total

        cell = torch.sigmoid(gate("z")) * torch.tanh(gate("s"))
        for party, (h, c) in enumerate(below):
            f = keep[f"f{party}"] @ x + from_child[party]["f"] @ h + keep_bias[f"f{party}"]
            g = keep[f"g{party}"] @ x + from_child[party]["g"] @ h + keep_bias[f"g{party}"]
            g = g + named["from_interval"][party] * delta
            cell = cell + torch.sigmoid(f) * torch.sigmoid(g) * c
        return torch.sigmoid(gate("o")) * torch.tanh(cell), cell

    return [[state(level, place)[0] for place in range(size)] for level, size in enumerate(sizes)]


CHILDREN: dict[str, list[list[list[int]]]] = {
    "one level": [],
    "two levels": [[[0, 1], [2, 2]]],
    # Rows with two parents, rows whose children are missing, and own and partner swapped.
    "four levels": [[[0, 1], [2, 1], [3, 3]], [[1, 0], [0, 1], [2, 2]], [[1, 0], [2, 2]]],
    "no children": [[[0, 0], [0, 0]], []],
}
LAST_LEVEL = {"one level": 3, "two levels": 2, "four levels": 2, "no children": 0}


@pytest.mark.parametrize("shape", CHILDREN)
def test_levels_equal_recursion(shape: str) -> None:
    children = CHILDREN[shape]
    lstm = filled(DependencyLSTM(WIDTH), 0)
    num_rows = sum(len(level) for level in children) + LAST_LEVEL[shape]
    generator = torch.Generator().manual_seed(1)

    def random(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).requires_grad_()

    inputs, gate, interval = random(4, WIDTH), random(num_rows), random(num_rows)
    input_of_row = torch.arange(num_rows) % 4
    ours = lstm(
        inputs,
        input_of_row,
        gate,
        interval,
        [torch.tensor(level, dtype=torch.int64).view(-1, 2) for level in children],
    )
    by_row = gate[:, None] * inputs[input_of_row]
    by_level = recursive_states(lstm, by_row, interval, children)
    theirs = torch.stack([state for level in by_level for state in level])
    assert_same(lstm, ours, theirs, inputs, gate, interval)


def looped_gates(selection: nn.Module, hidden: Tensor, trees: list[list[int]]) -> Tensor:
    """Return the gates of all rows, row by row and event by event."""
    named = dict(selection.named_parameters())
    gates: dict[int, Tensor] = {}
    for event in range(0, len(trees), 2):
        first, second = trees[event], trees[event + 1]

        weight = named["match.weight"]
        for rows, others, is_first in ((first, second, True), (second, first, False)):
            best = []
            for row in rows:
                pairs = [(row, other) if is_first else (other, row) for other in others]
                match = [torch.tanh(hidden[a] @ weight @ hidden[b]) for a, b in pairs]
                best.append(torch.stack(match).max().exp())
            shares = torch.stack(best) / torch.stack(best).sum()
            summary = (shares[:, None] * hidden[rows]).sum(0)
            for row in rows:
                gates[row] = torch.sigmoid(
                    named["by_summary.weight"][0] @ summary
                    + named["by_row.weight"][0] @ hidden[row]
                )
    return torch.stack([gates[row] for row in range(len(hidden))])


def test_selection_equals_loops() -> None:
    trees = [[0, 4, 5], [1], [2, 6], [3, 7, 8, 9]]
    selection = filled(Selection(WIDTH), 2)
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(10, WIDTH, generator=generator, dtype=torch.float64).requires_grad_()
    rows = torch.full((4, 4), 10)
    tree = torch.empty(10, dtype=torch.int64)
    for number, members in enumerate(trees):
        rows[number, : len(members)] = torch.tensor(members)
        tree[members] = number
    ours = selection(hidden, tree, rows)
    assert_same(selection, ours, looped_gates(selection, hidden, trees), hidden)


def test_local_attention_equals_loops_and_keeps_inputs_without_neighbors() -> None:
    attention = filled(LocalAttention(WIDTH, 2), 4)
    generator = torch.Generator().manual_seed(5)

    def random(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).requires_grad_()

    own, others, interval = random(4, WIDTH), random(4, 2, WIDTH), random(4)
    is_there = torch.tensor([[True, True], [False, True], [True, False], [False, False]])
    named = dict(attention.named_parameters())
    rows = []
    for row in range(4):
        values, logits = [], []
        for kind in is_there[row].nonzero()[:, 0].tolist():
            value = named[f"value.{kind}.weight"] @ others[row, kind]
            logit = named["by_own.weight"][kind] @ own[row] + named["by_other"][kind] @ value
            logit = logit + named["by_interval"][kind] * interval[row]
            values.append(value)
            logits.append(torch.where(logit > 0, logit, 0.2 * logit))
        attended = torch.zeros(WIDTH, dtype=torch.float64)
        if values:
            attended = torch.softmax(torch.stack(logits), 0) @ torch.stack(values)
        rows.append(own[row] + attended)
    assert_same(attention, attention(own, others, is_there, interval), torch.stack(rows), own)
    assert_close(rows[3], own[3])
