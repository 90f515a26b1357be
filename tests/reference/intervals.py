"""Intervals in units that a model measured, slowly."""

from math import log1p


def in_units(interval: float, unit: float) -> float:
    """Return an interval divided by a unit; without a unit, which is then 0, it counts as 0."""
    return interval / unit if unit else 0.0


def log_interval(interval: float, mean: float) -> float:
    """Return log(1 + Δ / unit), where the unit is a hundred-thousandth of the mean interval."""
    return log1p(in_units(interval, mean / 100_000))
