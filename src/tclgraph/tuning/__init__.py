"""Search for the settings of a model that give the best validation metric.

This is the only package that imports optuna, an optional dependency. Each search is stored in a
folder, so that it can be interrupted, continued, and shared by several processes.
"""

from tclgraph.errors import InputError

try:
    import optuna  # noqa: F401
except ModuleNotFoundError:
    raise InputError('tclgraph tune needs optuna: pip install "tclgraph[tune]"') from None
