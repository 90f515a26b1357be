"""The gated block against plain loops, and its attention against torch's Transformer layer.

Shapes: B sequences, L positions, D width, H heads.
"""

import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from tclgraph.layers.gated_block import GatedBlock, dropped

B, L, D, H = 3, 5, 6, 2


def random_block(seed: int = 0) -> GatedBlock:
    torch.manual_seed(seed)
    block = GatedBlock(D, H, dropout=0.5).double()
    for parameter in block.parameters():
        parameter.data.normal_(std=0.5)
    return block


def random_mask() -> Tensor:
    """Return a mask in which every position attends to itself and to some earlier ones."""
    allowed = torch.rand(B, L, L, generator=torch.Generator().manual_seed(1)) < 0.6
    return allowed.tril(-1) | torch.eye(L, dtype=torch.bool)


def normalized(state: Tensor, norm: nn.LayerNorm) -> Tensor:
    centered = state - state.mean()
    return centered / (centered.square().mean() + norm.eps).sqrt() * norm.weight + norm.bias


def by_loops(block: GatedBlock, states: Tensor, mask: Tensor, position: int) -> Tensor:
    """Return the new state of a position of a sequence, [D], one head and one key at a time."""
    own = states[position]
    key_weight, value_weight = block.key_value.weight.chunk(2)
    key_bias, value_bias = block.key_value.bias.chunk(2)
    query = block.query.weight @ normalized(own, block.attention_norm) + block.query.bias
    heads = []
    for head in range(H):
        part = slice(head * D // H, (head + 1) * D // H)
        weights, values = [], []
        for other in range(len(states)):
            if mask[position, other]:
                normed = normalized(states[other], block.attention_norm)
                key = key_weight @ normed + key_bias
                weights.append((query[part] @ key[part] / (D / H) ** 0.5).exp())
                values.append((value_weight @ normed + value_bias)[part])
        weight = torch.stack(weights)
        heads.append(weight @ torch.stack(values) / weight.sum())
    attended = block.output.weight @ torch.cat(heads) + block.output.bias
    gate = 1 / (1 + (-(block.attention_gate.weight @ own + block.attention_gate.bias)).exp())
    middle = own + gate * attended
    normed = normalized(middle, block.feed_forward_norm)
    first, second = (weight @ normed for weight in block.expand.weight.chunk(2))
    contracted = block.contract.weight @ (first / (1 + (-first).exp()) * second)
    gate_input = block.feed_forward_gate.weight @ middle + block.feed_forward_gate.bias
    return middle + contracted / (1 + (-gate_input).exp())


def test_states_equal_plain_loops() -> None:
    block, mask = random_block(), random_mask()
    states = torch.randn(B, L, D, dtype=torch.float64)
    expected = [
        [by_loops(block, states[row], mask[row], position) for position in range(L)]
        for row in range(B)
    ]
    actual = block(states, mask)
    assert_allclose(actual.detach(), torch.stack([*map(torch.stack, expected)]).detach(), rtol=1e-9)
    # The last positions alone are the same.
    assert_allclose(block(states, mask[:, -2:]).detach(), actual[:, -2:].detach(), rtol=1e-12)


def test_attention_with_open_gates_equals_torch() -> None:
    block, mask = random_block(), random_mask()
    layer = nn.TransformerEncoderLayer(
        D, H, dim_feedforward=4, dropout=0.0, batch_first=True, norm_first=True
    ).double()
    block.attention_gate.weight.data.zero_()
    block.attention_gate.bias.data.fill_(100.0)
    block.contract.weight.data.zero_()
    layer.linear2.weight.data.zero_()
    layer.linear2.bias.data.zero_()
    layer.norm1.load_state_dict(block.attention_norm.state_dict())
    attention, key_value = layer.self_attn, block.key_value
    attention.in_proj_weight.data = torch.cat([block.query.weight, key_value.weight]).detach()
    attention.in_proj_bias.data = torch.cat([block.query.bias, key_value.bias]).detach()
    attention.out_proj.load_state_dict(block.output.state_dict())
    states = torch.randn(B, L, D, dtype=torch.float64)
    expected = layer(states, src_mask=~mask.repeat_interleave(H, dim=0))
    assert_allclose(block(states, mask).detach(), expected.detach(), rtol=1e-9)


def test_dropout_is_drawn_from_the_generator_and_keeps_the_mean() -> None:
    block, mask = random_block(), random_mask()
    states = torch.randn(B, L, D, dtype=torch.float64)

    def trained(seed: int) -> Tensor:
        output: Tensor = block(states, mask, torch.Generator().manual_seed(seed))
        return output.detach()

    assert torch.equal(trained(1), trained(1))
    assert not torch.equal(trained(1), trained(2))
    assert not torch.equal(trained(1), block(states, mask).detach())
    ones = torch.ones(20_000)
    values = dropped(ones, 0.25, torch.Generator().manual_seed(0))
    assert set(values.tolist()) == {0.0, (1 / torch.tensor(0.75)).item()}
    assert abs(values.mean().item() - 1) < 0.02
    assert dropped(ones, 0.25, None) is ones
