import pytest

from tclgraph.errors import InputError
from tclgraph.evaluation.update import Update


@pytest.mark.parametrize("text", ["streaming", "every=200", "every=1", "frozen", "frozen=valid"])
def test_a_parsed_rule_prints_the_same_text(text: str) -> None:
    assert str(Update.parse(text)) == text


def test_frozen_rules_end_with_train_or_valid() -> None:
    assert Update.parse("frozen=train") == Update.parse("frozen")
    assert Update.parse("frozen").meaning == "state ends with train"
    assert Update.parse("frozen=valid").meaning == "state ends with valid"
    assert Update.parse("every=512").meaning == "state refreshed after each block of 512 events"


@pytest.mark.parametrize(
    "text", ["", "stream", "every", "every=0", "every=-3", "every=x", "frozen=1"]
)
def test_unknown_rules_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="unknown update rule"):
        Update.parse(text)
