"""Speed of TGN built from the parts of PyTorch Geometric (PyG), on the logs of `benchmarks.logs`.

The sizes are those of PyG's own example: memory, time encoding and embedding of width 100, the 10
latest neighbors, two attention heads, one random negative per event, batches of 200 events, Adam.
The logs have no event features, so a message carries a single zero. Runs in its own process and
prints JSON:

    python -m benchmarks.pyg_tgn LOG THREADS
"""

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import TGNMemory, TransformerConv
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator, LastNeighborLoader

from benchmarks.logs import read
from tclgraph.environment import peak_megabytes
from tclgraph.evaluation.ranking import rank
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split

BATCH_SIZE = 200
WIDTH = 100
NUM_HEADS = 2
NUM_NEIGHBORS = 10
DROPOUT = 0.1
LEARNING_RATE = 1e-4
NUM_WARM_UP_BATCHES = 5
NUM_RANKED_BATCHES = 5
EVENTS_PER_CHUNK = 8
"""Number of events scored together: the pair decoder needs events x targets x width numbers."""


@dataclass(frozen=True, slots=True)
class Events:
    """The columns of a log as tensors; targets of a bipartite graph come after its sources."""

    source: Tensor
    target: Tensor
    time: Tensor
    message: Tensor
    num_nodes: int
    candidates: Tensor
    """Nodes of all targets of the log."""

    @classmethod
    def of(cls, split: Split) -> "Events":
        space, stream = NodeSpace.of(split.events), split.events
        target = torch.from_numpy(stream.target + space.first_target)
        return cls(
            source=torch.from_numpy(stream.source.copy()),
            target=target,
            time=torch.from_numpy((stream.time - stream.time[0]).astype(np.int64)),
            message=torch.zeros(len(stream), 1),
            num_nodes=space.num_nodes,
            candidates=torch.from_numpy(np.unique(target.numpy())),
        )


class PygTGN(nn.Module):
    """Memory, one attention layer over the latest neighbors, and a decoder of pairs."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self.events = events
        self.memory = TGNMemory(
            events.num_nodes,
            raw_msg_dim=1,
            memory_dim=WIDTH,
            time_dim=WIDTH,
            message_module=IdentityMessage(1, WIDTH, WIDTH),
            aggregator_module=LastAggregator(),
        )
        self.attention = TransformerConv(
            WIDTH, WIDTH // NUM_HEADS, heads=NUM_HEADS, dropout=DROPOUT, edge_dim=1 + WIDTH
        )
        self.from_source, self.from_target = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.decide = nn.Linear(WIDTH, 1)
        self.neighbors = LastNeighborLoader(events.num_nodes, size=NUM_NEIGHBORS)
        self.row_of = torch.empty(events.num_nodes, dtype=torch.long)

    def reset(self) -> None:
        """Forget all events."""
        self.memory.reset_state()
        self.neighbors.reset_state()

    def encode(self, nodes: Tensor) -> Tensor:
        """Return the embeddings of nodes, which do not depend on the time of a query."""
        every_node, edges, event = self.neighbors(nodes.unique())  # type: ignore[no-untyped-call]
        self.row_of[every_node] = torch.arange(len(every_node))
        state, last_update = self.memory(every_node)
        elapsed = last_update[edges[0]] - self.events.time[event]
        encoded_time = self.memory.time_enc(elapsed.to(state.dtype))
        edge_features = torch.cat([encoded_time, self.events.message[event]], dim=1)
        embedding: Tensor = self.attention(state, edges, edge_features)
        return embedding[self.row_of[nodes]]

    def decode(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the score of pairs of embeddings; shapes broadcast."""
        hidden = torch.relu(self.from_source(source) + self.from_target(target))
        score: Tensor = self.decide(hidden)[..., 0]
        return score

    def update(self, batch: slice) -> None:
        """Update the state with the events of a batch."""
        events = self.events
        source, target = events.source[batch], events.target[batch]
        self.memory.update_state(source, target, events.time[batch], events.message[batch])
        self.neighbors.insert(source, target)

    def loss(self, batch: slice, generator: torch.Generator) -> Tensor:
        """Return the cross-entropy of true targets beside one random target per event."""
        events = self.events
        source, target = events.source[batch], events.target[batch]
        drawn = torch.randint(len(events.candidates), (len(source),), generator=generator)
        nodes = torch.cat([source, target, events.candidates[drawn]])
        source_BD, target_BD, negative_BD = self.encode(nodes).chunk(3)
        true_score = self.decode(source_BD, target_BD)
        false_score = self.decode(source_BD, negative_BD)
        return (functional.softplus(-true_score) + functional.softplus(false_score)).mean()

    @torch.no_grad()
    def rank(self, batch: slice) -> None:
        """Rank the true targets of a batch among all targets; the state is that before it."""
        events = self.events
        source, candidates = events.source[batch], events.candidates
        embedding = self.encode(torch.cat([source, candidates]))
        source_BD, candidate_KD = embedding[: len(source)], embedding[len(source) :]
        true = torch.searchsorted(candidates, events.target[batch]).numpy()
        for start in range(0, len(source), EVENTS_PER_CHUNK):
            chunk = slice(start, start + EVENTS_PER_CHUNK)
            score_BK = self.decode(source_BD[chunk, None], candidate_KD[None])
            rank(score_BK.numpy(), true[chunk])


def batches(start: int, stop: int) -> list[slice]:
    return [slice(first, min(first + BATCH_SIZE, stop)) for first in range(start, stop, BATCH_SIZE)]


def train_epoch(model: PygTGN, every_batch: list[slice]) -> float:
    """Train on batches from an empty state; return the seconds it took."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    generator = torch.Generator().manual_seed(0)
    model.train()
    model.reset()
    started = time.perf_counter()
    for batch in every_batch:
        optimizer.zero_grad()
        model.loss(batch, generator).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        model.update(batch)
        model.memory.detach()
    return time.perf_counter() - started


def measure(log: str) -> dict[str, Any]:
    """Measure one epoch (each costs the same), then the ranking of the first test events.

    The state is updated after every batch of 200, so the events of a batch are ranked with the same
    state. The models of this package update theirs after every single event.
    """
    split = read(log)
    torch.manual_seed(0)
    model = PygTGN(Events.of(split))
    training = batches(0, split.train_end)
    train_epoch(model, training[:NUM_WARM_UP_BATCHES])
    seconds = train_epoch(model, training)
    memory = peak_megabytes()

    model.eval()
    with torch.no_grad():
        for batch in batches(split.train_end, split.valid_end):
            model.update(batch)
    stop = min(split.valid_end + (NUM_RANKED_BATCHES + 1) * BATCH_SIZE, len(split.events))
    first, *others = batches(split.valid_end, stop)
    rank_and_update(model, [first])  # not counted
    ranking_seconds = rank_and_update(model, others)
    num_ranked = others[-1].stop - others[0].start
    return {
        "training": {
            "events_per_second": round(split.train_end / seconds, 1),
            "train_events": split.train_end,
        },
        "peak_megabytes": memory,
        "ranking": {
            "events_per_second": round(num_ranked / ranking_seconds, 1),
            "measured_events": num_ranked,
            "targets": len(model.events.candidates),
        },
    }


@torch.no_grad()
def rank_and_update(model: PygTGN, every_batch: list[slice]) -> float:
    """Rank batches, each followed by an update of the state; return the seconds it took."""
    started = time.perf_counter()
    for batch in every_batch:
        model.rank(batch)
        model.update(batch)
    return time.perf_counter() - started


if __name__ == "__main__":
    log_name, num_threads = sys.argv[1:]
    torch.set_num_threads(int(num_threads))
    print(json.dumps(measure(log_name)))
