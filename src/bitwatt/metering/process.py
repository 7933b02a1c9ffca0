"""What this process used, from the standard library alone: for where no sensor tells."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bitwatt.readings import Device, Reading

PROCESS = Device("process", "process", "this process and the children it has waited for")


class OwnProcess:
    """CPU seconds and resident memory. Children count once they have ended."""

    name = "process"

    def why_absent(self) -> str | None:
        return None

    def open(self) -> list[Device]:
        self._before = _cpu_seconds()
        return [PROCESS]

    def read(self) -> list[Reading]:
        found = [Reading("process", "cpu_seconds", _cpu_seconds() - self._before)]
        resident = _resident()
        return found if resident is None else [*found, Reading("process", "memory_bytes", resident)]

    def close(self) -> None:
        """There is nothing to give back."""


def _cpu_seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _resident() -> float | None:
    with suppress(OSError, ValueError, IndexError):
        return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None
