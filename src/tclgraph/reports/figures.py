"""Figures of results. No other module imports matplotlib."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any, Self

from tclgraph.errors import InputError
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.events.writers import replacing

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ModuleNotFoundError:
    raise InputError('figures need matplotlib; run: pip install "tclgraph[plots]"') from None

# Text stays text, and there is no date, so that equal results give equal files.
_SVG: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "tclgraph"}

# The width between the margins of an A4 page, so that font sizes are true on paper.
_WIDTH_INCHES = 7.0
_PRINT: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "figure.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}
# The color-blind-safe palette of Okabe and Ito without yellow, which is too faint on white. The
# numbers of colors, dashes and markers have no common divisor, so 280 lines look different.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_PANELS_PER_ROW = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Metrics over the values of a setting."""

    name: str
    x: tuple[float, ...]
    mean: dict[str, tuple[float, ...]]
    """Mean over seeds at each x, by metric."""
    deviation: dict[str, tuple[float, ...]]
    """Sample deviation over seeds at each x, by metric; 0 for a single seed."""

    @classmethod
    def of_seeds(cls, name: str, figures: Mapping[float, Mapping[str, Sequence[float]]]) -> Self:
        """Summarize the figures of all seeds, given by x and metric."""
        metrics = list(next(iter(figures.values()), {}))
        return cls(
            name=name,
            x=tuple(figures),
            mean={
                metric: tuple(statistics.fmean(point[metric]) for point in figures.values())
                for metric in metrics
            },
            deviation={
                metric: tuple(_deviation(point[metric]) for point in figures.values())
                for metric in metrics
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The learning curve of one seed."""

    name: str
    epoch: tuple[int, ...]
    loss: tuple[float, ...]
    """Mean training loss of each epoch."""
    valid: tuple[float, ...]
    """Validation metric after each epoch."""
    best_epoch: int


def draw_sweep(
    series: Sequence[Series], *, metrics: tuple[str, ...], xlabel: str, title: str, path: Path
) -> None:
    """Draw metrics by the value of a setting: a panel per metric, a line per series.

    Bars show the deviation. The files are `path` with .png and .svg added.
    """
    values = sorted({value for line in series for value in line.x})
    with mpl.rc_context(_PRINT):
        figure = Figure(figsize=(_WIDTH_INCHES, 2.7), layout="constrained")
        axes = figure.subplots(1, len(metrics), squeeze=False)[0]
        for axis, metric in zip(axes, metrics, strict=True):
            for line, style in zip(series, _styles(len(series)), strict=True):
                axis.errorbar(
                    line.x,
                    line.mean[metric],
                    yerr=line.deviation[metric],
                    label=line.name,
                    markersize=4.5,
                    linewidth=1.3,
                    elinewidth=0.9,
                    capsize=2.5,
                    **style,
                )
            axis.set_ylabel(_described(metric))
            axis.set_xlabel(xlabel)
            _set_ticks(axis, values)
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
        )
        figure.suptitle(title)
        _save(figure, path, dpi=160)


def draw_curves(
    curves: dict[str, list[Curve]],
    *,
    metric: str,
    heuristic: tuple[str, float] | None,
    title: str,
    path: Path,
) -> None:
    """Draw a validation metric by epoch: a panel per model, a line per seed.

    A dot marks the best epoch. `heuristic` is the name and the metric of the best heuristic, which
    is a dashed line in every panel. The files are `path` with .png and .svg added.
    """
    num_columns = min(_PANELS_PER_ROW, len(curves))
    num_rows = -(-len(curves) // num_columns)
    names = list(dict.fromkeys(curve.name for seeds in curves.values() for curve in seeds))
    styles = dict(zip(names, _styles(len(names)), strict=True))
    handles: dict[str, Any] = {}
    with mpl.rc_context(_PRINT):
        figure = Figure(figsize=(_WIDTH_INCHES, 1.1 + 1.55 * num_rows), layout="constrained")
        grid = figure.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
        panels = grid.flat
        for (model, seeds), axis in zip(curves.items(), panels, strict=False):
            axis.set_title(model)
            for curve in seeds:
                handles[curve.name] = _draw_curve(axis, curve, styles[curve.name])
            if heuristic is not None:
                label = f"best heuristic: {heuristic[0]}, {heuristic[1]:.4g}"
                handles[label] = axis.axhline(
                    heuristic[1], color="black", linestyle="--", linewidth=1
                )
        for axis in grid.flat[len(curves) :]:
            axis.set_visible(False)
        for axis in grid.flat[: len(curves)][-num_columns:]:
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.tick_params(labelbottom=True)
            axis.set_xlabel("epoch")
        figure.supylabel(f"valid {_described(metric)}", size=8.5)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, frameon=False)
        figure.suptitle(title)
        _save(figure, path, dpi=160)


def _draw_curve(axis: Axes, curve: Curve, style: dict[str, Any]) -> Any:
    (line,) = axis.plot(
        curve.epoch,
        curve.valid,
        linewidth=0.9,
        markersize=4,
        markevery=[curve.epoch.index(curve.best_epoch)],
        **style,
    )
    return line


def _deviation(figures: Sequence[float]) -> float:
    return statistics.stdev(figures) if len(figures) > 1 else 0.0


def _styles(count: int) -> list[dict[str, Any]]:
    """Return styles that differ in color and, for black and white, in dash and marker."""
    looks = zip(cycle(_COLORS), cycle(_DASHES), cycle(_MARKERS), strict=False)
    return [
        {"color": color, "linestyle": dash, "marker": marker}
        for color, dash, marker in islice(looks, count)
    ]


def _set_ticks(axis: Axes, values: Sequence[float]) -> None:
    """Put ticks at the values; use a logarithmic axis if each value is twice the previous."""
    if values[0] > 0 and all(after == 2 * before for before, after in pairwise(values)):
        axis.set_xscale("log", base=2)
    axis.set_xticks(values, labels=[f"{value:g}" for value in values])
    axis.minorticks_off()


def _described(metric: str) -> str:
    return f"{metric} (lower is better)" if metric in LOWER_IS_BETTER else metric


def _save(figure: Figure, path: Path, *, dpi: int) -> None:
    with mpl.rc_context(_SVG):
        with replacing(path.with_suffix(".svg")) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})
        with replacing(path.with_suffix(".png")) as temporary:
            figure.savefig(temporary, format="png", dpi=dpi)
