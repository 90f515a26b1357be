"""An HTML page with tables and figures, for the screen and for paper.

The page is a single file that loads nothing else: style and figures are embedded, so that it can
be sent, archived and opened anywhere.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tclgraph.events.writers import replacing
from tclgraph.reports.table import Table, html_text, to_html


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that has been drawn."""

    path: Path
    """Path without a suffix; the .svg file must exist."""
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with its paragraphs, tables and figures, in this order."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    """Plain text, with `code` in backticks."""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


def write_report(path: Path, *, title: str, subtitle: str, sections: Sequence[Section]) -> None:
    """Write the page, complete or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(_page(title, subtitle, sections), encoding="utf-8")


def _page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    body = "".join(_section(number, section) for number, section in enumerate(sections, start=1))
    # The empty icon keeps browsers from requesting one from the server.
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{html_text(title)}</h1>
<p>{html_text(subtitle)}</p>
</header>
{_contents(sections)}
<main>
{body}</main>
</body>
</html>
"""


def _contents(sections: Sequence[Section]) -> str:
    items = "".join(
        f'<li><a href="#section-{number}">{html_text(section.heading)}</a></li>\n'
        for number, section in enumerate(sections, start=1)
    )
    return f'<nav aria-label="Contents">\n<ol>\n{items}</ol>\n</nav>'


def _section(number: int, section: Section) -> str:
    parts = [
        f"<h2>{html_text(section.heading)}</h2>",
        *(f"<p>{html_text(paragraph)}</p>" for paragraph in section.paragraphs),
        *map(_table, section.tables),
        *map(_figure, section.figures),
    ]
    return f'<section id="section-{number}">\n' + "\n".join(parts) + "\n</section>\n"


def _table(table: Table) -> str:
    # A scrolling element must be reachable by keyboard, and a reachable element needs a name.
    return f"""<div class="wide" tabindex="0" role="group" aria-label="{_spoken(table.title)}" \
style="--columns: {len(table.columns)}">
{to_html(table)}
</div>"""


def _figure(figure: Figure) -> str:
    svg = b64encode(figure.path.with_suffix(".svg").read_bytes()).decode()
    name = _spoken(figure.caption)
    return f"""<figure>
<div class="wide" tabindex="0" role="group" aria-label="{name}">
<img src="data:image/svg+xml;base64,{svg}" alt="{name}">
</div>
<figcaption>{html_text(figure.caption)}</figcaption>
</figure>"""


def _spoken(text: str) -> str:
    """Return a text as a screen reader reads it."""
    return escape(text.replace("`", ""))


_STYLE = """
:root {
  --ink: #1c2126; --quiet: #555e68; --line: #c9d0d7; --link: #0b5394; --shade: #f5f6f8;
}
* { box-sizing: border-box; }
html { color-scheme: light; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 68rem; padding: 3rem 1.25rem 5rem; background: #fff; color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word;
}
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.01em; }
h2 { margin: 0 0 0.8rem; font-size: 1.3rem; line-height: 1.3; }
p, figcaption { max-width: 44rem; }
p { margin: 0 0 0.9rem; }
header p { margin: 0.5rem 0 0; color: var(--quiet); font-size: 1.05rem; }
a { color: var(--link); text-underline-offset: 0.15em; text-decoration-thickness: 0.05em; }
code {
  display: inline-block; max-width: 100%; padding: 0 0.25em; border-radius: 3px;
  background: var(--shade);
  font: 0.88em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
nav { margin: 1.75rem 0 0; padding: 0.9rem 0; border: solid var(--line); border-width: 1px 0; }
nav ol { margin: 0; padding-left: 1.5rem; columns: 2 18rem; column-gap: 3rem; font-size: 0.95rem; }
nav li { break-inside: avoid; padding: 0.1rem 0; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
section { padding-top: 2.75rem; }
/* A shadow at the right edge shows that a wide table continues; it vanishes at the end. */
.wide {
  overflow-x: auto;
  background:
    linear-gradient(to left, #fff 1.5rem, #fff0) right / 2.5rem 100% no-repeat local,
    linear-gradient(to left, #1c212624, #1c212600) right / 0.9rem 100% no-repeat;
}
.wide:focus-visible { outline: 2px solid var(--link); outline-offset: 3px; }
section > .wide, figure { margin: 1.6rem 0 2.2rem; }
/* Separate borders: a collapsed border does not move with a sticky cell. */
table { border-collapse: separate; border-spacing: 0; font-size: 0.875rem; line-height: 1.35; }
caption, .note, figcaption { color: var(--quiet); font-size: 0.875rem; line-height: 1.5; }
/* These stay visible while a table wider than the screen scrolls. */
caption, .note, th:first-child { position: sticky; left: 0; }
caption {
  max-width: min(44rem, 100vw - 2.5rem); padding-bottom: 0.55rem; color: var(--ink);
  font-weight: 600; text-align: left;
}
.note { margin: 0.55rem 0 0; }
th, td {
  padding: 0.26rem 0.8rem; text-align: right; white-space: nowrap;
  font-weight: 400; font-variant-numeric: tabular-nums;
}
/* Names and headings may break into lines to keep a table on the page; figures may not. */
th { white-space: normal; }
th:first-child { padding-left: 0.4rem; background: #fff; text-align: left; }
thead th {
  border: solid var(--ink); border-width: 1.5px 0 1px; font-weight: 600; vertical-align: bottom;
}
tbody tr:last-child > * { border-bottom: 1px solid var(--line); }
tbody:last-child tr:last-child > * { border-bottom: 1.5px solid var(--ink); }
td u, th u { text-underline-offset: 0.2em; text-decoration-thickness: 1px; }
img { display: block; width: 100%; min-width: 36rem; height: auto; }
figcaption { margin-top: 0.6rem; }
@media print {
  @page { size: A4; margin: 17mm 16mm; }
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; line-height: 1.45; }
  h2 { break-after: avoid; }
  p { orphans: 3; widows: 3; }
  a { color: inherit; text-decoration: none; }
  nav { margin-top: 5mm; padding: 2mm 0; }
  section { padding-top: 7mm; }
  section > .wide, figure { margin: 4mm 0 6mm; break-inside: avoid; }
  .wide { overflow: visible; background: none; }
  caption, .note, th:first-child { position: static; }
  caption { max-width: none; }
  /* Paper does not scroll, so the text shrinks with the number of columns. */
  table { max-width: 100%; font-size: min(8.5pt, 75pt / var(--columns)); }
  th, td { padding: 0.22em 0.5em; white-space: normal; }
  tr { break-inside: avoid; }
  caption, .note, figcaption { font-size: 8.5pt; }
  img { min-width: 0; }
}
"""
