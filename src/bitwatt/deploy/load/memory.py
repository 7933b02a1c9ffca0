"""Memory that a process has for itself (USS), sampled while it is under load."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from bitwatt.deploy.measuring import memory

#: A sample costs kernel time that grows with the process: at most this share of one core goes into it.
_SHARE = 0.01
_SHORTEST_S = 0.02


def uss_mb(pid: int | None = None) -> float | None:
    """In 10^6 bytes; None where the system does not tell, or the process is not ours to look into."""
    if pid is None:
        found = memory.read().uss
    else:
        place = Path(f"/proc/{pid}")
        found = memory.read(place).uss if os.access(place / "smaps_rollup", os.R_OK) else None
    return None if found is None else found / 1e6


class Peak:
    """The highest sample while it is open, one at the start and one at the end among them."""

    def __init__(self, read: Callable[[], float | None] = uss_mb) -> None:
        self.mb: float | None = None
        self._read, self._done = read, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="bitwatt-load-memory")

    def __enter__(self) -> Peak:
        self._sample()
        if self.mb is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()
            self._sample()

    def _sample(self) -> float:
        began = time.perf_counter()
        found = self._read()
        if found is not None:
            self.mb = max(found, self.mb or 0.0)
        return time.perf_counter() - began

    def _watch(self) -> None:
        spent = 0.0
        while not self._done.wait(max(_SHORTEST_S, spent / _SHARE)):
            spent = self._sample()
