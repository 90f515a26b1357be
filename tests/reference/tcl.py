"""A reference implementation of TCL that follows the paper's equations: dense, slow, independent.

It handles one sub-graph at a time and shares no code with the package. Where the paper is
ambiguous, it makes these choices. A sub-graph has k levels including the root. An instance occurs
once, at the depth at which a breadth-first search reaches it first. The sub-graph of a member ends
at the same level as the root's. The own party comes first. A node without events forms a sub-graph
by itself, and its partner is an absent node.

Symbols as in the paper: M node table, P depth table, Ψ mask, φ projection, d width; H is the number
of heads. Tensors are [member, column], and head h owns the columns h, h + H, h + 2H, …
"""

from collections.abc import Collection, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tclgraph.events.stream import EventStream
from tests.reference.intervals import in_units, log_interval


class Instance(NamedTuple):
    """A node as a party of an event; side 0 is the source. A node without events has no event."""

    event: int | None
    side: int
    node: int


Member = tuple[Instance, int]
"""An instance and its depth in a sub-graph."""


def without_past(node: int) -> Instance:
    """Return the instance that stands for a node without events."""
    return Instance(None, 0, node)


class Past:
    """The dependency graph; every method searches backwards through the list of events."""

    def __init__(self, events: EventStream) -> None:
        self.time: list[float] = events.time.tolist()
        self.first_target = 0 if events.kind == "one-mode" else events.num_sources
        self.num_nodes = self.first_target + events.num_targets
        targets = [self.first_target + target for target in events.target.tolist()]
        self.parties = list(zip(events.source.tolist(), targets, strict=True))

    def last_event(self, node: int, before_event: int) -> int | None:
        """Return the last event of a node before an event."""
        for event in reversed(range(before_event)):
            if node in self.parties[event]:
                return event
        return None

    def instances(self, event: int, own: int) -> list[Instance]:
        """Return both instances of an event, that of the node `own` first.

        For a self-loop the source's instance comes first.
        """
        instances = [Instance(event, side, node) for side, node in enumerate(self.parties[event])]
        return instances if instances[0].node == own else instances[::-1]

    def previous_event(self, instance: Instance) -> int | None:
        """Return the event that an instance depends on."""
        return None if instance.event is None else self.last_event(instance.node, instance.event)

    def interval(self, instance: Instance) -> float:
        """Return Δ: the time since the node's previous event, 0 if there is none."""
        previous = self.previous_event(instance)
        if instance.event is None or previous is None:
            return 0.0
        return self.time[instance.event] - self.time[previous]

    def subgraph(self, root: Instance, num_levels: int) -> list[Member]:
        """Return G(root, k), breadth first."""
        members = [(root, 0)]
        for instance, depth in members:  # the list grows during the loop
            previous = self.previous_event(instance)
            if previous is None or depth == num_levels - 1:
                continue
            known = [member for member, _ in members]
            dependencies = self.instances(previous, instance.node)
            members += [(member, depth + 1) for member in dependencies if member not in known]
        return members

    def attended(self, member: Member, num_levels: int) -> list[Instance]:
        """Return SG(q): the sub-graph rooted at a member, with the levels that remain below it."""
        instance, depth = member
        return [key for key, _ in self.subgraph(instance, num_levels - depth)]


class ReferenceTCL:
    """The paper's functions of given parameters, which have the names of the package's network.

    `scale` holds the mean interval and the standard deviation of its logarithm. `dropout` holds the
    dropout mask of each member's input, and `hidden` the nodes with the embedding of the unknown
    node, which is the last.
    """

    def __init__(
        self,
        events: EventStream,
        parameters: Mapping[str, Tensor],
        config: Any,
        scale: Any,
        dropout: Mapping[Member, Tensor] | None = None,
        hidden: Collection[int] = (),
    ) -> None:
        self.past = Past(events)
        self.parameters = parameters
        self.config = config
        self.scale = scale
        self.dropout = dropout
        self.hidden = hidden
        self._vectors: dict[Instance, Tensor] = {}

    # Graph Transformer

    def embedding(self, member: Member) -> Tensor:
        """Return a row of Ê: the sum of node, depth and time-interval embedding."""
        instance, depth = member
        row = -1 if instance.node in self.hidden else instance.node
        embedded = self.parameters["node.weight"][row]
        if self.config.depth_embedding:
            embedded = embedded + self.parameters["depth.weight"][depth]
        if self.config.time_embedding:
            interval = self.past.interval(instance)
            scaled = in_units(interval, self.scale.mean)
            if self.config.interval_scale == "log":
                scaled = log_interval(interval, self.scale.mean) / self.scale.log_deviation
            embedded = embedded + self.parameters["interval.weight"][:, 0] * scaled
        if self.dropout is not None:
            embedded = embedded * self.dropout[member] / (1 - self.config.input_dropout)
        return embedded

    def mask(self, members: Sequence[Member]) -> Tensor:
        """Return Ψ: 0 where the key is in the sub-graph rooted at the query, −∞ elsewhere."""
        psi = torch.full((len(members), len(members)), -torch.inf)
        for i, query in enumerate(members):
            attended = self.past.attended(query, self.config.levels)
            for j, (key, _) in enumerate(members):
                if key in attended:
                    psi[i, j] = 0.0
        return psi

    def layer(self, name: str, own: Tensor, other: Tensor, psi: Tensor) -> Tensor:
        """Return LN(FFN(Z) + Z), Z = LN(O + Q); queries are from `own`, keys from `other`."""
        weight = {
            key.removeprefix(f"{name}."): value
            for key, value in self.parameters.items()
            if key.startswith(f"{name}.")
        }
        query = own @ weight["query.weight"].T
        head_query = query
        if self.config.head_width == "full":
            head_query = query @ weight["head_query.weight"].T
        key_weight, value_weight = weight["key_value.weight"].chunk(2)
        key, value = other @ key_weight.T, other @ value_weight.T
        concatenated = torch.zeros_like(head_query)
        for head in range(self.config.heads):
            columns = slice(head, None, self.config.heads)
            is_by_head = self.config.attention_scale == "head"
            scale = sqrt(head_query[:, columns].shape[1] if is_by_head else self.config.width)
            share = torch.softmax((head_query[:, columns] @ key[:, columns].T + psi) / scale, dim=1)
            concatenated[:, columns] = share @ value[:, columns]
        output = concatenated @ weight["output.weight"].T
        residual = query if self.config.residual == "query" else own
        normed = layer_norm(
            output + residual, weight["attention_norm.weight"], weight["attention_norm.bias"]
        )
        expanded = relu(normed @ weight["expand.weight"].T + weight["expand.bias"])
        contracted = expanded @ weight["contract.weight"].T + weight["contract.bias"]
        return layer_norm(
            contracted + normed, weight["output_norm.weight"], weight["output_norm.bias"]
        )

    # Two-stream encoder

    def encode(self, root: Instance, partner: Instance) -> tuple[Tensor, Tensor]:
        """Return the dynamic embeddings of two instances; every block computes all members."""
        streams = [self.past.subgraph(party, self.config.levels) for party in (root, partner)]
        own, other = (
            torch.stack([self.embedding(member) for member in stream]) for stream in streams
        )
        own_psi, other_psi = (self.mask(stream) for stream in streams)
        for block in range(self.config.blocks):
            own = self.layer(f"graph_layers.{block}", own, own, own_psi)
            other = self.layer(f"graph_layers.{block}", other, other, other_psi)
            if self.config.cross_attention:
                no_mask = torch.zeros(len(own), len(other))
                name = f"cross_layers.{block}"
                own, other = (
                    self.layer(name, own, other, no_mask),
                    self.layer(name, other, own, no_mask.T),
                )
        return own[0], other[0]

    def predictive_vector(self, node: int, before_event: int) -> Tensor:
        """Return φ of the two parties of the node's last event before this event."""
        event = self.past.last_event(node, before_event)
        if event is None:
            own, partner = without_past(node), without_past(self.past.num_nodes)
        else:
            own, partner = self.past.instances(event, node)
        # The vector depends on the last event only, so it is stored.
        if own not in self._vectors:
            self._vectors[own] = self.projection(torch.cat(self.encode(own, partner)))
        return self._vectors[own]

    def projection(self, vector: Tensor) -> Tensor:
        """Return φ of a vector: two hidden layers with PReLU."""
        for layer in (0, 2, 4):
            name = f"projection.layers.{layer}"
            vector = self.parameters[f"{name}.weight"] @ vector + self.parameters[f"{name}.bias"]
            if layer < 4:
                negative_slope = self.parameters[f"projection.layers.{layer + 1}.weight"]
                vector = relu(vector) - negative_slope * relu(-vector)
        return vector

    # Discriminator, contrastive objective

    def match(self, first: Tensor, second: Tensor) -> Tensor:
        """Return Sim before its SoftPlus."""
        additive = self.parameters["discriminator.additive"]
        multiplicative = self.parameters["discriminator.multiplicative"]
        return (additive * (first + second)).sum() + (multiplicative * (first * second)).sum()

    def contrastive_loss(self, source: Tensor, target: Tensor, negatives: list[Tensor]) -> Tensor:
        """Return -log of the softmax of Sim at the true target."""
        candidates = (target, *negatives)
        similar = [softplus(self.match(source, candidate)) for candidate in candidates]
        return -(similar[0].exp() / torch.stack(similar).exp().sum()).log()

    # Point process

    def elapsed(self, node: int, before_event: int, time: float) -> float:
        """Return the time since the node's last event in mean intervals, 0 if there is none."""
        event = self.past.last_event(node, before_event)
        since = 0.0 if event is None else time - self.past.time[event]
        return in_units(float(since), self.scale.mean)

    def intensity(self, match: Tensor, since_source: float, since_target: float) -> Tensor:
        """Return λ of a pair at a point in time."""
        slopes = self.parameters["intensity.slopes"]
        line = match + self.parameters["intensity.bias"]
        return softplus(line + slopes[0] * since_source + slopes[1] * since_target)

    def survival(self, match: Tensor, since_source: float, since_target: float) -> Tensor:
        """Return ∫ λ from the later of the two last events until now, at five Gauss points."""
        span = min(since_source, since_target)
        total = torch.zeros_like(match)
        for point, weight in zip(*np.polynomial.legendre.leggauss(5), strict=True):
            ago = span * (1 - (point + 1) / 2)  # [-1, 1] is mapped to [0, span]
            total = total + weight * self.intensity(match, since_source - ago, since_target - ago)
        return total * span / 2

    def pair(
        self, source: int, target: int, before_event: int, time: float
    ) -> tuple[Tensor, float, float]:
        """Return the arguments of `intensity`: the similarity and both elapsed times."""
        vectors = (self.predictive_vector(node, before_event) for node in (source, target))
        since_source, since_target = (
            self.elapsed(node, before_event, time) for node in (source, target)
        )
        return self.match(*vectors), since_source, since_target

    def point_process_loss(self, event: int, negatives: Sequence[int]) -> Tensor:
        """Return the negative log-likelihood of an event, with the integrals of all pairs."""
        source, target = self.past.parties[event]
        time = self.past.time[event]
        pairs = [self.pair(source, node, event, time) for node in (target, *negatives)]
        survived = torch.stack([self.survival(*pair) for pair in pairs]).sum()
        loss: Tensor = self.config.survival_weight * survived - self.intensity(*pairs[0]).log()
        return loss

    # Results to compare with those of the package

    def loss(self, events: Sequence[int], negatives: Sequence[Sequence[int]]) -> Tensor:
        """Return the mean loss of events, given the nodes that are the negatives of each."""
        losses = []
        for event, others in zip(events, negatives, strict=True):
            if self.config.objective == "contrastive":
                source, target, *rest = (
                    self.predictive_vector(node, event)
                    for node in (*self.past.parties[event], *others)
                )
                losses.append(self.contrastive_loss(source, target, rest))
            else:
                losses.append(self.point_process_loss(event, others))
        return torch.stack(losses).mean()

    def score_all_targets(self, source: int, before_event: int, time: float) -> Tensor:
        """Return the ranking scores: Sim without SoftPlus and the source's term, or log density."""
        scores = []
        for target in range(self.past.first_target, self.past.num_nodes):
            if self.config.objective == "contrastive":
                source_vector = self.predictive_vector(source, before_event)
                candidate = self.predictive_vector(target, before_event)
                source_term = self.match(source_vector, torch.zeros_like(source_vector))
                scores.append(self.match(source_vector, candidate) - source_term)
            else:
                pair = self.pair(source, target, before_event, time)
                survived = self.survival(*pair) if self.config.rank_by == "density" else 0.0
                scores.append(self.intensity(*pair).log() - survived)
        return torch.stack(scores)

    def similarity_to_all_targets(self, source: int, before_event: int) -> Tensor:
        """Return Sim of a source and all targets."""
        source_vector = self.predictive_vector(source, before_event)
        nodes = range(self.past.first_target, self.past.num_nodes)
        targets = [self.predictive_vector(node, before_event) for node in nodes]
        return torch.stack([softplus(self.match(source_vector, target)) for target in targets])


def layer_norm(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return layer normalization over columns."""
    centered = rows - rows.mean(dim=1, keepdim=True)
    variance = (centered**2).mean(dim=1, keepdim=True)
    return centered / torch.sqrt(variance + 1e-5) * weight + bias


def relu(values: Tensor) -> Tensor:
    """Return max(x, 0)."""
    return torch.where(values > 0, values, torch.zeros_like(values))


def softplus(value: Tensor) -> Tensor:
    """Return log(1 + e^x)."""
    return torch.logaddexp(value, torch.zeros_like(value))
