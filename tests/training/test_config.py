from typing import Any

import pytest

from tclgraph.errors import InputError
from tclgraph.models.tcl.config import TCLConfig
from tclgraph.models.tcl.model import TCL
from tclgraph.training.config import checked


def test_text_becomes_what_the_setting_is() -> None:
    config = checked(
        TCLConfig,
        {"width": "32", "input_dropout": "0.1", "cross_attention": "false", "patience": "none"},
    )
    assert (config.width, config.input_dropout) == (32, 0.1)
    assert (config.cross_attention, config.patience) == (False, None)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"widht": 64}, "unknown setting 'widht'; did you mean \"width\"?"),
        ({"width": "wide"}, "setting width='wide': give a valid integer"),
        ({"width": 0}, "setting width=0: give greater than 0"),
        ({"heads": 3}, "3 heads cannot split a width of 64 evenly"),
        ({"input_dropout": 1.0}, "setting input_dropout=1.0: give less than 1"),
        (
            {"objective": "guess"},
            "setting objective='guess': give 'contrastive' or 'point-process'",
        ),
        ({"preset": "paper", "nearby": True}, "nearby=True needs contrast=full"),
        ({"preset": "paper", "embeddings": False}, "embeddings=False needs contrast=full"),
        ({"objective": "point-process"}, "a full contrast needs objective=contrastive"),
        ({"ema_decay": 1.0}, "setting ema_decay=1.0: give less than 1"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        TCL(**settings)
    assert told in str(caught.value)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match="unknown preset 'papre'; did you mean \"paper\""):
        TCL("papre")


def test_the_paper_preset_is_the_papers_table() -> None:
    config = TCL("paper").config
    assert (config.learning_rate, config.batch_size, config.width) == (5e-4, 512, 64)
    assert (config.heads, config.levels, config.input_dropout) == (16, 5, 0.6)
    assert (config.epochs, config.negatives, config.blocks) == (20, 5, 1)
    assert config.negative_pool is None
    assert (config.contrast, config.ema_decay, config.warm_up) == ("sampled", None, 0)


def test_without_a_preset_it_is_the_default_one() -> None:
    assert TCL().config == TCL("default").config != TCL("paper").config
