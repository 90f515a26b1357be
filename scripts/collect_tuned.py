"""Write src/tclgraph/studies/tuned.json from the trials in results/tuning.

python scripts/collect_tuned.py
"""

from pathlib import Path

from tclgraph.studies.tuned import FILE, collect_records, write_records

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Write the file, and print a line for every record."""
    records = collect_records(ROOT)
    write_records(records, FILE)
    for record in records:
        settings = " ".join(f"{name}={value}" for name, value in record.settings.items())
        print(f"{record.log} {record.kind} {record.model}: {settings}")


if __name__ == "__main__":
    main()
