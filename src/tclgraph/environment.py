"""Describe the machine and the library versions that a measurement was made with."""

import os
import platform
import resource
import sys
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("torch", "numba", "numpy")


def environment() -> dict[str, str | int]:
    """Return the processor, the number of cores and the versions; nothing identifies the host."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
    }


def peak_megabytes() -> int:
    """Return the peak resident memory of this process so far, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux reports KiB, macOS reports bytes.
    return round(peak / (1024 if sys.platform != "darwin" else 1024**2))


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
