"""`tclgraph datasets`: list the data sets of the catalog."""

from tclgraph.cli import options


def datasets(as_json: options.Json = False) -> None:
    """List the data sets of the catalog and their files on this machine."""
    from dataclasses import asdict

    from tclgraph.cli.terminal import new_table, print_json, print_table
    from tclgraph.events.catalog import CATALOG, find

    files = {name: find(entry) for name, entry in CATALOG.items()}
    if as_json:
        print_json(
            {
                name: {**asdict(entry), "file": str(files[name]) if files[name] else None}
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
            file.name if (file := files[name]) else "not downloaded",
        )
    print_table("Data sets of the catalog", table)
