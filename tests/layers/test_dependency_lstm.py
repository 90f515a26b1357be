"""Batches of levels against one row at a time, in double precision, gradients included."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from tclgraph.layers.dependency_lstm import DependencyLSTM, LocalAttention, Selection

WIDTH = 3


def filled(module: nn.Module, seed: int) -> nn.Module:
    """With random values everywhere, so that nothing hides behind a zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def assert_same(module: nn.Module, ours: Tensor, theirs: Tensor, *inputs: Tensor) -> None:
    """Values, and the gradients of a sum in which no two have the same share."""
    assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    share = torch.linspace(0.5, 1.5, ours.numel(), dtype=torch.float64).view_as(ours)
    into = [*module.parameters(), *inputs]
    found, expected = (
        torch.autograd.grad((one * share).sum(), into, allow_unused=True, materialize_grads=True)
        for one in (ours, theirs)
    )
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-9, atol=1e-10)


def recursive_states(
    lstm: nn.Module, inputs: Tensor, interval: Tensor, children: list[list[list[int]]]
) -> list[list[Tensor]]:
    """The equations, one row at a time, each weight by its name in them; inputs are by row."""
    named = dict(lstm.named_parameters())
    written = dict(zip("zos", named["written.weight"].chunk(3), strict=True))
    written_bias = dict(zip("zos", named["written.bias"].chunk(3), strict=True))
    kept = dict(zip(("f0", "g0", "f1", "g1"), named["kept.weight"].chunk(4), strict=True))
    kept_bias = dict(zip(("f0", "g0", "f1", "g1"), named["kept.bias"].chunk(4), strict=True))
    told = [
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
                total = total + told[party][name] @ h
            return total

        cell = torch.sigmoid(gate("z")) * torch.tanh(gate("s"))
        for party, (h, c) in enumerate(below):
            f = kept[f"f{party}"] @ x + told[party]["f"] @ h + kept_bias[f"f{party}"]
            g = kept[f"g{party}"] @ x + told[party]["g"] @ h + kept_bias[f"g{party}"]
            g = g + named["from_interval"][party] * delta
            cell = cell + torch.sigmoid(f) * torch.sigmoid(g) * c
        return torch.sigmoid(gate("o")) * torch.tanh(cell), cell

    return [[state(level, place)[0] for place in range(size)] for level, size in enumerate(sizes)]


CHILDREN: dict[str, list[list[list[int]]]] = {
    "one level": [],
    "two levels": [[[0, 1], [2, 2]]],
    # Rows with two parents, rows whose children are missing, and own and partner swapped.
    "four levels": [[[0, 1], [2, 1], [3, 3]], [[1, 0], [0, 1], [2, 2]], [[1, 0], [2, 2]]],
    "nothing below": [[[0, 0], [0, 0]], []],
}
LAST_LEVEL = {"one level": 3, "two levels": 2, "four levels": 2, "nothing below": 0}


@pytest.mark.parametrize("shape", CHILDREN)
def test_levels_equal_recursion(shape: str) -> None:
    children = CHILDREN[shape]
    lstm = filled(DependencyLSTM(WIDTH), 0)
    num_rows = sum(len(level) for level in children) + LAST_LEVEL[shape]
    generator = torch.Generator().manual_seed(1)

    def random(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).requires_grad_()

    inputs, gate, interval = random(4, WIDTH), random(num_rows), random(num_rows)
    which = torch.arange(num_rows) % 4
    ours = lstm(
        inputs,
        which,
        gate,
        interval,
        [torch.tensor(level, dtype=torch.int64).view(-1, 2) for level in children],
    )
    by_row = gate[:, None] * inputs[which]
    by_level = recursive_states(lstm, by_row, interval, children)
    theirs = torch.stack([one for level in by_level for one in level])
    assert_same(lstm, ours, theirs, inputs, gate, interval)


def looped_gates(selection: nn.Module, hidden: Tensor, trees: list[list[int]]) -> Tensor:
    """Row by row, event by event."""
    named = dict(selection.named_parameters())
    gates: dict[int, Tensor] = {}
    for event in range(0, len(trees), 2):
        one, other = trees[event], trees[event + 1]

        weight = named["match.weight"]
        for rows, others, is_first in ((one, other, True), (other, one, False)):
            best = []
            for row in rows:
                pairs = [(row, two) if is_first else (two, row) for two in others]
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
    for at, members in enumerate(trees):
        rows[at, : len(members)] = torch.tensor(members)
        tree[members] = at
    ours = selection(hidden, tree, rows)
    assert_same(selection, ours, looped_gates(selection, hidden, trees), hidden)


def test_local_attention_equals_loops_and_leaves_the_lonely_alone() -> None:
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
        took = torch.zeros(WIDTH, dtype=torch.float64)
        if values:
            took = torch.softmax(torch.stack(logits), 0) @ torch.stack(values)
        rows.append(own[row] + took)
    assert_same(attention, attention(own, others, is_there, interval), torch.stack(rows), own)
    assert_close(rows[3], own[3])
