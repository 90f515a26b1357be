"""The table of data sets (Table 1)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.statistics import describe
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.published import DATA_SETS, DataSetFigures
from tclgraph.studies.study import OpenLog

_EXPLANATIONS = {
    "collegemsg": "The raw file is split 60/20/20 by rows; then validation and test rows are "
    "dropped whose sender never sends, or whose receiver never receives, in the training rows. "
    "That gives every figure of the paper's table. Repetition density is one minus the number of "
    "distinct pairs divided by the number of rows, which differs from the definition in the "
    "paper's text. If the times of the file are rounded to minutes, the last digit of the days "
    "differs.",
    "wikipedia": "The paper's figures cannot be derived from the public file, neither with the "
    "filter that explains CollegeMsg (seen only) nor by cutting the file in time or by degree. The "
    "complete public file is used here.",
    "lastfm": "The public file has 980 sources; the paper prints 1,000.",
    "reddit": "The paper prints 3,882 days, while its text and the public file say one month. Its "
    "repetition density is not that of the public file.",
}


def with_and_without_filter(logs: Sequence[OpenLog]) -> list[OpenLog]:
    """Add to each data set of the paper the same one with `seen_only` switched."""
    shown = []
    for log in logs:
        shown.append(log)
        if log.spec.log in DATA_SETS:
            with suppress(InputError):  # the filter may leave a part without events
                shown.append(OpenLog.open(replace(log.spec, seen_only=not log.spec.seen_only)))
    return shown


def data_sets_table(logs: Sequence[OpenLog]) -> Table:
    """Return Table 1: measured figures, with the paper's in brackets."""
    rows = []
    for log in logs:
        cells = _figures(_measured(log.split))
        if (printed := DATA_SETS.get(log.spec.name)) is not None:
            pairs = zip(cells, _figures(printed), strict=True)
            cells = [f"{measured} ({figure})" for measured, figure in pairs]
        rows.append((Cell(log.spec.name), *map(Cell, cells), Cell(str(log.split))))
    explained = dict.fromkeys(log.spec.name for log in logs if log.spec.name in _EXPLANATIONS)
    sentences = [f"{name}: {_EXPLANATIONS[name]}" for name in explained]
    if sentences:
        sentences.insert(0, "If a data set has two rows, the studies use the first.")
    return Table(
        name="datasets",
        title="Data sets, measured (in brackets: as printed in the paper)",
        columns=(
            "data set",
            "sources",
            "targets",
            "interactions",
            "repetition, %",
            "days",
            "split",
        ),
        rows=tuple(rows),
        note=" ".join(sentences),
    )


def _measured(split: Split) -> DataSetFigures:
    description = describe(split)
    return DataSetFigures(
        sources=description.sources,
        targets=description.targets,
        interactions=description.interactions,
        repetition=description.repetition_density,
        days=description.days,
    )


def _figures(data_set: DataSetFigures) -> list[str]:
    """Format the figures in the order of the columns."""
    return [
        f"{data_set.sources:,}",
        f"{data_set.targets:,}",
        f"{data_set.interactions:,}",
        f"{data_set.repetition:.2f}",
        f"{data_set.days:,.2f}",
    ]
