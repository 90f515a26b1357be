from typing import Any

import typer
from typer.testing import CliRunner

from tclgraph.cli import options
from tclgraph.events.log_spec import LogSpec


def spec_from(*arguments: str) -> LogSpec:
    """Return the `LogSpec` that a command receives for these arguments."""
    specs: list[LogSpec] = []

    @options.with_log_options
    def command(log: str, *, spec_for: options.SpecFor) -> None:
        specs.append(spec_for(log))

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return specs[0]


def test_without_options_a_command_receives_the_defaults() -> None:
    assert spec_from("log.csv") == LogSpec(log="log.csv")


def test_every_field_that_a_user_gives_has_an_option() -> None:
    values: dict[str, Any] = {
        "kind": "one-mode",
        "source": "u",
        "target": "i",
        "time": "t",
        "time_unit": "ms",
        "header": False,
        "split": "60/20/20",
        "split_by": "time",
        "seen_only": True,
    }
    assert {"log", "ahead", "num_events", *values} == set(LogSpec(log="log.csv").to_json())
    spec = LogSpec(log="log.csv", **values)
    assert spec_from("log.csv", *spec.flags()) == spec
