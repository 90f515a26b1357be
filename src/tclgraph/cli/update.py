"""`tclgraph update`: append the later events of a log to a run."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tclgraph.cli import options
from tclgraph.cli.flag_groups import with_flags
from tclgraph.cli.interruption import keyboard_interrupts

if TYPE_CHECKING:
    from tclgraph.events.stream import EventStream
    from tclgraph.models.interface import Model

_EVENTS_PER_PIECE = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Flags that say how the log is read, if otherwise than the log of the run."""

    source: Annotated[
        Optional[str],
        typer.Option(
            help="Name of the source column. Default: as named in training, else guess it."
        ),
    ] = None
    target: Annotated[
        Optional[str],
        typer.Option(
            help="Name of the target column. Default: as named in training, else guess it."
        ),
    ] = None
    time: Annotated[
        Optional[str],
        typer.Option(help="Name of the time column. Default: as named in training, else guess it."),
    ] = None
    time_unit: Annotated[
        Optional[str],
        typer.Option(help="Unit of numeric times: s, ms, us or ns. Default: as in training."),
    ] = None
    header: Annotated[
        Optional[bool],
        typer.Option(
            "--header/--no-header",
            help="Whether a text file has a header line. Default: as in training.",
        ),
    ] = None


@with_flags("reading", ReadingOptions)
def update(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    log: Annotated[str, typer.Argument(help=options.LOG_HELP)],
    as_json: options.Json = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Append the events of a log to a run, except those that the run has already.

    The model is not trained again. It observes the events, whose nodes may be new.
    """
    from tclgraph.cli.runs import load_run, num_trained_events, read_log_spec
    from tclgraph.cli.terminal import print_json, progress, read_log
    from tclgraph.errors import InputError
    from tclgraph.training.run_folder import RunFolder

    spec = read_log_spec(run)
    model = load_run(run)
    if len(model.state.graph) < num_trained_events(run):
        raise InputError(
            f"the training of {run} is not finished; continue it with: "
            f"tclgraph train --run {run} --resume"
        )
    given = {name: value for name, value in asdict(reading).items() if value is not None}
    before = model.state.space
    spec = replace(spec, log=log, kind=before.kind, num_events=None, **given)
    new = _new_events(model, read_log(spec), log, leaves_out_events=spec.seen_only)
    if len(new):
        with progress(f"updating {run}") as show:
            _append(model, new, show)
        with keyboard_interrupts():  # removes what is half-written
            RunFolder(run).remove_partial_files()
            model.save(run)
    after = model.state.space
    counts = {
        "added": len(new),
        "new_sources": after.num_sources - before.num_sources,
        "new_targets": after.num_targets - before.num_targets,
        "events": len(model.state.graph),
    }
    if as_json:
        print_json({"run": str(run), **counts})
        return
    print(
        f"{run}: added {len(new):,} events, {counts['new_sources']:,} new sources and "
        f"{counts['new_targets']:,} new targets; it has {counts['events']:,} events now"
    )


def _new_events(
    model: "Model", events: "EventStream", log: str, *, leaves_out_events: bool
) -> "EventStream":
    """Return the events that the model has not observed, all of which are after those it has."""
    from tclgraph.errors import InputError
    from tclgraph.events.continuation import continuation

    new, late = continuation(model.state.events(), events)
    if len(late) and leaves_out_events:
        print(
            f"note: {log} has {len(late):,} events before the last event of the run that the run "
            "does not have, because it was trained with --seen-only; they stay out",
            file=sys.stderr,
        )
    elif len(late):
        source, target = late.sources.key(late.source[0]), late.targets.key(late.target[0])
        raise InputError(
            f"{log}: the run lacks {len(late):,} of the events before its last one, such as source "
            f"{source!r}, target {target!r}, time {late.time[0]:.15g}; leave them out, or train "
            "again on the complete log"
        )
    return new.compact()


def _append(model: "Model", new: "EventStream", show: Callable[[int, int], None]) -> None:
    """Let a model observe new events and their nodes."""
    past = new[:0]
    if model.state.with_keys(new.sources.keys, new.targets.keys) is not model.state:
        # New nodes need a replay of all events, which takes the longest: progress counts it too.
        past = model.state.events()
        model.forget()
    new = model.admit(new)
    done, total = 0, len(past) + len(new)
    for events in (past, new):
        for start in range(0, len(events), _EVENTS_PER_PIECE):
            model.observe(events[start : start + _EVENTS_PER_PIECE])
            done += len(events[start : start + _EVENTS_PER_PIECE])
            show(done, total)
