"""The figures of the paper: Table 1, Table 2 (mean and deviation of five runs) and Table 3."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

_Figure: TypeAlias = tuple[float, float]

_LOGS = ("collegemsg", "wikipedia", "lastfm", "reddit")
# MR and Hit@10 on each log, as mean and deviation.
_OVERALL: dict[str, tuple[tuple[_Figure, _Figure], ...]] = {
    "graphsage": (
        ((269.35, 6.12), (11.56, 1.27)),
        ((165.39, 3.59), (33.47, 3.81)),
        ((261.67, 2.17), (11.02, 1.04)),
        ((50.49, 1.14), (58.63, 1.54)),
    ),
    "ctdne": (
        ((607.27, 10.65), (1.85, 0.53)),
        ((350.68, 6.80), (11.89, 0.62)),
        ((461.59, 7.49), (1.17, 0.05)),
        ((51.30, 1.37), (58.55, 1.08)),
    ),
    "dyngem": (
        ((337.64, 9.30), (3.47, 0.38)),
        ((216.56, 5.27), (16.79, 0.21)),
        ((457.68, 8.37), (3.67, 0.04)),
        ((52.43, 1.75), (45.37, 0.90)),
    ),
    "dysat": (
        ((354.35, 8.47), (2.69, 0.47)),
        ((146.59, 2.36), (17.64, 0.89)),
        ((292.91, 4.28), (4.63, 0.36)),
        ((55.79, 1.78), (56.15, 1.14)),
    ),
    "jodie": (
        ((286.62, 7.14), (24.09, 0.92)),
        ((125.88, 1.96), (41.27, 1.03)),
        ((289.53, 4.91), (27.97, 1.35)),
        ((56.13, 1.78), (59.11, 1.94)),
    ),
    "deepcoevolve": (
        ((439.63, 11.71), (2.53, 0.21)),
        ((227.74, 6.41), (15.37, 0.26)),
        ((376.23, 5.38), (20.44, 0.68)),
        ((49.70, 1.53), (62.06, 1.02)),
    ),
    "tgat": (
        ((206.79, 6.37), (35.49, 1.15)),
        ((87.03, 2.41), (72.05, 1.37)),
        ((199.24, 2.51), (30.27, 0.92)),
        ((45.11, 2.19), (64.33, 2.66)),
    ),
    "tgn": (
        ((196.69, 4.36), (36.07, 1.39)),
        ((75.47, 2.02), (79.74, 1.67)),
        ((192.36, 3.02), (31.07, 0.85)),
        ((56.34, 2.04), (61.61, 2.73)),
    ),
    "tdig-mpnn": (
        ((160.89, 1.58), (39.37, 1.31)),
        ((69.28, 1.34), (79.82, 0.49)),
        ((180.07, 2.43), (33.29, 1.63)),
        ((46.91, 0.49), (71.46, 0.08)),
    ),
    "tcl": (
        ((137.57, 1.70), (45.53, 0.37)),
        ((54.33, 1.05), (81.17, 0.16)),
        ((149.31, 0.72), (35.32, 0.48)),
        ((33.95, 1.27), (75.95, 0.47)),
    ),
}


class PublishedFigure(NamedTuple):
    """A figure as the paper prints it."""

    mean: float
    deviation: float | None = None
    """Standard deviation over runs; None where the paper prints none."""

    def __str__(self) -> str:
        text = f"{self.mean:.2f}"
        return text if self.deviation is None else f"{text} ± {self.deviation:.2f}"


def published_overall(model: str, log: str) -> dict[str, PublishedFigure]:
    """Return the figures of Table 2 by metric, none if the paper does not have the model or log.

    >>> published_overall("tgn", "wikipedia")["MR"]
    PublishedFigure(mean=75.47, deviation=2.02)
    >>> published_overall("tgn", "mylog")
    {}
    """
    if model not in _OVERALL or log not in _LOGS:
        return {}
    mean_rank, hits = _OVERALL[model][_LOGS.index(log)]
    return {"MR": PublishedFigure(*mean_rank), "Hit@10": PublishedFigure(*hits)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSetFigures:
    """The figures of a row of Table 1."""

    sources: int
    targets: int
    interactions: int
    repetition: float
    """Repetition density in percent."""
    days: float


DATA_SETS: dict[str, DataSetFigures] = {
    "collegemsg": DataSetFigures(
        sources=999, targets=1_352, interactions=48_771, repetition=67.28, days=193.63
    ),
    "wikipedia": DataSetFigures(
        sources=7_619, targets=998, interactions=128_271, repetition=87.78, days=30.00
    ),
    "lastfm": DataSetFigures(
        sources=1_000, targets=1_000, interactions=1_293_103, repetition=88.01, days=1_586.89
    ),
    "reddit": DataSetFigures(
        sources=9_986, targets=984, interactions=672_447, repetition=53.97, days=3_882.00
    ),
}
"""Table 1 by the name of the log."""


class AblationRow(Enum):
    """A row of Table 3; its value is the name of the row."""

    NO_TIME_EMBEDDING = "without time embedding"
    NO_DEPTH_EMBEDDING = "without depth embedding"
    NO_CROSS_ATTENTION = "without cross-attention"
    POINT_PROCESS = "two-stream encoder + TPP"
    FULL = "full"


# MR on each log.
_ABLATION: dict[AblationRow, tuple[float, ...]] = {
    AblationRow.NO_TIME_EMBEDDING: (140.20, 54.49, 157.86, 34.09),
    AblationRow.NO_DEPTH_EMBEDDING: (139.11, 55.85, 151.48, 35.05),
    AblationRow.NO_CROSS_ATTENTION: (146.18, 57.42, 152.31, 35.39),
    AblationRow.POINT_PROCESS: (143.31, 62.78, 153.28, 40.61),
    AblationRow.FULL: (136.13, 52.97, 149.27, 33.67),
}


def published_ablation(row: AblationRow, log: str) -> dict[str, PublishedFigure]:
    """Return the figure of Table 3 by metric, none if the paper does not have the log.

    >>> str(published_ablation(AblationRow.FULL, "wikipedia")["MR"])
    '52.97'
    """
    return {"MR": PublishedFigure(_ABLATION[row][_LOGS.index(log)])} if log in _LOGS else {}
