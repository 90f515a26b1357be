"""A straightforward dense implementation of TCL, as a baseline for the speed of the package.

The two sub-graphs of every source, target and negative of a batch are padded to 2^k - 1 slots, laid
out as a binary heap (the children of slot i are 2i + 1 and 2i + 2). Masks mark the missing slots
and the slots that each slot may attend to. The parameters are those of the package's network, and
the loss is the same. As a program this module measures its training on CollegeMsg with two id
spaces, as in the paper, and prints JSON.
"""

import json
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.logs import read
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.encoding.training_windows import SampledRoots
from tclgraph.environment import peak_megabytes
from tclgraph.layers.transformer import TransformerLayer
from tclgraph.models.tcl.model import TCL
from tclgraph.models.tcl.network import TCLNetwork
from tclgraph.objectives.contrastive import contrastive_loss

NUM_WINDOWS = 3


class DenseTCL:
    """Computes the forward pass and the loss over padded sub-graphs."""

    def __init__(self, network: TCLNetwork, graph: DependencyGraph) -> None:
        self.encoder, self.discriminator = network.encoder, network.discriminator
        self.levels = network.config.levels
        self.node = torch.tensor(graph.node)
        self.previous = torch.tensor(graph.previous)
        self.interval = torch.tensor(graph.interval)
        slots = 2**self.levels - 1
        self.depth = torch.tensor([(slot + 1).bit_length() - 1 for slot in range(slots)])
        below = torch.eye(slots, dtype=torch.bool)
        for slot in reversed(range(slots // 2)):
            below[slot] |= below[2 * slot + 1] | below[2 * slot + 2]
        self.below = below

    def loss(self, instance_BC: Tensor, *, dropout: float) -> Tensor:
        """Return the loss of events, given the last instances of source, target and negatives.

        A negative instance -1 - n stands for node n without events.
        """
        is_known = instance_BC >= 0
        absent = torch.full_like(instance_BC, -1 - self.encoder.absent_node)
        partner_BC = torch.where(is_known, instance_BC ^ 1, absent)
        pairs = torch.stack([instance_BC, partner_BC], dim=-1)
        state = self._encode(pairs.flatten(0, 1), dropout)
        vector_BCD = self.encoder.projection(state[:, 0], state[:, 1]).view(*instance_BC.shape, -1)
        match_BC = self.discriminator(vector_BCD[:, :1], vector_BCD[:, 1:])
        similarity_BC = functional.softplus(match_BC)
        return contrastive_loss(similarity_BC[:, 0], similarity_BC[:, 1:])

    def _encode(self, roots_P2: Tensor, dropout: float) -> Tensor:
        """Return the states of both roots of every pair, [P, 2, D]."""
        instance, is_there = self._trees(roots_P2.flatten())
        hidden = functional.dropout(self._embed(instance), dropout)
        # Of several slots with the same instance only the first one is a key.
        same = (instance[:, :, None] == instance[:, None, :]) & is_there[:, None, :]
        is_first = is_there & (same.int().argmax(dim=2) == torch.arange(same.shape[1]))
        reaches = (self.below.float() @ same.float()) > 0
        may_attend = reaches & is_first[:, None, :]
        may_attend |= torch.eye(same.shape[1], dtype=torch.bool)  # every slot needs a key
        layer = self.encoder.graph_layers[0]
        assert isinstance(layer, TransformerLayer)
        hidden = _transformer(layer, hidden, hidden, may_attend)
        other_hidden = hidden.view(-1, 2, *hidden.shape[1:]).flip(1).flatten(0, 1)
        other_is_first = is_first.view(-1, 2, is_first.shape[1]).flip(1).flatten(0, 1)
        cross = self.encoder.cross_layers[0]
        assert isinstance(cross, TransformerLayer)
        hidden = _transformer(cross, hidden, other_hidden, other_is_first[:, None, :])
        return hidden[:, 0].view(*roots_P2.shape, -1)

    def _trees(self, roots_S: Tensor) -> tuple[Tensor, Tensor]:
        """Return the instance of each slot, and the mask of the existing slots."""
        levels = [roots_S[:, None]]
        there = [torch.ones_like(levels[0], dtype=torch.bool)]
        for _ in range(self.levels - 1):
            is_real = there[-1] & (levels[-1] >= 0)
            event = torch.where(is_real, self.previous[levels[-1].clamp_min(0)], -1)
            children = torch.stack([2 * event, 2 * event + 1], dim=-1).flatten(1)
            there.append((event >= 0).repeat_interleave(2, dim=1))
            levels.append(children)
        is_there = torch.cat(there, dim=1)
        # Every missing slot gets its own number, so that it equals no other slot.
        missing = -(2**40) - torch.arange(is_there.shape[1])
        return torch.where(is_there, torch.cat(levels, dim=1), missing), is_there

    def _embed(self, instance: Tensor) -> Tensor:
        """Return the sum of node, depth and time-interval embedding of every slot."""
        encoder = self.encoder
        is_real = instance >= 0
        known = instance.clamp_min(0)
        singleton = (-1 - instance).clamp_max(encoder.absent_node)
        node = torch.where(is_real, self.node[known], singleton)
        seconds = torch.where(is_real, self.interval[known], 0.0)
        scaled = (seconds / encoder.scale.mean).to(encoder.weight.dtype)
        embedded: Tensor = encoder.node(node) + encoder.depth(self.depth)
        embedded += encoder.interval(scaled[..., None])
        return embedded


def _transformer(
    layer: TransformerLayer, hidden: Tensor, other: Tensor, may_attend: Tensor
) -> Tensor:
    """Return the output of a layer whose slots attend to slots of `other`, with a mask."""

    def by_head(rows: Tensor) -> Tensor:  # head h owns the columns h, h + H, h + 2H, …
        return rows.view(*rows.shape[:2], -1, layer.num_heads).permute(0, 3, 1, 2)

    query = layer.query(hidden)
    key, value = (by_head(rows) for rows in layer.key_value(other).chunk(2, dim=-1))
    score = by_head(query) @ key.transpose(-1, -2) / key.shape[-1] ** 0.5
    share = score.masked_fill(~may_attend[:, None], -torch.inf).softmax(dim=-1)
    attended = (share @ value).permute(0, 2, 3, 1).flatten(2)
    attended = layer.attention_norm(layer.output(attended) + query)
    expanded = torch.relu(layer.expand(attended))
    normed: Tensor = layer.output_norm(layer.contract(expanded) + attended)
    return normed


def measure() -> dict[str, Any]:
    """Measure training steps, after checking that the loss is that of the package."""
    model = TCL()
    num_windows = model.prepare(read("collegemsg_bipartite"))
    dense = DenseTCL(model.network, model.windows.graph)
    optimizer = torch.optim.Adam(model.network.parameters(), lr=model.config.learning_rate)
    random = np.random.default_rng(0)

    def draw_roots(window: int) -> SampledRoots:
        event = model.windows.events(window)
        negatives = model.draw_negatives(event, random)
        return model.windows.sampled_roots(event, negatives, model.network.encoder.absent_node)

    def step(window: int) -> None:
        instance = torch.from_numpy(draw_roots(window).instance)
        optimizer.zero_grad(set_to_none=True)
        dense.loss(instance, dropout=model.config.input_dropout).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    roots = draw_roots(num_windows // 2)
    with torch.no_grad():  # so that the check does not add to the peak memory
        dense_loss = dense.loss(torch.from_numpy(roots.instance), dropout=0.0)
        torch.testing.assert_close(dense_loss, model.sampled_loss(roots))
    chosen = np.linspace(0, num_windows - 2, NUM_WINDOWS).astype(int)

    started = time.perf_counter()
    for window in chosen.tolist():
        step(window)
    seconds = time.perf_counter() - started
    return {
        "events_per_second": round(NUM_WINDOWS * model.config.batch_size / seconds, 1),
        "threads": torch.get_num_threads(),
        "peak_megabytes": peak_megabytes(),
    }


if __name__ == "__main__":
    torch.set_num_threads(2)
    print(json.dumps(measure()))
