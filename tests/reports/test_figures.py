"""The content of figure files: sizes, texts, positions of marks."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from tclgraph.reports.figures import Curve, Series, draw_curves, draw_sweep

HEADS = Series(
    name="TCL",
    x=(1, 2, 4, 8),
    mean={"MR": (150.0, 141.0, 138.0, 139.0), "MRR": (0.20, 0.22, 0.23, 0.22)},
    deviation={"MR": (2.0, 1.0, 0.0, 1.5), "MRR": (0.01, 0.0, 0.01, 0.01)},
)
CURVE = Curve(
    name="seed 0", epoch=(1, 2, 3), loss=(1.7, 1.2, 1.0), valid=(0.1, 0.2, 0.15), best_epoch=2
)


def sweep(path: Path, *series: Series) -> str:
    draw_sweep(
        series, metrics=("MR", "MRR"), xlabel="number of heads", title="Heads on toy", path=path
    )
    return path.with_suffix(".svg").read_text()


def curves(
    path: Path, models: int = 5, heuristic: tuple[str, float] | None = ("recency", 0.13)
) -> str:
    seeds = [CURVE, replace(CURVE, name="seed 1", best_epoch=3)]
    draw_curves(
        {f"model-{number}": seeds for number in range(models)},
        metric="MRR",
        heuristic=heuristic,
        title="Learning on toy",
        path=path,
    )
    return path.with_suffix(".svg").read_text()


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def marks(svg: str, color: str) -> list[tuple[float, float]]:
    """Return the positions of a color's markers, in points from the upper left."""
    positions = re.findall(rf'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill: {color}', svg)
    return [(float(x), float(y)) for x, y in positions]


def draw_both(path: Path) -> Iterator[str]:
    yield sweep(path / "sweep", HEADS, replace(HEADS, name="TCL, pooled"))
    yield curves(path / "curves")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draw one figure of each kind for all tests, because drawing is slow."""
    folder = tmp_path_factory.mktemp("plots")
    for _ in draw_both(folder):
        pass
    return folder


@pytest.mark.parametrize("name", ["sweep", "curves"])
def test_a_figure_is_as_wide_as_a_page(name: str, folder: Path) -> None:
    pixels = imread(folder / f"{name}.png")
    height, width = pixels.shape[:2]
    assert width == 7 * 160
    assert 300 < height < width
    assert pixels.min() < 0.1
    assert pixels.mean() > 0.8


@pytest.mark.parametrize("name", ["sweep", "curves"])
def test_no_text_is_smaller_than_eight_points(name: str, folder: Path) -> None:
    svg = (folder / f"{name}.svg").read_text()
    # One unit of the file is one point.
    assert re.search(r'width="504pt" height="[\d.]+pt" viewBox="0 0 504 ', svg)
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)]
    assert len(sizes) == len(texts(svg))
    assert min(sizes) >= 8


def test_equal_data_gives_equal_files(folder: Path, tmp_path: Path) -> None:
    for svg, name in zip(draw_both(tmp_path), ("sweep", "curves"), strict=True):
        assert svg == (folder / f"{name}.svg").read_text()


def test_a_sweep_names_its_series_and_metrics(folder: Path) -> None:
    shown = texts((folder / "sweep.svg").read_text())
    assert {"TCL", "TCL, pooled", "Heads on toy", "MR (lower is better)", "MRR"} <= {*shown}
    assert shown.count("number of heads") == 2


def test_ticks_are_exactly_the_values(folder: Path) -> None:
    shown = texts((folder / "sweep.svg").read_text())
    before_label = shown[: shown.index("number of heads")]
    assert before_label == ["1", "2", "4", "8"]


@pytest.mark.parametrize(
    ("values", "are_even"), [((1, 2, 4, 8), True), ((1, 2, 3, 4), True), ((1, 2, 3, 8), False)]
)
def test_values_that_double_are_evenly_spaced(
    values: tuple[float, ...], are_even: bool, tmp_path: Path
) -> None:
    svg = sweep(tmp_path / "figure", replace(HEADS, x=values))
    positions = [x for x, _ in marks(svg, "#0072b2")][: len(values)]
    steps = np.diff(positions)
    assert len(positions) == len(values)
    assert (np.ptp(steps) < 0.01) == are_even


def test_series_differ_without_color(folder: Path) -> None:
    svg = (folder / "sweep.svg").read_text()
    dashes = {
        color: set(re.findall(rf"stroke-dasharray: ([\d., ]+); [^\"]*stroke: {color}", svg))
        for color in ("#0072b2", "#d55e00")
    }
    assert dashes["#0072b2"] == set()
    assert len(dashes["#d55e00"]) == 1


def test_curves_name_models_seeds_and_heuristic(folder: Path) -> None:
    shown = texts((folder / "curves.svg").read_text())
    assert {f"model-{number}" for number in range(5)} <= {*shown}
    assert [shown.count(f"seed {seed}") for seed in (0, 1)] == [1, 1]
    assert "best heuristic: recency, 0.13" in shown
    assert "valid MRR" in shown


def test_curves_without_a_heuristic(tmp_path: Path) -> None:
    shown = texts(curves(tmp_path / "curves", heuristic=None))
    assert not any("heuristic" in text for text in shown)


def test_only_the_best_epoch_has_a_dot(tmp_path: Path) -> None:
    svg = curves(tmp_path / "curves", models=2, heuristic=None)
    first, second, in_legend = marks(svg, "#0072b2")
    assert first[1] == second[1] < in_legend[1]
    later = marks(svg, "#d55e00")[0]
    # The best epoch of seed 1 is one later, with a lower metric.
    assert later[0] > first[0]
    assert later[1] > first[1]


def test_panels_share_the_axis_of_the_metric(tmp_path: Path) -> None:
    shown = texts(curves(tmp_path / "curves", models=2, heuristic=None))
    ticks = [text for text in shown if text.startswith("0.")]
    assert len(ticks) == len(set(ticks)) > 2


@pytest.mark.parametrize(("models", "columns"), [(1, 1), (5, 4)])
def test_the_lowest_panel_of_every_column_has_an_epoch_axis(
    models: int, columns: int, tmp_path: Path
) -> None:
    svg = curves(tmp_path / "curves", models=models)
    assert len(re.findall(r'id="axes_\d+"', svg)) == models
    shown = texts(svg)
    assert shown.count("epoch") == columns
    assert [shown.count(epoch) for epoch in ("1", "2", "3")] == [columns] * 3
