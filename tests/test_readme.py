"""The figures that README and docs show are those of results/."""

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tclgraph.studies.published import published_overall

ROOT = Path(__file__).parent.parent
DIGITS = {"MR": 2, "MRR": 4, "Hit@10": 2}
NO_FIGURE = "–"
SHARED_NEGATIVES = {"negative_pool": 256}


def read_result(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text())
    return content


def as_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def reports(
    log: str, kind: str, model: str, settings: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the test report of every seed of a model with these settings."""
    folder = ROOT / "results" / "reproduce" / log / "jobs" / log
    jobs = [json.loads(path.read_text()) for path in folder.glob(f"{model}-*.json")]
    wanted = (model, kind, settings or {})
    return [
        job["report"]
        for job in jobs
        if (job["model"], job["kind"], job["settings"]) == wanted and "noise" not in job
    ]


def heuristic_reports(log: str, kind: str) -> list[dict[str, Any]]:
    """Return the test report of every heuristic; unlike other models, they learn nothing."""
    folder = ROOT / "results" / "reproduce" / log / "jobs" / log
    jobs = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return [job["report"] for job in jobs if job["learning"] is None and job["kind"] == kind]


def over_seeds(seeds: list[dict[str, Any]], group: str = "metrics") -> dict[str, str]:
    """Return mean ± deviation of each metric."""
    cells = {}
    for metric, digits in DIGITS.items():
        values = [report[group][metric] for report in seeds]
        mean, deviation = statistics.fmean(values), statistics.stdev(values)
        cells[metric] = f"{mean:.{digits}f} ± {deviation:.{digits}f}"
    return cells


def best_heuristics(log: str, kind: str, group: str = "metrics") -> dict[str, str]:
    """Return the best figure of any heuristic for each metric."""
    cells = {}
    for metric, digits in DIGITS.items():
        best_of = min if metric == "MR" else max
        best = best_of(report[group][metric] for report in heuristic_reports(log, kind))
        cells[metric] = f"{best:.{digits}f}"
    return cells


def as_published(log: str) -> dict[str, str]:
    """Return the paper's figures of TCL."""
    figures = published_overall("tcl", log)
    return {metric: str(figures.get(metric, NO_FIGURE)) for metric in DIGITS}


def readme_rows() -> list[str]:
    """Return TCL and the ranker beside the best heuristic and the published figures."""
    logs = [("collegemsg", "one-mode"), ("wikipedia", "bipartite")]
    shown = ("MR", "Hit@10")
    rows: dict[str, list[str]] = {
        "TCL, as published": [],
        "TCL, measured here": [],
        "TCL, all targets as negatives": [],
        "best heuristic": [],
        "**ranker**": [],
    }
    nothing = dict.fromkeys(DIGITS, NO_FIGURE)
    for log, kind in logs:
        all_negatives = reports(log, kind, "tcl", {"negatives": "all"})
        figures = [
            as_published(log),
            over_seeds(reports(log, kind, "tcl")),
            over_seeds(all_negatives) if all_negatives else nothing,
            best_heuristics(log, kind),
            over_seeds(reports(log, kind, "ranker")),
        ]
        for cells, metrics in zip(rows.values(), figures, strict=True):
            cells += [metrics[metric] for metric in shown]
    return [as_row(name, *cells) for name, cells in rows.items()]


def result_rows() -> list[str]:
    """Return the same with MRR and seeds, on more logs."""

    def trained(title: str, seeds: list[dict[str, Any]]) -> list[str]:
        return [title, str(len(seeds)), *over_seeds(seeds).values()]

    rows = []
    for title, log, kind in (
        ("CollegeMsg, one identity", "collegemsg", "one-mode"),
        ("CollegeMsg, two id spaces", "collegemsg", "bipartite"),
        ("Wikipedia", "wikipedia", "bipartite"),
        ("lastfm_head", "lastfm_head", "bipartite"),
    ):
        models = [
            trained("ranker", reports(log, kind, "ranker")),
            ["best heuristic", NO_FIGURE, *best_heuristics(log, kind).values()],
        ]
        if tcl := reports(log, kind, "tcl"):
            models.append(trained("TCL", tcl))
        if pooled := reports(log, kind, "tcl", SHARED_NEGATIVES):
            models.append(trained("TCL, `negative_pool=256`", pooled))
        if tcl and log != "lastfm_head":
            models.append(["TCL, as published", NO_FIGURE, *as_published(log).values()])
        rows += [as_row(title, *cells) for cells in models]
    return rows


def group_rows() -> list[str]:
    """Return the ranker and the best heuristic for repeats and for new pairs."""
    rows = []
    kinds = {"collegemsg": "one-mode", "wikipedia": "bipartite", "lastfm_head": "bipartite"}
    for log, kind in kinds.items():
        for group in ("repeat", "new"):
            ranker = over_seeds(reports(log, kind, "ranker"), group)
            heuristics = best_heuristics(log, kind, group)
            cells = [f"{ranker[metric]} ({heuristics[metric]})" for metric in DIGITS]
            title = f"{log} (one identity)" if kind == "one-mode" else log
            rows.append(as_row(f"{title}, {group}", *cells))
    return rows


def heuristic_rows() -> list[str]:
    """Return every heuristic on CollegeMsg and Wikipedia."""
    logs = [
        {
            report["model"]: [
                f"{report['metrics'][metric]:.{digits}f}" for metric, digits in DIGITS.items()
            ]
            for report in read_result(f"heuristics/{log}")["heuristics"]
        }
        for log in ("collegemsg", "wikipedia")
    ]
    missing = [NO_FIGURE] * len(DIGITS)
    return [
        as_row(name, *(cell for log in logs for cell in log.get(name, missing))) for name in logs[0]
    ]


def together_rows() -> list[str]:
    """Return every heuristic on CollegeMsg by both rules for simultaneous events."""
    logs = [
        read_result(f"heuristics/{log}")["heuristics"]
        for log in ("collegemsg", "collegemsg-together")
    ]
    return [
        as_row(
            in_order["model"],
            *(
                f"{report['metrics'][metric]:.{digits}f}"
                for metric, digits in DIGITS.items()
                for report in (in_order, together)
            ),
        )
        for in_order, together in zip(*logs, strict=True)
    ]


def tgb_rows() -> list[str]:
    """Return the MRR of TCL and the heuristics under both update rules of TGB."""
    tcl, heuristics = (read_result(f"tgb/wikipedia-{name}") for name in ("tcl", "heuristics"))
    rules = ("every=200", "streaming")
    reports = {
        rule: [tcl["updates"][rule], *heuristics["updates"][rule]["heuristics"]] for rule in rules
    }
    names = ["TCL", *(report["model"] for report in reports[rules[0]][1:])]
    return [
        as_row(name, *(f"{reports[rule][row]['metrics']['MRR']:.4f}" for rule in rules))
        for row, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ("README.md", readme_rows),
        ("docs/ranker.md", result_rows),
        ("docs/ranker.md", group_rows),
        ("docs/protocol.md", heuristic_rows),
        ("docs/protocol.md", together_rows),
        ("docs/tgb.md", tgb_rows),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_table_shows_the_stored_figures(page: str, rows: Callable[[], list[str]]) -> None:
    assert "\n".join(rows()) in (ROOT / page).read_text()


SHOWN = re.compile(r"<!-- results/(reproduce/[\w./-]+)\.md[^>]*-->\n\n((?:\|.*\n)*)")
"""A comment that names a stored table, and the lines of the table after it."""
PAGES_WITH_TABLES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if SHOWN.search(page.read_text()) is not None
]


def table_rows(name: str) -> list[str]:
    """Return the lines of a stored table."""
    text = (ROOT / "results" / f"{name}.md").read_text()
    return [line for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("page", PAGES_WITH_TABLES, ids=lambda page: page.stem)
def test_page_shows_the_reproduced_tables(page: Path) -> None:
    """scripts/show_tables.py puts them there."""
    for name, shown in SHOWN.findall(page.read_text()):
        assert shown.splitlines() == table_rows(name), name


def test_stored_tables_are_shown() -> None:
    """No page has lost its tables."""
    stems = {page.stem for page in PAGES_WITH_TABLES}
    assert stems == {"baselines", "ranker", "reading", "reproduce", "two-id-spaces"}


def test_picture_shows_the_reproduced_figures() -> None:
    """scripts/draw_overview.py draws it."""
    picture = (ROOT / "docs" / "figures" / "collegemsg.svg").read_text()
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table_rows("reproduce/collegemsg/tables/overall-two-id-spaces-collegemsg")
    ]
    column = header.index("Hit@10")
    for name, *_ in (row for row in rows if not row[0].startswith("gain")):
        assert f">{name}<" in picture
    for row in (row for row in rows if not row[0].startswith("gain")):
        assert f">{re.sub('[*]|</?u>', '', row[column]).split(' ±')[0]}<" in picture


def test_share_of_simultaneous_events() -> None:
    text = " ".join((ROOT / "docs" / "protocol.md").read_text().split())
    logs = ("wikipedia", "lastfm_head", "mathoverflow", "collegemsg", "movielens_small")
    share = {
        log: f"{read_result(f'heuristics/{log}-description')['simultaneous']:.2f} %" for log in logs
    }
    assert share["lastfm_head"] == share["mathoverflow"]
    popularity = read_result("heuristics/movielens_small")["heuristics"][0]
    in_order, together = (
        f"{report['metrics']['MR']:.2f}" for report in (popularity, popularity["together"])
    )
    for claim in (
        f"{share['wikipedia']} on Wikipedia, {share['lastfm_head']} on lastfm_head and",
        f"{share['collegemsg']} on the CollegeMsg file",
        f"{share['movielens_small']} on the 100,004 ratings of MovieLens",
        f"popularity has an MR of {in_order} in order and {together} together",
    ):
        assert claim in text


def speed(log: str, variant: str) -> dict[str, Any]:
    """Return the measured speed of training and ranking with two threads."""
    (case,) = [
        case["after"]
        for case in read_result("benchmarks/speed")["parts"]["before-after"]["cases"]
        if (case["task"], case["log"], case["variant"]) == ("train", log, variant)
        and case["threads"] == 2
    ]
    return {
        "trained": f"{case['training']['events_per_second']:,.0f}",
        "ranked": f"{case['ranking']['events_per_second']:,.0f}",
        "memory": f"{case['peak_megabytes']:,} MB",
    }


def test_speed_of_tcl_and_the_ranker() -> None:
    text = " ".join((ROOT / "docs" / "tcl.md").read_text().split())
    tcl, pooled = (speed("collegemsg_bipartite", name) for name in ("tcl", "tcl_negative_pool_256"))
    dense = read_result("benchmarks/speed")["parts"]["before-after"]["padded_dense"]
    times = float(tcl["trained"].replace(",", "")) / dense["events_per_second"]
    for claim in (
        f"training processes {tcl['trained']} events per second",
        f"({pooled['trained']} with `negative_pool=256`)",
        f"in {tcl['memory']}",
        f"{int(times)} times the rate of a padded dense",
        f"ranks {tcl['ranked']} events per second",
    ):
        assert claim in text
    text = " ".join((ROOT / "docs" / "ranker.md").read_text().split())
    ranker, without = (speed("collegemsg", name) for name in ("ranker", "ranker_without_encoder"))
    assert f"trains on {ranker['trained']} events and ranks {ranker['ranked']} per second" in text
    assert f"the encoder it trains on {without['trained']} and ranks {without['ranked']}" in text


def test_time_windows_have_the_stored_figures() -> None:
    text = (ROOT / "docs" / "ranker.md").read_text()
    section = text.split("## How time windows were chosen\n")[1].split("\n## ")[0]
    shown = [line for line in section.splitlines() if line.startswith("|")]
    assert len(shown) > 2
    assert set(shown) <= set(table_rows("benchmarks/windows"))


def test_what_the_encoder_adds() -> None:
    """The first screen of README says that the gain comes from history features."""
    lines = table_rows("reproduce/collegemsg/tables/parts-collegemsg")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    by_name = {row[0]: row for row in rows}
    complete, without = by_name["complete"], by_name["without encoder"]
    text = " ".join((ROOT / "README.md").read_text().split())
    assert (f"validates at MRR {without[3]} without the encoder and {complete[3]} with it") in text
    text = " ".join((ROOT / "docs" / "ranker.md").read_text().split())
    assert (
        f"validation MR of {without[2]} and an MRR of {without[3]}; "
        f"with the encoder, {complete[2]} and {complete[3]}"
    ) in text


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda p: p.stem)
def test_every_result_says_where_it_comes_from(path: Path) -> None:
    result = json.loads(path.read_text())
    assert result["machine"]["cores"] >= 1
    assert result["version"]
    if path.parent.parent.name == "jobs":
        assert {"split", "kind", "update", "seed", "settings", "file"} <= result.keys()
    if path.parent.name == "heuristics":
        assert result["file"]
        for report in result.get("heuristics", [result]):
            assert {"split", "kind"} <= report.keys()
            assert "interactions" in report or {"update", "seed"} <= report.keys()
    if path.parent.name == "tgb":
        assert result["file"]
        assert result["model"] == "heuristics" or result["settings"]["seed"] == 0
        for rule, reports in result["updates"].items():
            of_model = [reports] if "metrics" in reports else []
            for report in [*of_model, *reports["heuristics"]]:
                assert (report["protocol"], report["update"]) == ("tgb", rule)
                assert report["split"] == "70/15/15 of time quantiles"
                assert report["events"] == result["parts"]["test"] == 23_621
