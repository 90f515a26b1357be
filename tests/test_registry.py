from pathlib import Path

import pytest

from tclgraph import registry
from tclgraph.errors import InputError
from tests.streams import write


def test_every_name_leads_to_a_model_of_that_name() -> None:
    for name in registry.names():
        assert registry.build(name).name == name


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match='did you mean "own-recency"'):
        registry.build("own-recencey")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no saved model in"):
        registry.load_model(tmp_path)
    write(tmp_path, "model.safetensors", b"not a model")
    with pytest.raises(InputError, match="no saved model in"):
        registry.load_model(tmp_path)
