"""Check that every internal link of the built site leads somewhere, and that no page is missing.

    python scripts/check_links.py build/site

Every link and image must exist in the site, with its anchor; every Markdown file of docs must have
a page that the navigation reaches from the first page; no page may load anything from the network.
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements whose address is fetched when the page is opened, unlike that of a link.
LOADED = {"img", "script", "link", "source", "iframe"}
# Addresses that a browser does not fetch.
NOT_FETCHED = {"canonical", "next", "prev", "alternate"}


class Page(HTMLParser):
    """Collect the links, anchors and loaded resources of an HTML page."""

    def __init__(self, path: Path) -> None:
        """Read and parse a file."""
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record what an element refers to and how it can be referred to."""
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        for name in ("href", "src"):
            if name in attributes:
                self.links.append(attributes[name])
                if tag in LOADED and attributes.get("rel", "") not in NOT_FETCHED:
                    self.loaded.append(attributes[name])


def check_site(site: Path, docs: Path) -> Iterator[str]:
    """Yield one line per broken link, missing page or resource from the network."""
    # The page for wrong addresses has absolute links and is no part of the documentation.
    pages = {
        path.resolve(): Page(path)
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }
    linked: set[Path] = set()
    for page in pages.values():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = page.path.resolve()
            if parts.path:
                target = (page.path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{page.path}: broken link to {link}"
            elif target in pages:
                if target != page.path.resolve():
                    linked.add(target)
                anchor = unquote(parts.fragment)
                if anchor and anchor not in pages[target].anchors:
                    yield f"{page.path}: no anchor {link}"
        for address in page.loaded:
            if urlsplit(address).netloc:
                yield f"{page.path}: loads {address} from the network"
    for source in sorted(docs.rglob("*.md")):
        target = (site / source.relative_to(docs).with_suffix(".html")).resolve()
        if target not in pages:
            yield f"{source}: has no page in the site"
        elif target not in linked:
            yield f"{source}: no page links to it; add it to zensical.toml"


def main() -> int:
    """Print every problem of the site named on the command line."""
    site = Path(sys.argv[1])
    problems = sorted(set(check_site(site, Path("docs"))))
    print("\n".join([*problems, f"links: {len(problems)} problems"]))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
