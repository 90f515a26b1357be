"""From vectors to scores of all targets: one product of matrices for as many queries as come.

Shapes: B queries, T targets, D width.
"""

import numpy as np
import torch
from torch import Tensor

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.stream import EventStream
from tclgraph.features.block import HistoryFeatures
from tclgraph.models.tcl.network import TCLNetwork
from tclgraph.models.tcl.state import NodeStates, encode
from tclgraph.models.tcl.terms import Choice
from tclgraph.objectives.point_process import integrated_intensity, log_intensity


@torch.no_grad()
def score_present(
    network: TCLNetwork, states: NodeStates, source: IntArray, time: FloatArray
) -> ScoreArray:
    """Scores of all targets for each source, by the state as it is."""
    targets = states.graph.space.target_nodes
    asking_BD = states.vectors(source)
    match_BT = network.ranking_key(asking_BD) @ states.vectors(targets).T
    if network.terms:
        return _log_probabilities(network, states.present.features(source, time), match_BT)
    if network.config.objective == "contrastive":
        return match_BT.cpu().numpy()
    since_source_B = _elapsed(time, _last_time(states.graph, source))
    since_target_BT = _elapsed(time[:, None], _last_time(states.graph, targets))
    return _point_process_scores(network, match_BT, asking_BD, since_source_B, since_target_BT)


@torch.no_grad()
def score_each(network: TCLNetwork, states: NodeStates, events: EventStream) -> ScoreArray:
    """Scores for each event's source just before the event; afterwards all have happened.

    Everything is scored by the state before the block, and what an event changed is then written
    over the rows after it: the columns of its parties, and the queries of its parties.
    """
    graph = states.graph
    start, first_target = len(graph), graph.space.first_target
    targets = graph.space.target_nodes
    before_TD = states.vectors(targets)
    asking_BD = states.vectors(events.source)
    target_time = np.tile(_last_time(graph, targets), (len(events), 1))
    source_time = _last_time(graph, events.source)
    present = states.present

    graph.append(events)
    new_ID = encode(network, graph, np.arange(2 * start, 2 * len(graph)))
    previous = graph.previous[2 * start :: 2]
    moved = np.flatnonzero(previous >= start)
    own = 2 * previous[moved]
    own += graph.node[own] != events.source[moved]
    asking_BD[_index(moved, asking_BD)] = new_ID[_index(own - 2 * start, new_ID)]
    source_time[moved] = graph.time[previous[moved]]

    key_BD = network.ranking_key(asking_BD)
    match = (key_BD @ before_TD.T).cpu().numpy()
    changed = (key_BD @ new_ID.T).cpu().numpy()
    for instance, node in enumerate(graph.node[2 * start :].tolist()):
        if node >= first_target:
            later = slice(instance // 2 + 1, None)
            match[later, node - first_target] = changed[later, instance]
            target_time[later, node - first_target] = events.time[instance // 2]

    latest = graph.last_instance[np.unique(graph.node[2 * start :])]
    states.set_vectors(latest, new_ID[_index(latest - 2 * start, new_ID)])
    if network.terms:
        facts = present.features(events.source, events.time, reveal=True)
        return _log_probabilities(network, facts, torch.from_numpy(match).to(network.device))
    if network.config.objective == "contrastive":
        return match
    return _point_process_scores(
        network,
        torch.from_numpy(match).to(network.device),
        asking_BD,
        _elapsed(events.time, source_time),
        _elapsed(events.time[:, None], target_time),
    )


def _log_probabilities(network: TCLNetwork, facts: HistoryFeatures, match_BT: Tensor) -> ScoreArray:
    """Of each target being the next."""
    assert network.terms is not None
    every = Choice(np.arange(match_BT.shape[1]))
    found: Tensor = network.terms(facts, match_BT, every, network.config.repeat_bias)
    return found.cpu().numpy()


def _point_process_scores(
    network: TCLNetwork,
    match_BT: Tensor,
    asking_BD: Tensor,
    since_source_B: FloatArray,
    since_target_BT: FloatArray,
) -> ScoreArray:
    """Log-density of each pair meeting now (or its log-intensity), times counted in mean gaps."""
    intensity = network.intensity
    match_BT = match_BT + (asking_BD @ network.discriminator.additive)[:, None]
    since_source_BT = network.numbers(since_source_B[:, None] / network.units.mean)
    since_target = network.numbers(since_target_BT / network.units.mean)
    line_BT = intensity.line(match_BT, since_source_BT, since_target)
    score_BT = log_intensity(line_BT)
    if network.config.rank_by == "density":
        span_BT = torch.minimum(since_source_BT, since_target)
        score_BT = score_BT - integrated_intensity(
            line_BT - intensity.slope * span_BT, intensity.slope, span_BT
        )
    return score_BT.cpu().numpy()


def _last_time(graph: DependencyGraph, node: IntArray) -> FloatArray:
    """Of each node's last event, NaN without one."""
    instance = graph.last_instance[node]
    known = instance >= 0
    time = np.full(len(node), np.nan)
    time[known] = graph.time[instance[known] // 2]
    return time


def _elapsed(now: FloatArray, then: FloatArray) -> FloatArray:
    """Seconds between, 0 where there was no event to count from."""
    return np.nan_to_num(now - then)


def _index(array: IntArray, like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)
