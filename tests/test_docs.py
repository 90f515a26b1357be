"""README and docs: links lead somewhere, and the commands of the tutorial work."""

import re
import shlex
from pathlib import Path

import pytest

from tests.streams import Cli

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    """Return Markdown without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_exist(page: Path) -> None:
    for link in LINK.findall(without_code(page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "zensical.toml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert f'"{page.relative_to(ROOT / "docs").as_posix()}"' in navigation


def test_architecture_names_existing_files() -> None:
    """The table of files to edit is only of use while the files are there."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.split("## Where to change what")[1].split("\n## ")[0]
    paths = re.findall(r"`([\w/]+(?:\.py|/))`", table)
    assert len(paths) >= 12
    for path in paths:
        folder = ROOT if path.startswith("tests/") else ROOT / "src" / "tclgraph"
        assert (folder / path).exists(), path


def test_commands_of_the_tutorial(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    python, *_ = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    # The first example writes the log that the commands read.
    lines = [line[4:] for line in python.splitlines() if line.startswith((">>> ", "... "))]
    exec("\n".join(lines), {})
    blocks = re.findall(r"^```bash\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    commands = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    verbs = {shlex.split(command)[1] for command in commands}
    assert {"describe", "train", "evaluate", "recommend", "similar", "embed"} <= verbs
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "tclgraph"
        code, output, errors = cli(*words)
        assert code == 0, (command, errors)
        assert output or "--out" in words, command
    assert (tmp_path / "vectors.parquet").exists()
