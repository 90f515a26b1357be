"""TCL written down as the paper has it: one sub-graph at a time, dense, slow, and sharing no code.

Where the text is ambiguous: k levels with the root, an instance once at the depth where
breadth-first search first meets it, the sub-graph of a member cut where the root's is cut, own
party first, a node without a past alone with an absent partner.

Letters as in the paper: M node table, P depth table, Ψ mask, φ projection, d width; H is the number
of heads. Tensors are [member, column], and head h owns the columns h, h + H, h + 2H, …
"""

from collections.abc import Mapping, Sequence
from math import log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tclgraph.events.stream import EventStream


class Instance(NamedTuple):
    """A node as a party of an event: side 0 is the source. No event: a node without a past."""

    event: int | None
    side: int
    node: int


Member = tuple[Instance, int]
"""An instance and its depth in a sub-graph."""


def without_past(node: int) -> Instance:
    return Instance(None, 0, node)


class Past:
    """The dependency graph, found by walking back through the list of events every time."""

    def __init__(self, events: EventStream) -> None:
        self.time: list[float] = events.time.tolist()
        self.first_target = 0 if events.kind == "one-mode" else events.num_sources
        self.num_nodes = self.first_target + events.num_targets
        targets = [self.first_target + target for target in events.target.tolist()]
        self.parties = list(zip(events.source.tolist(), targets, strict=True))

    def last_event(self, node: int, before_event: int) -> int | None:
        for event in reversed(range(before_event)):
            if node in self.parties[event]:
                return event
        return None

    def instances(self, event: int, own: int) -> list[Instance]:
        """Both instances of an event, that of `own` first (the source's, if both are)."""
        both = [Instance(event, side, node) for side, node in enumerate(self.parties[event])]
        return both if both[0].node == own else both[::-1]

    def previous_event(self, instance: Instance) -> int | None:
        return None if instance.event is None else self.last_event(instance.node, instance.event)

    def interval(self, instance: Instance) -> float:
        """Δ: seconds since the node's previous event."""
        previous = self.previous_event(instance)
        if instance.event is None or previous is None:
            return 0.0
        return self.time[instance.event] - self.time[previous]

    def subgraph(self, root: Instance, num_levels: int) -> list[Member]:
        """G(root, k), breadth first."""
        members = [(root, 0)]
        for instance, depth in members:  # which grows as we go
            previous = self.previous_event(instance)
            if previous is None or depth == num_levels - 1:
                continue
            known = [one for one, _ in members]
            both = self.instances(previous, instance.node)
            members += [(one, depth + 1) for one in both if one not in known]
        return members

    def attended(self, member: Member, num_levels: int) -> list[Instance]:
        """SG(q): the sub-graph rooted at a member, of the levels that are left below it."""
        instance, depth = member
        return [one for one, _ in self.subgraph(instance, num_levels - depth)]


class ReferenceTCL:
    """The paper's functions of given parameters, named as the product's network names them.

    `units` tells the mean interval and the deviation of its logarithm. `dropout` has the columns
    to keep of each member's input.
    """

    def __init__(
        self,
        events: EventStream,
        parameters: Mapping[str, Tensor],
        config: Any,
        units: Any,
        dropout: Mapping[Member, Tensor] | None = None,
    ) -> None:
        self.past = Past(events)
        self.parameters = parameters
        self.config = config
        self.units = units
        self.dropout = dropout
        self._found: dict[Instance, Tensor] = {}

    # Graph Transformer

    def embedding(self, member: Member) -> Tensor:
        """A row of Ê: node, depth and time-interval embedding."""
        instance, depth = member
        embedded = self.parameters["node.weight"][instance.node]
        if self.config.depth_embedding:
            embedded = embedded + self.parameters["depth.weight"][depth]
        if self.config.time_embedding:
            interval = self.past.interval(instance)
            scaled = interval / self.units.mean
            if self.config.interval_scale == "log":
                scaled = log1p(interval) / self.units.log_deviation
            embedded = embedded + self.parameters["interval.weight"][:, 0] * scaled
        if self.dropout is not None:
            embedded = embedded * self.dropout[member] / (1 - self.config.input_dropout)
        return embedded

    def mask(self, members: Sequence[Member]) -> Tensor:
        """Ψ: 0 where the key is in the sub-graph rooted at the query, −∞ elsewhere."""
        psi = torch.full((len(members), len(members)), -torch.inf)
        for i, query in enumerate(members):
            attended = self.past.attended(query, self.config.levels)
            for j, (key, _) in enumerate(members):
                if key in attended:
                    psi[i, j] = 0.0
        return psi

    def layer(self, name: str, own: Tensor, other: Tensor, psi: Tensor) -> Tensor:
        """LN(FFN(Z) + Z), Z = LN(O + Q): queries from `own`, keys and values from `other`."""
        weight = {
            key.removeprefix(f"{name}."): value
            for key, value in self.parameters.items()
            if key.startswith(f"{name}.")
        }
        query = own @ weight["query.weight"].T
        asked = query
        if self.config.head_width == "full":
            asked = query @ weight["head_query.weight"].T
        key_weight, value_weight = weight["key_value.weight"].chunk(2)
        key, value = other @ key_weight.T, other @ value_weight.T
        concatenated = torch.zeros_like(asked)
        for head in range(self.config.heads):
            columns = slice(head, None, self.config.heads)
            scale = sqrt(asked[:, columns].shape[1])
            share = torch.softmax((asked[:, columns] @ key[:, columns].T + psi) / scale, dim=1)
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
        """Dynamic embeddings of two instances, by all blocks on all members of both streams."""
        streams = [self.past.subgraph(one, self.config.levels) for one in (root, partner)]
        own, other = (torch.stack([self.embedding(one) for one in stream]) for stream in streams)
        own_psi, other_psi = (self.mask(stream) for stream in streams)
        for block in range(self.config.blocks):
            own = self.layer(f"graph_layers.{block}", own, own, own_psi)
            other = self.layer(f"graph_layers.{block}", other, other, other_psi)
            if self.config.cross_attention:
                nothing_hidden = torch.zeros(len(own), len(other))
                name = f"cross_layers.{block}"
                own, other = (
                    self.layer(name, own, other, nothing_hidden),
                    self.layer(name, other, own, nothing_hidden.T),
                )
        return own[0], other[0]

    def predictive_vector(self, node: int, before_event: int) -> Tensor:
        """φ of the two parties of the node's last event before this one."""
        event = self.past.last_event(node, before_event)
        if event is None:
            own, partner = without_past(node), without_past(self.past.num_nodes)
        else:
            own, partner = self.past.instances(event, node)
        # Nothing above depends on who asks, or when: found once, it is kept.
        if own not in self._found:
            self._found[own] = self.projection(torch.cat(self.encode(own, partner)))
        return self._found[own]

    def projection(self, vector: Tensor) -> Tensor:
        """φ: two hidden layers with PReLU."""
        for layer in (0, 2, 4):
            name = f"projection.layers.{layer}"
            vector = self.parameters[f"{name}.weight"] @ vector + self.parameters[f"{name}.bias"]
            if layer < 4:
                below = self.parameters[f"projection.layers.{layer + 1}.weight"]
                vector = relu(vector) - below * relu(-vector)
        return vector

    # Discriminator, contrastive objective

    def match(self, one: Tensor, other: Tensor) -> Tensor:
        """Sim before its SoftPlus."""
        additive = self.parameters["discriminator.additive"]
        multiplicative = self.parameters["discriminator.multiplicative"]
        return (additive * (one + other)).sum() + (multiplicative * (one * other)).sum()

    def contrastive_loss(self, source: Tensor, target: Tensor, negatives: list[Tensor]) -> Tensor:
        similar = [softplus(self.match(source, one)) for one in (target, *negatives)]
        return -(similar[0].exp() / torch.stack(similar).exp().sum()).log()

    # Point process

    def elapsed(self, node: int, before_event: int, time: float) -> float:
        """In mean gaps since the node's last event, 0 without one."""
        event = self.past.last_event(node, before_event)
        since = 0.0 if event is None else time - self.past.time[event]
        return float(since / self.units.mean)

    def intensity(self, match: Tensor, since_source: float, since_target: float) -> Tensor:
        """λ of a pair at a update."""
        slopes = self.parameters["intensity.slopes"]
        line = match + self.parameters["intensity.bias"]
        return softplus(line + slopes[0] * since_source + slopes[1] * since_target)

    def survival(self, match: Tensor, since_source: float, since_target: float) -> Tensor:
        """∫ λ from the later of the two last events until now, at five Gauss-Legendre points."""
        span = min(since_source, since_target)
        total = torch.zeros_like(match)
        for point, weight in zip(*np.polynomial.legendre.leggauss(5), strict=True):
            ago = span * (1 - (point + 1) / 2)  # [-1, 1] is mapped to [0, span]
            total = total + weight * self.intensity(match, since_source - ago, since_target - ago)
        return total * span / 2

    def pair(
        self, source: int, target: int, before_event: int, time: float
    ) -> tuple[Tensor, float, float]:
        """What λ is made of."""
        vectors = (self.predictive_vector(node, before_event) for node in (source, target))
        since_source, since_target = (
            self.elapsed(node, before_event, time) for node in (source, target)
        )
        return self.match(*vectors), since_source, since_target

    def point_process_loss(self, event: int, negatives: Sequence[int]) -> Tensor:
        source, target = self.past.parties[event]
        time = self.past.time[event]
        pairs = [self.pair(source, one, event, time) for one in (target, *negatives)]
        survived = torch.stack([self.survival(*one) for one in pairs]).sum()
        loss: Tensor = self.config.survival_weight * survived - self.intensity(*pairs[0]).log()
        return loss

    # What the product is asked for

    def loss(self, events: Sequence[int], negatives: Sequence[Sequence[int]]) -> Tensor:
        """Mean over events, each with the nodes that are its negatives."""
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
        """What ranks: Sim without SoftPlus and without the source's own part; or log density."""
        scores = []
        for target in range(self.past.first_target, self.past.num_nodes):
            if self.config.objective == "contrastive":
                asking = self.predictive_vector(source, before_event)
                candidate = self.predictive_vector(target, before_event)
                alone = self.match(asking, torch.zeros_like(asking))
                scores.append(self.match(asking, candidate) - alone)
            else:
                pair = self.pair(source, target, before_event, time)
                survived = self.survival(*pair) if self.config.rank_by == "density" else 0.0
                scores.append(self.intensity(*pair).log() - survived)
        return torch.stack(scores)

    def similarity_to_all_targets(self, source: int, before_event: int) -> Tensor:
        """Sim itself."""
        asking = self.predictive_vector(source, before_event)
        targets = range(self.past.first_target, self.past.num_nodes)
        candidates = [self.predictive_vector(target, before_event) for target in targets]
        return torch.stack([softplus(self.match(asking, one)) for one in candidates])


def layer_norm(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    centered = rows - rows.mean(dim=1, keepdim=True)
    variance = (centered**2).mean(dim=1, keepdim=True)
    return centered / torch.sqrt(variance + 1e-5) * weight + bias


def relu(values: Tensor) -> Tensor:
    return torch.where(values > 0, values, torch.zeros_like(values))


def softplus(value: Tensor) -> Tensor:
    """log(1 + e^x)."""
    return torch.logaddexp(value, torch.zeros_like(value))
