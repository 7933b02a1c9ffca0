"""Memory of this process, in bytes, as its system tells."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

PROC = Path("/proc/self")


@dataclass(frozen=True)
class Memory:
    """`uss` is what would be free if the process ended, `pss` shares with others what they share. `peak_uss` is the
    most that USS has been: USS now, and by how much RSS has been higher than now. Pages of shared libraries do not go
    away in between, so what RSS lost was the process's own. Nothing is sampled: a short peak is seen as well."""

    uss: int | None = None
    pss: int | None = None
    rss: int | None = None
    peak_uss: int | None = None
    source: str = "the system does not tell"


def read(proc: Path = PROC) -> Memory:
    try:
        rollup = _fields((proc / "smaps_rollup").read_text())
        status = _fields((proc / "status").read_text())
        uss = sum(value for name, value in rollup.items() if name.startswith("Private_"))
        above = max(status["VmHWM"] - status["VmRSS"], 0)  # from one file: both are kept by the same counters
        source = "/proc/self/smaps_rollup; the peak is USS + (VmHWM - VmRSS)"
        return Memory(uss, rollup.get("Pss"), rollup["Rss"], uss + above, source)
    except (OSError, KeyError, ValueError):
        return _elsewhere()


def _fields(text: str) -> dict[str, int]:
    """Lines such as `VmHWM:  1234 kB`, in bytes."""
    parts = (line.split() for line in text.splitlines())
    return {part[0].rstrip(":"): int(part[1]) * 1024 for part in parts if len(part) == 3 and part[2] == "kB"}


def _elsewhere() -> Memory:
    """macOS and Windows, by psutil."""
    if find_spec("psutil") is None:
        return Memory(source="the system does not tell without psutil")
    import psutil

    try:
        found = psutil.Process(os.getpid()).memory_full_info()
    except psutil.Error as error:
        return Memory(source=f"psutil: {error}")
    uss, rss = int(found.uss), int(found.rss)
    highest = getattr(found, "peak_wset", None) or _highest()
    peak = None if highest is None else uss + max(int(highest) - rss, 0)
    return Memory(uss, getattr(found, "pss", None), rss, peak, "psutil; the peak is USS + (highest RSS - RSS)")


def _highest() -> int | None:
    """Highest RSS, where the system keeps it."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
