"""What each ingredient of the default preset is worth: the whole, and the whole without it.

    python -m tclgraph.experiments.ingredients collegemsg --seen-only

writes results/tcl/ingredients.json, by validation alone: one seed for each that is left out, and
three for the whole, whose deviation tells which differences mean anything. All are trained for
four epochs, which is not quite to the end.

With `--ahead` the validation part is ranked by models that were trained on the first 80 % of train
alone, as test is by models that have not seen the time before it: results/tcl/ahead.json, of those
ingredients that this can tell more about.
"""

from dataclasses import replace
from typing import Annotated, Any

import typer

from tclgraph.experiments.data import Data
from tclgraph.experiments.seeds import SHOWN, several, summary, write_result
from tclgraph.training.run_folder import RunFolder

WITHOUT: dict[str, dict[str, Any]] = {
    "embeddings": {"embeddings": False},
    "centring": {"centred": False},
    "pair history": {"pair_history": False},
    "repeat gate": {"repeat_gate": False},
    "repeat bias": {"repeat_bias": 0.0},
    "candidate state": {"candidate_state": False},
    "source state": {"source_state": False},
    "nearby": {"nearby": False},
    "log intervals": {"intervals": "linear"},
    "averaging": {"averaging": None},
    "all terms (full contrast alone)": {
        "pair_history": False,
        "repeat_gate": False,
        "candidate_state": False,
        "source_state": False,
        "nearby": False,
    },
}
"""What is left out, and how."""
BRIEF = {"epochs": 4}
TOLD_AHEAD = ("embeddings", "centring", "repeat bias", "nearby")
GROUPS = {"all": "metrics", "repeat": "repeat", "new": "new"}
"""Names of groups in a report."""


def main(
    log: Annotated[str, typer.Argument(help="A catalogue name.")],
    seen_only: Annotated[bool, typer.Option("--seen-only", help="As the authors do.")] = False,
    seeds: Annotated[int, typer.Option(help="Of the whole.")] = 3,
    ahead: Annotated[bool, typer.Option("--ahead", help="Rank further ahead.")] = False,
) -> None:
    """Train all, as many at a time as there are cores, and write the result."""
    data = Data(log=log, graph=None, split=None, seen_only=seen_only, ahead=ahead)
    runs = f"runs/results/{data.name}{'-ahead' if ahead else ''}"
    part = "test" if ahead else "valid"  # which is the valid part in both cases
    without = {one: how for one, how in WITHOUT.items() if not ahead or one in TOLD_AHEAD}
    jobs: list[tuple[Any, ...]] = [
        (data, "tcl", {"seed": seed, **BRIEF}, f"{runs}-whole-{seed}", part)
        for seed in range(seeds)
    ]
    for number, settings in enumerate(without.values()):
        jobs.append((data, "tcl", {**settings, **BRIEF}, f"{runs}-without-{number}", part))
    names = [*("" for _ in range(seeds)), *without]
    if not ahead:
        # One identity is a property of the log that is read, not of the model.
        jobs.append((replace(data, graph="bipartite"), "tcl", BRIEF, f"{runs}-two-sided", part))
        names.append("one identity")
    found = []
    for name, run in zip(names, several(jobs), strict=True):
        found.append(run)
        told = run[part]["metrics"]
        print(name or "the whole", {one: round(told[one], 4) for one in SHOWN}, flush=True)

    def figures(run: dict[str, Any]) -> dict[str, Any]:
        return {group: {one: run[part][key][one] for one in SHOWN} for group, key in GROUPS.items()}

    whole = found[:seeds]
    result = {
        "data": data.name,
        "file": data.file,
        "graph": "one-mode",
        "split": str(data.open()),
        "part": "valid",
        "update": "streaming",
        "seeds": list(range(seeds)),
        "config": RunFolder(f"{runs}-whole-0").read_config(),
        "whole": {group: summary([figures(run)[group] for run in whole]) for group in GROUPS},
        "without": {
            name: {"settings": WITHOUT.get(name, {"graph": "bipartite"}), **figures(run)}
            for name, run in zip(names[seeds:], found[seeds:], strict=True)
        },
    }
    print(write_result(f"tcl/{'ahead' if ahead else 'ingredients'}", result))


if __name__ == "__main__":
    typer.run(main)
