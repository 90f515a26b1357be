"""A process that has imported what commands need, and forks itself for every command.

Importing torch takes two seconds, which is most of the time of a small command. A forked process is
as real as any: it has its own memory, working folder, environment, output and exit code.

    python -m tests.forking    # a request per line of stdin, an exit code per line of stdout
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tclgraph.events.pair_table import PairTable

# The last is imported by torch's optimizers, and takes longest.
_MODULES = (
    "tclgraph.cli.main",
    "tclgraph.jobs.run",
    "tclgraph.models.ranker.model",
    "tclgraph.models.tcl.model",
    "tclgraph.reports.reproduction",
    "tclgraph.studies.plan",
    "tclgraph.tuning.search",
    "torch._dynamo",
)


def _run(
    words: list[str], folder: str, out: str, err: str, environment: dict[str, str]
) -> NoReturn:
    """Become the command: it reads nothing, and writes to these files."""
    os.environ.update(environment)
    # Python has read this variable already.
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    for stream, path in enumerate((os.devnull, out, err)):
        flags = os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened = os.open(path, flags)
        os.dup2(opened, stream)
        os.close(opened)
    os.chdir(folder)
    sys.argv = ["tclgraph", *words]
    try:
        import_module("tclgraph.cli.main").main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the half second that Python takes to take apart all modules.
    os._exit(code)


def _serve() -> None:
    for module in _MODULES:
        import_module(module)
    PairTable()  # the first call of a kernel imports more of numba
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            _run(**request)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        print(code, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    _serve()
