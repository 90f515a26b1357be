"""Open HTML pages in a real browser and check that they need no other files."""

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
    names = ("chromium", "chromium-browser", "google-chrome")
    browsers = list(filter(None, map(shutil.which, names)))
    if not browsers:
        pytest.fail(
            "there is no browser: install chromium (on Debian: apt-get install chromium), "
            "or set TCLGRAPH_WITHOUT_BROWSER=1 to skip these tests"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers[0], args=_FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, path: Path) -> Iterator[Page]:
    """Open a page on a wide screen; it must make no requests and log no messages."""
    page = browser.new_page(viewport={"width": WIDE, "height": 900})
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    yield page
    page.close()
    external = [url for url in requests if not url.startswith("data:")]
    assert external == [path.as_uri()]
    assert messages == []


def check_report(page: Page, folder: Path) -> None:
    """Check that a report shows all tables and figures of its folder and fits the screen."""
    titles = [path.read_text().split("**")[1] for path in (folder / "tables").glob("*.md")]
    assert sorted(page.locator("caption").all_inner_texts()) == sorted(titles)
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every(table => table.rows.length > 1)"
    )
    figures = list((folder / "figures").glob("*.svg"))
    assert page.locator("figure img").count() == len(figures)
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
