"""`tclgraph datasets`: what the catalogue has and where each set is."""

from tclgraph.cli import options


def datasets(as_json: options.Json = False) -> None:
    """List the data sets known by name, and where each lies on this machine."""
    from dataclasses import asdict

    from tclgraph.cli.terminal import new_table, print_json, print_table
    from tclgraph.events.catalog import CATALOG, find

    found = {name: find(entry) for name, entry in CATALOG.items()}
    if as_json:
        print_json(
            {
                name: {**asdict(entry), "file": str(found[name]) if found[name] else None}
                for name, entry in CATALOG.items()
            }
        )
        return
    table = new_table("name", "interactions", "sources", "targets", "kind", "split", "file")
    for name, entry in CATALOG.items():
        table.add_row(
            name,
            f"{entry.interactions:,}",
            f"{entry.sources:,}",
            f"{entry.targets:,}",
            entry.kind,
            entry.split,
            path.name if (path := found[name]) else "to be downloaded",
        )
    print_table("Data sets known by name", table)
