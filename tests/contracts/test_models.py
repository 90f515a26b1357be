"""Every model of the registry keeps the contract, on both kinds of graph.

A new model joins by its registry name; a learned one needs small settings here.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tclgraph import registry
from tclgraph.errors import InputError
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.models.ranker import trust
from tclgraph.testing import CHECKS
from tclgraph.testing.contract import Check
from tclgraph.testing.streams import KINDS, cut

TINY = {"epochs": 1, "batch_size": 8, "width": 4, "threads": 1}
TWO_HEADS = {**TINY, "heads": 2}
RANKER = {"epochs": 1, "batch_size": 8, "threads": 1}
EXPERT = "tcl:epochs=1:batch_size=8:width=4:heads=2:levels=3"
ENCODER = {"encoder.width": 4, "encoder.heads": 2, "encoder.levels": 3}
SMALL: dict[str, dict[str, Any]] = {
    "tcl": {**TWO_HEADS, "levels": 3},
    "tcl (all negatives)": {**TWO_HEADS, "levels": 3, "negatives": "all", "hidden_share": 0.3},
    # With a survival term of full weight, a stream with one long gap among equal times gives the
    # untrained model a loss that counts as diverged.
    "tcl (point process)": {
        **TWO_HEADS,
        "levels": 3,
        "objective": "point-process",
        "survival_weight": 0.1,
    },
    "ranker": {**RANKER, **ENCODER},
    "ranker (no encoder)": {**RANKER, "encoder": None},
    "ranker (expert)": {**RANKER, "encoder": None, "experts": EXPERT},
    "graphsage": TWO_HEADS,
    "graphsage (mean)": {**TINY, "aggregator": "mean"},
    "ctdne": {**TINY, "walks_per_node": 2, "walk_length": 6, "window": 2},
    "dyngem": {**TINY, "hidden_widths": (6, 5), "snapshots": 2},
    "dysat": {**TWO_HEADS, "snapshots": 2},
    "deepcoevolve": TINY,
    "jodie": TINY,
    "tgat": {**TWO_HEADS, "neighbors": 3},
    "tgn": {**TWO_HEADS, "neighbors": 3},
    "tdig-mpnn": {**TINY, "levels": 3},
    "sasrec": {**TWO_HEADS, "length": 4},
    "graphmixer": {**TINY, "neighbors": 3, "window": 4, "identity_tokens": True},
    "tpnet": {**TINY, "walk_steps": 2, "negatives": 3},
}
"""Settings that make a model quick to fit, by its registry name and a variant in brackets."""


def cases() -> Iterator[tuple[str, GraphKind]]:
    for name in {**dict.fromkeys(registry.names()), **SMALL}:
        for kind in KINDS:
            if name != "last-contact" or kind == "one-mode":
                yield name, kind


@pytest.fixture(autouse=True)
def trust_in_experts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ranker trust its experts, although they learn nothing from so few events."""
    monkeypatch.setattr(trust, "VALUES", (0.5,))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_the_contract(check: Check, name: str, kind: GraphKind) -> None:
    check(lambda: registry.build(name.split()[0], **SMALL.get(name, {})), kind)


@pytest.mark.parametrize("name", SMALL)
def test_a_learned_model_needs_validation_events(name: str) -> None:
    stream = EventStream.from_columns(["a"], ["b"], [7.0], kind="one-mode")
    model = registry.build(name.split()[0], **SMALL[name])
    with pytest.raises(InputError, match="no validation events"):
        model.fit(cut(stream, 1, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_heuristic_ranks_its_only_event_first(kind: GraphKind) -> None:
    stream = EventStream.from_columns(["a"], ["b"], [7.0], kind=kind)
    for heuristic in heuristics_for(kind):
        scores = heuristic().fit(cut(stream, 1, 1)).score(stream.source, stream.time)
        assert int(scores[0].argmax()) == int(stream.target[0])
