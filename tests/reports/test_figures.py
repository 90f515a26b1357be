"""What a reader finds in the files; how they look must be looked at."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from tclgraph.reports.figures import Curve, Series, draw_curves, draw_sweep

HEADS = Series(
    name="preset paper",
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
    """Where a color's markers stand, in points from the upper left."""
    found = re.findall(rf'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill: {color}', svg)
    return [(float(x), float(y)) for x, y in found]


def both(path: Path) -> Iterator[str]:
    yield sweep(path / "sweep", HEADS, replace(HEADS, name="preset fast"))
    yield curves(path / "curves")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds one figure of each kind; drawing takes a while."""
    folder = tmp_path_factory.mktemp("plots")
    for _ in both(folder):
        pass
    return folder


@pytest.mark.parametrize("name", ["sweep", "curves"])
def test_the_picture_is_as_wide_as_a_page(name: str, folder: Path) -> None:
    pixels = imread(folder / f"{name}.png")
    height, width = pixels.shape[:2]
    assert width == 7 * 160
    assert 300 < height < width
    assert pixels.min() < 0.1
    assert pixels.mean() > 0.8


@pytest.mark.parametrize("name", ["sweep", "curves"])
def test_no_letter_is_smaller_than_eight_points(name: str, folder: Path) -> None:
    svg = (folder / f"{name}.svg").read_text()
    # One unit of the file is one point.
    assert re.search(r'width="504pt" height="[\d.]+pt" viewBox="0 0 504 ', svg)
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)]
    assert len(sizes) == len(texts(svg))
    assert min(sizes) >= 8


def test_the_same_figures_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    for svg, name in zip(both(tmp_path), ("sweep", "curves"), strict=True):
        assert svg == (folder / f"{name}.svg").read_text()


def test_a_sweep_names_what_it_shows(folder: Path) -> None:
    found = texts((folder / "sweep.svg").read_text())
    assert {"preset paper", "preset fast", "Heads on toy", "MR (lower is better)", "MRR"} <= {
        *found
    }
    assert found.count("number of heads") == 2


def test_ticks_stand_at_the_values_and_nowhere_else(folder: Path) -> None:
    found = texts((folder / "sweep.svg").read_text())
    before_label = found[: found.index("number of heads")]
    assert before_label == ["1", "2", "4", "8"]


@pytest.mark.parametrize(
    ("values", "are_even"), [((1, 2, 4, 8), True), ((1, 2, 3, 4), True), ((1, 2, 3, 8), False)]
)
def test_values_that_double_are_evenly_spaced(
    values: tuple[float, ...], are_even: bool, tmp_path: Path
) -> None:
    svg = sweep(tmp_path / "figure", replace(HEADS, x=values))
    places = [x for x, _ in marks(svg, "#0072b2")][: len(values)]
    steps = np.diff(places)
    assert len(places) == len(values)
    assert (np.ptp(steps) < 0.01) == are_even


def test_series_differ_without_color(folder: Path) -> None:
    svg = (folder / "sweep.svg").read_text()
    dashes = {
        color: set(re.findall(rf"stroke-dasharray: ([\d., ]+); [^\"]*stroke: {color}", svg))
        for color in ("#0072b2", "#d55e00")
    }
    assert dashes["#0072b2"] == set()
    assert len(dashes["#d55e00"]) == 1


def test_curves_name_models_seeds_and_floor(folder: Path) -> None:
    found = texts((folder / "curves.svg").read_text())
    assert {f"model-{number}" for number in range(5)} <= {*found}
    assert [found.count(f"seed {seed}") for seed in (0, 1)] == [1, 1]
    assert "best heuristic: recency, 0.13" in found
    assert "valid MRR" in found


def test_curves_without_a_floor(tmp_path: Path) -> None:
    assert not any("heuristic" in one for one in texts(curves(tmp_path / "curves", heuristic=None)))


def test_only_the_best_epoch_has_a_dot(tmp_path: Path) -> None:
    svg = curves(tmp_path / "curves", models=2, heuristic=None)
    first, second, in_legend = marks(svg, "#0072b2")
    assert first[1] == second[1] < in_legend[1]
    later = marks(svg, "#d55e00")[0]
    # Seed 1 was best one epoch later, and lower.
    assert later[0] > first[0]
    assert later[1] > first[1]


def test_panels_share_the_axis_of_figures(tmp_path: Path) -> None:
    found = texts(curves(tmp_path / "curves", models=2, heuristic=None))
    ticks = [one for one in found if one.startswith("0.")]
    assert len(ticks) == len(set(ticks)) > 2


@pytest.mark.parametrize(("models", "columns"), [(1, 1), (5, 4)])
def test_the_lowest_panel_of_every_column_counts_epochs(
    models: int, columns: int, tmp_path: Path
) -> None:
    svg = curves(tmp_path / "curves", models=models)
    assert len(re.findall(r'id="axes_\d+"', svg)) == models
    found = texts(svg)
    assert found.count("epoch") == columns
    assert [found.count(epoch) for epoch in ("1", "2", "3")] == [columns] * 3
