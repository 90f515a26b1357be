"""Pages as a reader meets them: in a real browser, which may ask for nothing else."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

WIDE, NARROW = 1280, 390
WITHOUT = bool(os.environ.get("TCLGRAPH_WITHOUT_BROWSER"))
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def a_browser() -> Iterator[Browser]:
    if WITHOUT:
        pytest.skip("TCLGRAPH_WITHOUT_BROWSER is set")
    found = [*filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))]
    if not found:
        pytest.fail(
            "no browser was found: install chromium (on Debian: apt-get install chromium), "
            "or set TCLGRAPH_WITHOUT_BROWSER=1 to leave these tests out"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found[0], args=_FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, path: Path) -> Iterator[Page]:
    """A page on a wide screen. It must ask for nothing and complain of nothing."""
    page = browser.new_page(viewport={"width": WIDE, "height": 900})
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    yield page
    page.close()
    asked = [url for url in requests if not url.startswith("data:")]
    assert asked == [path.as_uri()]
    assert complaints == []


def check_report(page: Page, folder: Path) -> None:
    """It shows every table and figure of its folder, and none sticks out of the screen."""
    titles = [path.read_text().split("**")[1] for path in (folder / "tables").glob("*.md")]
    assert sorted(page.locator("caption").all_inner_texts()) == sorted(titles)
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every(one => one.rows.length > 1)"
    )
    figures = list((folder / "figures").glob("*.svg"))
    assert page.locator("figure img").count() == len(figures)
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
