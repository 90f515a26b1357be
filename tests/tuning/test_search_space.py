"""Tests of search spaces with settings in groups."""

from dataclasses import dataclass

from tclgraph.tuning.search_space import free_settings, untuned_settings, with_untuned_values


@dataclass
class EncoderConfig:
    levels: int = 5


@dataclass
class Config:
    encoder: EncoderConfig | None
    learning_rate: float = 1e-3


SPACE = {"learning_rate": (1e-3, 2e-3), "encoder.levels": (3, 4)}


def test_a_grouped_setting_is_read_from_its_group() -> None:
    assert untuned_settings(SPACE, Config(EncoderConfig(levels=7))) == {
        "learning_rate": 1e-3,
        "encoder.levels": 7,
    }


def test_a_fixed_setting_is_not_searched() -> None:
    config = Config(EncoderConfig())
    assert list(free_settings(SPACE, config, {"encoder.levels": "4"})) == ["learning_rate"]
    assert list(free_settings(SPACE, config, {"learning_rate": "1"})) == ["encoder.levels"]
    assert free_settings(SPACE, config, ()) == SPACE


def test_the_settings_of_an_absent_group_are_not_searched() -> None:
    assert list(free_settings(SPACE, Config(None), {"encoder": "none"})) == ["learning_rate"]


def test_an_untuned_value_is_added_only_if_it_is_missing() -> None:
    untuned = {"learning_rate": 2e-3, "encoder.levels": 5}
    assert with_untuned_values(SPACE, untuned) == {
        "learning_rate": (1e-3, 2e-3),
        "encoder.levels": (5, 3, 4),
    }
