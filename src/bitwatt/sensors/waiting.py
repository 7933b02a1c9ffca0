"""For how long a program wanted to run: it had a processor, or waited for one while others had them all.

Threads that come and go between two looks are not seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from bitwatt.sensors.tree import PROC, text

#: Threads are looked at where tasks of the machine waited for processors for this share of the time; else nobody did.
CROWDED = 0.01


class Wanted:
    """The threads of one process, and the first of each of its children, from /proc: nanoseconds run and waited."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._pid, self._proc = pid, str(proc)
        self._total_s = 0.0
        self._last: dict[str, int] = {}
        self._stalled: tuple[float, float] | None = None

    def look(self, now: float, stalled_s: float | None, pids: Iterable[int]) -> float | None:
        """Seconds since the first look, by the thread that wanted most between two. `stalled_s` is for how long tasks
        of the machine have waited, None where the kernel does not tell. None where it tells of no thread."""
        before, self._stalled = self._stalled, None if stalled_s is None else (now, stalled_s)
        if before is not None and stalled_s is not None and stalled_s - before[1] <= CROWDED * (now - before[0]):
            self._last.clear()
            return self._total_s
        threads = self._threads(pids)
        if self._last and threads:  # one that is new there was born since
            self._total_s += max(wanted - self._last.get(thread, 0) for thread, wanted in threads.items()) / 1e9
        self._last = threads
        return self._total_s if threads else None

    def _threads(self, pids: Iterable[int]) -> dict[str, int]:
        found = {}
        for place in [*self._own(), *(str(pid) for pid in pids if pid != self._pid)]:
            try:
                ran, waited = text(f"{self._proc}/{place}/schedstat").split()[:2]
                found[place] = int(ran) + int(waited)
            except (OSError, ValueError):  # it has ended, or the kernel keeps no such account
                continue
        return found

    def _own(self) -> list[str]:
        try:
            return [f"{self._pid}/task/{thread}" for thread in os.listdir(f"{self._proc}/{self._pid}/task")]
        except OSError:
            return []
