"""Saved models: what the file holds, and which files are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal
from safetensors import safe_open
from safetensors.torch import save_file

from tclgraph import Ranker, load_model
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.learned import DeviceUnavailableError
from tclgraph.models.saving import FILE_NAME, FORMAT_VERSION

SMALL: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 64,
    "threads": 1,
    "encoder.width": 8,
    "encoder.heads": 2,
    "encoder.levels": 2,
}


@pytest.fixture(scope="module")
def split() -> Split:
    return synthesize(SyntheticConfig(events=200, sources=10, targets=12)).split(0.6, 0.2)


@pytest.fixture
def folder(split: Split, tmp_path: Path) -> Path:
    Ranker(**SMALL).fit(split).save(tmp_path)
    return tmp_path


def rewrite_header(folder: Path, **changes: str | None) -> None:
    """Change entries of the header of a model file, or remove those that are None."""
    with safe_open(folder / FILE_NAME, framework="pt") as file:
        header = dict(file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, value in changes.items():
        if value is None:
            del header[name]
        else:
            header[name] = value
    save_file(tensors, folder / FILE_NAME, header)


def settings_of(folder: Path) -> dict[str, Any]:
    with safe_open(folder / FILE_NAME, framework="pt") as file:
        settings: dict[str, Any] = json.loads(file.metadata()["settings"])
    return settings


def test_the_header_names_format_model_and_all_settings(folder: Path) -> None:
    with safe_open(folder / FILE_NAME, framework="pt") as file:
        header = file.metadata()
    assert header["format"] == str(FORMAT_VERSION)
    assert header["model"] == "ranker"
    assert header["kind"] == "bipartite"
    settings = settings_of(folder)
    assert settings["encoder"]["width"] == 8
    assert settings["repeat_bias"] == 1.5


@pytest.mark.parametrize("version", ["0", "99", None])
def test_a_file_of_another_format_is_refused(folder: Path, version: str | None) -> None:
    rewrite_header(folder, format=version)
    with pytest.raises(InputError, match=r"file format .* train the model again") as caught:
        load_model(folder)
    assert f"reads format {FORMAT_VERSION}" in str(caught.value)


def test_settings_come_from_the_file_and_never_from_defaults(folder: Path) -> None:
    settings = settings_of(folder)
    rewrite_header(folder, settings=json.dumps({**settings, "repeat_bias": 0.25}))
    loaded = load_model(folder)
    assert isinstance(loaded, Ranker)
    assert loaded.config.repeat_bias == 0.25
    del settings["repeat_bias"]
    rewrite_header(folder, settings=json.dumps(settings))
    with pytest.raises(InputError, match="the saved settings lack repeat_bias"):
        load_model(folder)


def test_settings_of_a_part_are_complete_too(folder: Path) -> None:
    settings = settings_of(folder)
    del settings["encoder"]["levels"]
    rewrite_header(folder, settings=json.dumps(settings))
    with pytest.raises(InputError, match=r"the saved settings lack encoder\.levels"):
        load_model(folder)


def test_a_model_loads_without_its_training_device(split: Split, folder: Path) -> None:
    model = load_model(folder)
    settings = settings_of(folder)
    rewrite_header(folder, settings=json.dumps({**settings, "device": "cuda:7"}))
    with pytest.raises(DeviceUnavailableError, match="'cuda:7' is not available"):
        load_model(folder)
    loaded = load_model(folder, device="cpu")
    assert isinstance(loaded, Ranker)
    assert loaded.config.device == "cpu"
    assert_array_equal(
        loaded.score(split.test.source, split.test.time),
        model.score(split.test.source, split.test.time),
    )


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no saved model in .*; give a folder that"):
        load_model(tmp_path)
    (tmp_path / FILE_NAME).write_bytes(b"half of it")
    with pytest.raises(InputError, match="no saved model in"):
        load_model(tmp_path)
