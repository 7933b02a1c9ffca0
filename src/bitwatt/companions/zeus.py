"""Zeus's monitors: windows that the program ended, and what they held."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bitwatt.observed import Figure

#: Windows that are kept: a program may have one for each step.
WINDOWS = 100


class Zeus:
    name, module = "Zeus", "zeus.monitor.energy"

    def __init__(self) -> None:
        self._windows: list[tuple[float, str, Any]] = []  # when it ended, its name, what it measured

    def hook(self, module: Any) -> Callable[[], None]:
        monitor = module.ZeusMonitor
        original = monitor.end_window

        def end_window(this: Any, key: str, *args: Any, **kwargs: Any) -> Any:
            measured = original(this, key, *args, **kwargs)
            cancelled = kwargs.get("cancel", args[1] if len(args) > 1 else False)
            if not cancelled and len(self._windows) < WINDOWS:
                self._windows.append((time.perf_counter(), key, measured))
            return measured

        end_window.__doc__ = original.__doc__
        monitor.end_window = end_window

        def undo() -> None:
            monitor.end_window = original
            self._windows.clear()

        return undo

    def marks(self) -> int:
        return len(self._windows)

    def figures(self, began: float, marks: int | None) -> list[Figure]:
        """Windows that were opened and ended in the session. Their names are the program's."""
        found = []
        for ended, key, measured in self._windows[marks or 0 :]:
            if ended - measured.time < began - 0.001:
                continue
            parts = {
                name: sum(joules.values())
                for name, joules in (
                    ("GPU", measured.gpu_energy), ("CPU", measured.cpu_energy), ("RAM", measured.dram_energy),
                )
                if joules
            }  # fmt: skip
            how = "measured" if parts else "no counter was found"
            total = sum(parts.values()) if parts else None  # its own total is 0 where nothing is known
            found.append(Figure(self.name, total, f"{how}, window {key!r}", measured.time, parts))
        return found
