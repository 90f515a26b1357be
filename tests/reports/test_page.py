"""The page in a browser: on a wide screen, on a narrow one, and on paper."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tclgraph.events.catalog import CATALOG, find
from tclgraph.events.log_spec import LogSpec
from tclgraph.reports.figures import Curve, Series, draw_curves, draw_sweep
from tclgraph.reports.page import Figure, Section, write_report
from tclgraph.reports.reproduction import write_reproduction
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.plan import make_plan
from tests.pages import NARROW, WIDE, a_browser, check_report, opened

ROOT = Path(__file__).parents[2]
A4_BETWEEN_MARGINS = 673  # 178 mm in CSS pixels
VOID = {"meta", "link", "img", "br"}


def table(name: str, columns: int) -> Table:
    return Table(
        name=name,
        title=f"{columns} columns with `code` & <signs>",
        columns=("model", *(f"Hit@{number}" for number in range(1, columns))),
        rows=tuple(
            (Cell(model), *[Cell("1137.57 ± 11.70", "best")] * (columns - 1))
            for model in ("popularity", "tdig-mpnn", "tcl, negative_pool=256")
        ),
        groups=(1, 2),
        note="A note that is long enough to take more than one line on the screen of a phone.",
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    sweep, curves = folder / "heads", folder / "curves"
    series = Series(
        name="TCL", x=(1, 2, 4), mean={"MR": (3, 2, 1)}, deviation={"MR": (0.1, 0, 0.2)}
    )
    draw_sweep([series], metrics=("MR",), xlabel="heads", title="Heads", path=sweep)
    curve = Curve(name="seed 0", epoch=(1, 2), loss=(2, 1), valid=(0.1, 0.2), best_epoch=2)
    draw_curves({"tcl": [curve]}, metric="MRR", heuristic=None, title="Learning", path=curves)
    sections = [
        Section(
            heading="What was <run> & why",
            paragraphs=(
                "The command was `tclgraph reproduce --model tcl,tgn --seeds 5 --into results`.",
                "a" * 200,
            ),
        ),
        Section(heading="Tables", tables=(table("small", 4), table("broad", 13))),
        Section(
            heading="Figures",
            figures=(
                Figure(path=sweep, caption='MR by "heads" & `depth`'),
                Figure(path=curves, caption="Learning"),
            ),
        ),
    ]
    path = folder / "out" / "report.html"
    write_report(path, title="TCL & others", subtitle="2 logs · `0.6.0`", sections=sections)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    with opened(browser, report) as page:
        yield page


@pytest.mark.parametrize("log", ["collegemsg", "wikipedia"])
def test_the_report_of_stored_results_shows_every_table_and_figure(
    browser: Browser, log: str, tmp_path: Path
) -> None:
    if find(CATALOG[log]) is None:
        pytest.skip(f"{log} is not on this machine: set TCLGRAPH_DATA to a folder that has it")
    (tmp_path / "jobs").symlink_to(ROOT / "results" / "reproduce" / log / "jobs")
    plan = make_plan(["overall", "ablation", "depth"], [LogSpec(log=log, kind="bipartite")])
    tables = write_reproduction(
        plan, tmp_path, command="tclgraph reproduce", remarks=(), show=lambda done, total: None
    )
    assert f"claims-{plan.logs[0].file_name}" in [table.name for table in tables]
    with opened(browser, tmp_path / "report.html") as page:
        check_report(page, tmp_path)


class Balance(HTMLParser):
    """Checks that every opened tag is closed, the last opened first."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.sources: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                self.sources.append(value or "")
            elif name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_tags_are_balanced_and_nothing_is_fetched(report: Path) -> None:
    text = report.read_text("utf-8")
    reader = Balance()
    reader.feed(text)
    assert reader.open == []
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert [reader.seen.count(tag) for tag in ("title", "table", "img", "h2")] == [1, 2, 2, 3]
    assert not re.search(r"https?://|url\(|@import|<script", text)
    links = [source for source in reader.sources if not source.startswith("data:")]
    assert links == ["#section-1", "#section-2", "#section-3"]
    assert reader.ids == [link[1:] for link in links]


def test_a_report_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for title in ("First", "Second"):
        write_report(path, title=title, subtitle="", sections=[])
    assert "Second" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_special_characters_are_shown_as_given(page: Page) -> None:
    assert page.title() == "TCL & others"
    assert page.locator("h1").inner_text() == "TCL & others"
    assert page.locator("h2").first.inner_text() == "What was <run> & why"
    assert page.locator("caption").first.inner_text() == "4 columns with code & <signs>"
    assert page.locator("caption code").first.inner_text() == "code"
    assert page.locator("img").first.get_attribute("alt") == 'MR by "heads" & depth'
    assert page.locator("p code").nth(1).inner_text().startswith("tclgraph reproduce --model")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_everything_is_visible_and_fits_the_screen(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for selector, count in (("table", 2), ("img", 2), ("figcaption", 2), (".note", 2), ("h2", 3)):
        elements = page.locator(selector)
        assert elements.count() == count
        assert all(element.is_visible() for element in elements.all())
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # A table wider than the screen scrolls in its own frame; its first column stays visible.
    frame = page.locator(".wide").nth(1)
    assert frame.evaluate("element => element.scrollWidth > element.clientWidth")
    frame.evaluate("element => { element.scrollLeft = 500 }")
    for selector in ("caption", "tbody th", ".note"):
        box = frame.locator(selector).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_contents_link_to_the_sections(page: Page) -> None:
    page.get_by_role("link", name="Figures").click()
    top = page.locator("#section-3").bounding_box()
    assert top is not None
    assert page.evaluate("scrollY") > 0
    assert page.locator("#section-3 h2").is_visible()
    assert top["y"] < 900


def test_figures_are_aligned_right_and_names_left(page: Page) -> None:
    align = "element => getComputedStyle(element).textAlign"
    assert page.locator("td").first.evaluate(align) == "right"
    assert page.locator("tbody th").first.evaluate(align) == "left"
    figures = "element => getComputedStyle(element).fontVariantNumeric"
    assert page.locator("td").first.evaluate(figures) == "tabular-nums"


def test_on_paper_nothing_is_cut_off(page: Page) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4_BETWEEN_MARGINS, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for element in page.locator("table, img").all():
        box = element.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= A4_BETWEEN_MARGINS
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 1
    sizes = re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert {(round(float(width)), round(float(height))) for width, height in sizes} == {(595, 842)}
