"""Every baseline once on one log, beside the paper's figures and the floors.

    python -m tclgraph.experiments.baselines collegemsg --graph bipartite --seen-only

writes results/baselines/<log>.json. Runs are kept under runs/results, and one that was interrupted
is resumed. Two at a time on two cores, one thread each: times are those of a busy machine.
"""

from typing import Annotated, Any, Optional

import typer

from tclgraph.experiments.paper import published
from tclgraph.experiments.seeds import SHOWN, Data, floors_of, several, write_result
from tclgraph.models import registry
from tclgraph.training.run_folder import RunFolder

MODELS = (
    "graphsage-gcn",
    "graphsage-mean",
    "graphsage-max",
    "graphsage-lstm",
    "graphsage-gat",
    "ctdne",
    "dyngem",
    "dysat",
    "jodie",
    "deepcoevolve",
    "tgat",
    "tgn",
    "tdig-mpnn",
)
"""As Table 2 has them. GraphSAGE is the best of its five on validation."""


def main(
    log: Annotated[str, typer.Argument(help="A catalogue name or a file.")],
    graph: Annotated[Optional[str], typer.Option(help="bipartite or one-mode.")] = None,
    split: Annotated[Optional[str], typer.Option(help="Like 80/10/10; default: known.")] = None,
    seen_only: Annotated[bool, typer.Option("--seen-only", help="As the authors do.")] = False,
    models: Annotated[Optional[str], typer.Option(help="With commas between; else all.")] = None,
) -> None:
    """Train and test, as many at a time as there are cores, and write the result."""
    data = Data(log=log, graph=graph, split=split, seen_only=seen_only)
    chosen = models.split(",") if models else MODELS
    folders = {name: f"runs/results/{data.name}-{name}-0" for name in chosen}
    runs = {}
    jobs = [(data, name, {"seed": 0}, folder, "test") for name, folder in folders.items()]
    for name, run in zip(chosen, several(jobs), strict=True):
        runs[name] = _told(name, data.name, folders[name], run)
        figures = {one: round(run["test"]["metrics"][one], 4) for one in SHOWN}
        cost = f"{run['seconds']:.0f} s, {run['peak_megabytes']} MB"
        print(f"{name}: {figures}, best epoch {run['best_epoch']}, {cost}", flush=True)
    opened = data.open()
    result = {
        "data": data.name,
        "file": data.file,
        "graph": opened.events.graph,
        "split": str(opened),
        "parts": opened.sizes,
        "seeds": [0],
        "models": runs,
        "floors": floors_of(opened),
    }
    print(write_result(f"baselines/{data.name}", result, command="scripts/results baselines"))


def _told(name: str, data: str, folder: str, run: dict[str, Any]) -> dict[str, Any]:
    streams = type(registry.build(name)).streams
    return {
        "update": "streaming" if streams else "frozen",
        "paper": published(name.split("-")[0] if name.startswith("graphsage") else name, data),
        "config": RunFolder(folder).read_config(),
        **run,
    }


if __name__ == "__main__":
    typer.run(main)
