"""Settings: parsing of text, grouped names, and what is refused."""

from typing import Any

import pytest

from tclgraph.errors import InputError
from tclgraph.models.learned import LearnedModel
from tclgraph.models.ranker.config import RankerConfig
from tclgraph.models.ranker.model import Ranker
from tclgraph.models.tcl.config import TCLConfig
from tclgraph.models.tcl.model import TCL
from tclgraph.training.config import parse_settings


def test_text_is_converted_to_the_type_of_the_setting() -> None:
    config = parse_settings(
        TCLConfig,
        {"width": "32", "input_dropout": "0.1", "cross_attention": "false", "patience": "none"},
    )
    assert (config.width, config.input_dropout) == (32, 0.1)
    assert (config.cross_attention, config.patience) == (False, None)
    assert parse_settings(TCLConfig, {"negatives": "all"}).negatives == "all"
    assert parse_settings(TCLConfig, {"negatives": "7"}).negatives == 7


def test_settings_of_a_part_have_dotted_names() -> None:
    config = parse_settings(RankerConfig, {"encoder.levels": "4", "epochs": 2})
    assert config.encoder is not None
    assert (config.encoder.levels, config.encoder.width, config.epochs) == (4, 64, 2)
    assert config.encoder.interval_scale == "log"
    assert parse_settings(RankerConfig, {"encoder": "none"}).encoder is None
    assert parse_settings(RankerConfig, {"encoder": None}).encoder is None


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (TCL, {"widht": 64}, "unknown setting 'widht'; did you mean \"width\"?"),
        (TCL, {"width": "wide"}, "setting width='wide': must be a valid integer"),
        (TCL, {"width": 0}, "setting width=0: must be greater than 0"),
        (TCL, {"heads": 3}, "3 heads cannot split a width of 64 evenly"),
        (TCL, {"input_dropout": 1.0}, "setting input_dropout=1.0: must be less than 1"),
        (
            TCL,
            {"objective": "guess"},
            "setting objective='guess': must be 'contrastive' or 'point-process'",
        ),
        (TCL, {"ema_decay": 1.0}, "setting ema_decay=1.0: must be less than 1"),
        (
            TCL,
            {"objective": "point-process", "negatives": "all"},
            "negatives=all does not work with objective=point-process",
        ),
        (TCL, {"encoder.levels": 3}, "unknown setting 'encoder.levels'"),
        (
            Ranker,
            {"encoder.levles": 3},
            "unknown setting 'encoder.levles'; did you mean \"encoder.levels\"?",
        ),
        (
            Ranker,
            {"encoder.levels": "deep"},
            "setting encoder.levels='deep': must be a valid integer",
        ),
        (Ranker, {"encoder.heads": 3}, "3 heads cannot split a width of 64 evenly"),
        (Ranker, {"negatives": 50}, "unknown setting 'negatives'"),
    ],
)
def test_what_does_not_fit_is_refused(
    model: type[LearnedModel], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        model(**settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (TCL, {"rank_by": "intensity"}, "rank_by has no effect with objective=contrastive"),
        (TCL, {"survival_weight": 1.0}, "survival_weight has no effect with objective"),
        (
            TCL,
            {"negatives": "all", "negative_pool": 9},
            "negative_pool has no effect with negatives=all",
        ),
        (
            TCL,
            {"time_embedding": False, "interval_scale": "log"},
            "interval_scale has no effect without time_embedding",
        ),
        (Ranker, {"repeat_head": False, "gate": True}, "gate has no effect without repeat_head"),
        (Ranker, {"gate": False, "repeat_bias": 1.0}, "repeat_bias has no effect without gate"),
        (
            Ranker,
            {"encoder": None, "encoder.levels": 3},
            "encoder.levels has no effect with encoder=none",
        ),
        (
            Ranker,
            {"encoder.time_embedding": False, "encoder.interval_scale": "linear"},
            "encoder.interval_scale has no effect without time_embedding",
        ),
    ],
)
def test_a_setting_without_effect_is_refused(
    model: type[LearnedModel], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        model(**settings)
    assert str(caught.value).startswith(f"setting {message}")


def test_the_defaults_of_tcl_are_the_papers_table() -> None:
    config = TCL().config
    assert (config.learning_rate, config.batch_size, config.width) == (5e-4, 512, 64)
    assert (config.heads, config.levels, config.input_dropout) == (16, 5, 0.6)
    assert (config.epochs, config.negatives, config.blocks) == (20, 5, 1)
    assert config.negative_pool is None
    assert (config.objective, config.ema_decay, config.warmup_steps) == ("contrastive", None, 0)


def test_the_shipped_ranker_has_an_encoder() -> None:
    config = Ranker().config
    assert config.encoder is not None
    assert config.encoder.centered
