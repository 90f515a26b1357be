"""The first losses of every learned model are those that were recorded.

losses.json holds them for a synthetic stream with one identity per node and seed 1.
bipartite_losses.json does so for a bipartite stream, for models that treat the two kinds
differently. A change that moves a loss on purpose must say why, and record the losses again. Most
settings of TCL and of the ranker are compared without dropout, so that other random numbers do not
move their losses. Some have fewer losses, because their later steps multiply differences in
rounding.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from tclgraph import registry
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.learned import LearnedModel

FOLDER = Path(__file__).parent
RECORDED: dict[str, list[float]] = json.loads((FOLDER / "losses.json").read_text())
BIPARTITE: dict[str, list[float]] = json.loads((FOLDER / "bipartite_losses.json").read_text())


class Enough(Exception):
    """Raised when all losses to compare are there."""


def first_losses(name: str, split: Split, count: int) -> list[float]:
    """Train a model, given as its name and settings, until it has made so many losses."""
    model_name, *assignments = name.split()
    settings: dict[str, Any] = dict(text.split("=") for text in assignments)
    model = registry.build(model_name, seed=1, threads=1, **settings)
    assert isinstance(model, LearnedModel)
    losses: list[float] = []
    original = model.loss

    def record(batch: int, random: np.random.Generator) -> Tensor:
        if len(losses) == count:
            raise Enough
        loss = original(batch, random)
        losses.append(loss.item())
        return loss

    model.loss = record  # type: ignore[method-assign]
    with pytest.raises(Enough):
        model.fit(split)
    return losses


def synthetic(kind: GraphKind) -> Split:
    config = SyntheticConfig(events=4_000, sources=60, targets=80, kind=kind, seed=3)
    return synthesize(config).split(0.7, 0.15)


@pytest.fixture(scope="module")
def split() -> Split:
    return synthetic("one-mode")


@pytest.mark.parametrize("name", RECORDED)
def test_losses_are_those_that_were_recorded(name: str, split: Split) -> None:
    expected = RECORDED[name]
    # Sums may be taken in another order on another processor.
    np.testing.assert_allclose(first_losses(name, split, len(expected)), expected, rtol=2e-4)


@pytest.mark.parametrize("name", BIPARTITE)
def test_losses_on_a_bipartite_graph_are_those_that_were_recorded(name: str) -> None:
    expected = BIPARTITE[name]
    losses = first_losses(name, synthetic("bipartite"), len(expected))
    np.testing.assert_allclose(losses, expected, rtol=2e-4)


def test_every_learned_model_has_recorded_losses() -> None:
    learned = {
        name for name in registry.names() if issubclass(registry.model_class(name), LearnedModel)
    }
    assert {name.split()[0] for name in RECORDED} == learned
