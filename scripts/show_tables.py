"""Put the stored tables into README and docs, after the comments that name their files.

    .venv/bin/python scripts/show_tables.py

A comment is `<!-- results/reproduce/FOLDER/tables/NAME.md -->`, with or without further words, and
an empty line; the table follows. tests/test_readme.py checks that pages and files agree.
"""

import re
from pathlib import Path

SHOWN = re.compile(r"(<!-- (results/reproduce/[\w./-]+\.md)[^>]*-->\n\n)((?:\|.*\n)*)")


def rows_of(table: Path) -> str:
    """Return the lines of a stored table without its title and its note."""
    lines = table.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith("|"))


def _with_table(match: re.Match[str]) -> str:
    """Return the comment with its table; a new table needs an empty line after it."""
    comment, table, shown = match.groups()
    return comment + rows_of(Path(table)) + ("" if shown else "\n")


def main() -> None:
    """Rewrite the pages whose tables differ from the stored ones."""
    for page in (Path("README.md"), *sorted(Path("docs").rglob("*.md"))):
        text = page.read_text()
        shown = SHOWN.sub(_with_table, text)
        if shown != text:
            page.write_text(shown)
            print(page)


if __name__ == "__main__":
    main()
