"""The figures over one setting of TCL: depth of the sub-graphs (k) and number of heads."""

from dataclasses import dataclass

from tclgraph.studies.study import Entry, OpenLog, Role, Study


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptSetting:
    """A setting of TCL and the values that it takes in a figure."""

    name: str
    """Name of the study."""
    setting: str
    """Name of the setting."""
    default: int
    """The value that TCL has by default."""
    symbol: str
    """What a row calls the setting."""
    label: str
    """What an axis calls the setting."""
    values: tuple[int, ...]


DEPTH = SweptSetting(
    name="depth",
    setting="levels",
    default=5,
    symbol="k",
    label="depth of the sub-graphs",
    values=(1, 2, 3, 4, 5, 6),
)
HEADS = SweptSetting(
    name="heads",
    setting="heads",
    default=16,
    symbol="heads",
    label="number of heads",
    values=(1, 2, 4, 8, 16),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of the setting."""

    value: int
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStudy(Study):
    """TCL with every value of one setting."""

    swept: SweptSetting
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        return self.swept.name

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(point.entry for point in self.points)


def sweep_study(log: OpenLog, swept: SweptSetting) -> SweepStudy:
    """Return the study of one setting."""
    return SweepStudy(
        log=log,
        swept=swept,
        points=tuple(Point(value=value, entry=_entry(log, swept, value)) for value in swept.values),
    )


def _entry(log: OpenLog, swept: SweptSetting, value: int) -> Entry:
    # The default is not given as a setting, so that the job has the name it has in other studies.
    settings = {} if value == swept.default else {swept.setting: value}
    return Entry(
        name=f"{swept.symbol} = {value}",
        role=Role.OURS,
        jobs=(log.job("tcl", settings),),
    )
