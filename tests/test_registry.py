"""The registry, and a model of another package that joins through an entry point."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tclgraph import registry
from tclgraph.errors import InputError
from tclgraph.events.stream import GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.testing import CHECKS
from tclgraph.testing.contract import Check
from tclgraph.testing.streams import KINDS
from tests.streams import Cli, write

MODULE = '''
"""Two models that tclgraph does not know: a rule, and one that is trained."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import tclgraph as tg
from tclgraph.layers.node_tables import NodeEmbedding
from tclgraph.models.learned import LearnedModel
from tclgraph.training.config import TrainingConfig


class LeastRecent(tg.Model):
    """Ranks targets by how long ago they last occurred."""

    name = "least-recent"

    def fit(self, split):
        self.start_state(split.events)
        self.observe(split.train)
        return self

    def reset_state(self):
        self.last = np.full(self.state.space.num_targets, -1.0)

    def update_state(self, events):
        last_event = len(self.state.graph)
        self.last[events.target] = np.arange(last_event - len(events), last_event)

    def score(self, source, time):
        return np.tile(-self.last, (len(source), 1))


@dataclass(frozen=True, kw_only=True)
class FactorsConfig(TrainingConfig):
    width: int = 8


class Factors(LearnedModel):
    """One vector per source and per target, trained by a softmax over all targets."""

    name = "factors"
    config_type = FactorsConfig
    streams = False

    def prepare(self, split):
        self.start(split.events)
        self.train_events = split.train
        return -(-len(split.train) // self.config.batch_size)

    def build_network(self):
        space = self.graph.space
        return nn.ModuleDict({
            "source": NodeEmbedding(space.num_sources, self.config.width, side="sources"),
            "target": NodeEmbedding(space.num_targets, self.config.width, side="targets"),
        })

    def loss(self, batch, random):
        events = self.train_events[batch * self.config.batch_size :][: self.config.batch_size]
        scores = self.all_scores(events.source)
        return nn.functional.cross_entropy(scores, torch.tensor(events.target))

    @torch.no_grad()
    def score(self, source, time):
        self.check_fitted()
        return self.all_scores(source).numpy()

    def all_scores(self, source):
        return self.network["source"](torch.tensor(source)) @ self.network["target"].weight.T


class Misnamed(tg.Model):
    name = "another-name"
'''
ENTRY_POINTS = """
[tclgraph.models]
least-recent = other_package:LeastRecent
factors = other_package:Factors
misnamed = other_package:Misnamed
missing = other_package:Missing
"""
METADATA = "Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install another package, as pip would leave it, in a folder on the path."""
    folder = tmp_path / "site-packages"
    info = folder / "other_package-1.0.dist-info"
    info.mkdir(parents=True)
    write(folder, "other_package.py", MODULE)
    write(info, "entry_points.txt", ENTRY_POINTS)
    write(info, "METADATA", METADATA)
    monkeypatch.syspath_prepend(folder)
    registry._external.cache_clear()
    yield folder
    registry._external.cache_clear()
    sys.modules.pop("other_package", None)


def test_every_name_leads_to_a_model_of_that_name() -> None:
    for name in registry.names():
        assert registry.model_class(name).name == name


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match='did you mean "own-recency"'):
        registry.build("own-recencey")


def test_settings_that_a_model_does_not_take_are_refused() -> None:
    with pytest.raises(InputError, match="'popularity' does not take these settings"):
        registry.build("popularity", width=8)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["least-recent", "factors"])
def test_models_of_another_package_keep_the_contract(
    package: Path, check: Check, kind: GraphKind, name: str
) -> None:
    settings = {"epochs": 1, "threads": 1} if name == "factors" else {}
    assert name in registry.names()
    check(lambda: registry.build(name, **settings), kind)


@pytest.mark.parametrize("name", ["least-recent", "factors"])
def test_models_of_another_package_work_in_every_command(
    package: Path, cli: Cli, tmp_path: Path, name: str
) -> None:
    write_file(synthesize(SyntheticConfig(events=200, sources=8, targets=9)), tmp_path / "log.csv")
    path = {"PYTHONPATH": str(package)}
    settings = ("--set", "epochs=2", "--set", "threads=1") if name == "factors" else ()
    code, out, err = cli("train", "log.csv", "--model", name, *settings, "--json", **path)
    assert code == 0, err
    run = json.loads(out)["run"]
    assert run == f"runs/{name}-log"
    code, out, err = cli("evaluate", run, "--json", **path)
    assert code == 0, err
    assert json.loads(out)["model"] == name
    code, out, err = cli("recommend", run, "--source", "3", "--top", "4", "--json", **path)
    assert code == 0, err
    assert len(json.loads(out)["sources"][0]["recommendations"]) == 4
    words = ("reproduce", "overall", "--data", "log.csv", "--models", f"{name},heuristics")
    code, out, err = cli(*words, "--seeds", "1", "--out", "tables", "--json", **path)
    assert code == 0, err
    assert f"| {name} " in (tmp_path / "tables/tables/overall-log.md").read_text()


def test_an_entry_point_that_is_no_model_is_refused(package: Path) -> None:
    with pytest.raises(InputError, match=r"is not a subclass of tclgraph\.Model with that name"):
        registry.build("misnamed")
    with pytest.raises(InputError, match="cannot import the model 'missing'"):
        registry.build("missing")
