"""Pictures of results. The only place that knows matplotlib."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from tclgraph.evaluation.metrics import LOWER_IS_BETTER

_METRICS = ("MRR", "MR", "Hit@10")
# Text as text and no dates, so that the same result gives the same file.
_SVG: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "tclgraph"}


def draw_learning_curves(result: dict[str, Any], path: Path) -> None:
    """Training loss and validation metrics by epoch, a line per seed, with the best floor.

    Writes `path` with .png and .svg added.
    """
    figure = Figure(figsize=(13, 3.4), layout="constrained")
    axes = figure.subplots(1, 1 + len(_METRICS))
    for run in result["runs"]:
        epochs = [entry["epoch"] for entry in run["curve"]]
        axes[0].plot(epochs, [entry["loss"] for entry in run["curve"]], label=f"seed {run['seed']}")
        for axis, metric in zip(axes[1:], _METRICS, strict=True):
            axis.plot(epochs, [entry["valid"][metric] for entry in run["curve"]])
    for axis, metric in zip(axes[1:], _METRICS, strict=True):
        pick = min if metric in LOWER_IS_BETTER else max
        best = pick(result["floors"]["valid"], key=lambda one: one["metrics"][metric])
        figure_to_beat = best["metrics"][metric]
        axis.axhline(figure_to_beat, color="black", linestyle="--", linewidth=1)
        axis.set_title(f"valid {metric} (dashed: {best['model']}, {figure_to_beat:.4g})", size=9)
    axes[0].set_title("training loss", size=9)
    axes[0].legend(fontsize=7)
    for axis in axes:
        axis.set_xlabel("epoch")
        axis.grid(alpha=0.3)
    figure.suptitle(
        f"TCL, preset {result['preset']}, on {result['data']} ({result['graph']}, "
        f"{result['split']}), streaming",
        size=10,
    )
    with mpl.rc_context(_SVG):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=130)
