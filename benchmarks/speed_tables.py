"""Tables of the speed benchmark, with the bar of each figure and whether it is met."""

from collections.abc import Iterable
from typing import Any

Figures = dict[str, Any]

TITLES = {
    "ranker_without_encoder": "ranker without encoder",
    "ranker": "ranker",
    "tcl": "TCL",
    "tcl_negative_pool_256": "TCL, negative_pool=256",
    "tgn": "TGN",
    "tgat": "TGAT",
}
MIN_TRAINING_GAIN = {"ranker_without_encoder": 3.0, "ranker": 2.0, "tcl": 1.6}
MIN_TRAINING_GAIN_ON = {
    ("ranker_without_encoder", "movielens_small"): 5.0,
    ("ranker_without_encoder", "mathoverflow"): 5.0,
}
MIN_RANKING_GAIN = {"ranker_without_encoder": 4.0, "tgn": 5.0, "tgat": 5.0}
MAX_MEGABYTES = 1_500
MIN_GAIN_OVER_DENSE = 70.0
MIN_SHARE_OF_PYG = 0.6
LOG_OF_PYG_BAR = "collegemsg"
MAX_GROWTH = 1.25
NO_FIGURE = "–"
SIDES = ("before", "after")
TASKS = ("training", "ranking")
PLACES = ("early", "middle", "late")


HEADING_NOTE = (
    "Made by `scripts/bench speed`. *Before* is the package at the commit that speed.json names, "
    "*after* the measured version. Rates are events per second. The two versions take turns, "
    "twice each, and the tables show the faster turn of each. *Bar* is the required value: a "
    "minimum, or a maximum where it says ≤; *met* says whether the measured version reaches it. "
    "Every log is split 60/20/20 by rows, and all but movielens_small and mathoverflow with "
    "`seen_only`. collegemsg is read with one identity, collegemsg_bipartite with two id spaces."
)
TRAINING_NOTE = (
    "A rate covers `fit`: preparation and all gradient steps, with features, without validation. "
    "Where *windows* says 36 of 141, each of the five epochs trains on the same 36 evenly spaced "
    "windows, and the time of their steps is scaled to 141. Memory is the peak of the process. "
    "For the measured version it includes the loss of every other window too, so that whatever is"
    " kept for a window counts."
)
RANKING_NOTE = (
    "The first test events are ranked with the streaming update rule. The first block is not "
    "timed. The rate is the median of three runs (TGN and TGAT: one run). *Targets* are those "
    "that occur up to the last ranked event. *Replay* is the time before the timed part, in which"
    " the model follows all earlier events."
)
PYG_NOTE = (
    "PyG's TGN trains with one negative per event in batches of 200, and its rate is that of one "
    "epoch. It ranks a batch of 200 with the state before the batch; the other models follow "
    "every event. The rates of the other models are those of the tables above, after the change."
)
FLAT_NOTE = (
    "Microseconds per event on one thread, medians over windows or blocks, in synthetic streams "
    "of two million events. Early begins at event 50,000, or where sources have 20 events on "
    "average if that is later; middle is half-way. A shape is a synthetic stream with the numbers"
    " of sources and targets of that data set. The bar holds for late / early. Early, most "
    "histories are still shorter than their bounds: the last columns have the mean number of "
    "different targets of an event's source so far. Active sources count more in this mean. "
    "*Observing* includes the updates that are deferred to the next query, but not the query "
    "itself."
)


def markdown(parts: Figures) -> str:
    """Return all tables of the parts that were measured."""
    sections = ["# Speed", HEADING_NOTE]
    if part := parts.get("before-after"):
        sections += ["## Training, five epochs", _origin(part), TRAINING_NOTE, _training(part)]
        sections += [_dense(part), "## Ranking all targets", RANKING_NOTE, _ranking(part)]
    if part := parts.get("pyg"):
        cases = parts.get("before-after", {}).get("cases", [])
        sections += ["## Beside TGN of PyTorch Geometric", _origin(part), PYG_NOTE]
        sections += [_beside_pyg(part, cases)]
    if part := parts.get("flat"):
        sections += ["## Cost per event, early and late", _origin(part), FLAT_NOTE, _flat(part)]
    return "\n\n".join(section for section in sections if section) + "\n"


def _training(part: Figures) -> str:
    rows = []
    for case in part["cases"]:
        if case["task"] != "train":
            continue
        log, variant = case["log"], case["variant"]
        bar = MIN_TRAINING_GAIN_ON.get((variant, log), MIN_TRAINING_GAIN.get(variant))
        before, after = _rates(case, "training")
        memory = case["after"].get("peak_megabytes")
        windows = case["after"].get("training", {})
        rows.append(
            [
                log,
                TITLES[variant],
                str(case["threads"]),
                f"{windows.get('windows', 0):,} of {windows.get('of_windows', 0):,}",
                _number(before),
                _number(after),
                *_gain(after, before, bar),
                _number(case["before"].get("peak_megabytes")),
                _number(memory),
                f"≤ {MAX_MEGABYTES:,}",
                _verdict(memory is not None and memory <= MAX_MEGABYTES),
            ]
        )
    header = ["log", "model", "threads", "windows", "before", "after", "gain", "bar", "met"]
    return _table([*header, "MB before", "MB after", "bar", "met"], rows)


def _dense(part: Figures) -> str:
    dense = part["padded_dense"]
    rates = [
        _rates(case, "training")[1]
        for case in part["cases"]
        if (case["log"], case["variant"]) == ("collegemsg_bipartite", "tcl")
    ]
    if not dense or not rates:
        return ""
    dense_rate = dense.get("events_per_second")
    gain, bar, verdict = _gain(rates[0], dense_rate, MIN_GAIN_OVER_DENSE)
    return (
        f"TCL on collegemsg_bipartite, after, beside the padded dense implementation: "
        f"{_number(rates[0])} and {_number(dense_rate)}, {gain} times (bar {bar}: {verdict})."
    )


def _ranking(part: Figures) -> str:
    rows = []
    for case in part["cases"]:
        before, after = _rates(case, "ranking")
        figures = case["after"].get("ranking", {})
        replays = (case[side].get("ranking", {}).get("replay_seconds") for side in SIDES)
        rows.append(
            [
                case["log"],
                TITLES[case["variant"]],
                str(case["threads"]),
                _number(figures.get("measured_events")),
                _number(figures.get("targets")),
                _number(before),
                _number(after),
                *_gain(after, before, MIN_RANKING_GAIN.get(case["variant"])),
                *(_number(seconds) for seconds in replays),
            ]
        )
    header = ["log", "model", "threads", "events", "targets", "before", "after", "gain", "bar"]
    return _table([*header, "met", "replay before, s", "replay after, s"], rows)


def _beside_pyg(part: Figures, cases: list[Figures]) -> str:
    rows = []
    for result in part["cases"]:
        log, threads = result["log"], result["threads"]
        place = [log, str(threads)]
        pyg_rates = [result.get(task, {}).get("events_per_second") for task in TASKS]
        megabytes = _number(result.get("peak_megabytes"))
        blank = [NO_FIGURE] * 4
        rows.append([*place, "TGN of PyG", *map(_number, pyg_rates), *blank, megabytes])
        for case in cases:
            if (case["task"], case["log"], case["threads"]) != ("train", log, threads):
                continue
            variant = case["variant"]
            has_bar = variant == "ranker_without_encoder" and log == LOG_OF_PYG_BAR
            rates = [_rates(case, task)[1] for task in TASKS]
            shares = _gain(rates[0], pyg_rates[0], MIN_SHARE_OF_PYG if has_bar else None)
            ranking_share = _gain(rates[1], pyg_rates[1], None)[0]
            megabytes = _number(case["after"].get("peak_megabytes"))
            cells = [*map(_number, rates), *shares, ranking_share, megabytes]
            rows.append([*place, TITLES[variant], *cells])
    header = ["log", "threads", "model", "training", "ranking", "training / PyG's", "bar", "met"]
    return _table([*header, "ranking / PyG's", "MB"], rows)


def _flat(part: Figures) -> str:
    rows = []
    results = [(result, "") for result in part["cases"]] + [(part["before"], ", before")]
    for result, suffix in results:
        if "error" in result:
            place = [result["shape"], TITLES[result["variant"]] + suffix]
            rows.append([*place, "failed", *[NO_FIGURE] * 6, _verdict(False), *[NO_FIGURE] * 4])
        for activity, cost in result.get("costs", {}).items():
            ratio = cost["ratio"]
            rows.append(
                [
                    result["shape"],
                    TITLES[result["variant"]] + suffix,
                    activity,
                    _number(result["early_event"]),
                    *(_number(cost[f"{place}_microseconds"]) for place in PLACES),
                    f"{ratio:.2f}",
                    NO_FIGURE if suffix else f"≤ {MAX_GROWTH}",
                    NO_FIGURE if suffix else _verdict(ratio <= MAX_GROWTH),
                    f"{cost['late_to_middle']:.2f}",
                    *(_number(result[f"{place}_partners"]) for place in PLACES),
                ]
            )
    header = ["shape", "model", "activity", "early from", *PLACES, "late / early", "bar", "met"]
    return _table([*header, "late / middle", *(f"targets {place}" for place in PLACES)], rows)


def _origin(part: Figures) -> str:
    machine = part["machine"]
    return (
        f"Finished {part['finished']} after {part['minutes']} minutes, with a load average of "
        f"{part['load_average_at_start']} at the start; {machine['processor']}, "
        f"{machine['cores']} cores, Python {machine['python']}, torch {machine['torch']}."
    )


def _rates(case: Figures, task: str) -> tuple[float | None, float | None]:
    """Return the rates before and after; a measurement that failed has none."""
    before, after = (case[side].get(task, {}).get("events_per_second") for side in SIDES)
    return before, after


def _gain(rate: float | None, reference: float | None, bar: float | None) -> list[str]:
    """Return the cells of a gain, its bar, and whether it is met."""
    gain = rate / reference if rate and reference else None
    gain_cell = NO_FIGURE if gain is None else f"{gain:.2f}"
    if bar is None:
        return [gain_cell, NO_FIGURE, NO_FIGURE]
    return [gain_cell, f"{bar:g}", _verdict(gain is not None and gain >= bar)]


def _verdict(is_met: bool) -> str:
    return "yes" if is_met else "**no**"


def _number(value: float | None) -> str:
    if value is None:
        return NO_FIGURE
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
