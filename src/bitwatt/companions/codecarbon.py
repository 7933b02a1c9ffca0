"""CodeCarbon's trackers: joules so far, and whether it measured or estimated them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from bitwatt.observed import Figure

_J = 3_600_000.0  # in a kWh
_PARTS = {"CPU": "_total_cpu_energy", "GPU": "_total_gpu_energy", "RAM": "_total_ram_energy"}
#: How its CPU class came by watts, in words. What is not listed here it calls by its own name.
_MODES = {
    "intel_rapl": "measured by RAPL", "intel_power_gadget": "measured by Power Gadget",
    "windows_emi": "measured by Windows", "cpu_load": "estimated by TDP and load", "constant": "estimated by TDP",
}  # fmt: skip
_STARTS = ("start", "start_task")


def _running(base: type) -> list[Any]:
    """Trackers that were started before anybody listened: each has a timer that calls it through its scheduler."""
    found: dict[int, Any] = {}
    for thread in threading.enumerate():
        scheduler = getattr(getattr(thread, "function", None), "__self__", None)
        tracker = getattr(getattr(scheduler, "function", None), "__self__", None)
        if isinstance(tracker, base) and getattr(tracker, "_start_time", None) is not None:
            found[id(tracker)] = tracker
    return list(found.values())


class CodeCarbon:
    name, module = "CodeCarbon", "codecarbon.emissions_tracker"

    def __init__(self) -> None:
        self._trackers: dict[int, tuple[Any, float]] = {}  # held, so that one that was stopped can still be read

    def hook(self, module: Any) -> Callable[[], None]:
        base = module.BaseEmissionsTracker
        for tracker in _running(base):
            self._trackers[id(tracker)] = (tracker, tracker._start_time)
        originals = {name: getattr(base, name) for name in _STARTS}
        for name, original in originals.items():
            setattr(base, name, self._knowing(original))

        def undo() -> None:
            for name, original in originals.items():
                setattr(base, name, original)
            self._trackers.clear()

        return undo

    def _knowing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(tracker: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(tracker, *args, **kwargs)
            if tracker._start_time is not None:
                self._trackers.setdefault(id(tracker), (tracker, tracker._start_time))
            return result

        start.__name__, start.__doc__ = original.__name__, original.__doc__
        return start

    def marks(self) -> dict[int, tuple[float, dict[str, float]]]:
        """It reads its meters now and then, so what it says is as of the last time."""
        return {key: (one._last_measured_time, _parts(one)) for key, (one, _) in list(self._trackers.items())}

    def figures(self, began: float, marks: dict[int, tuple[float, dict[str, float]]] | None) -> list[Figure]:
        found = []
        for key, (tracker, started) in list(self._trackers.items()):
            since, before = (marks or {}).get(key, (started, {}))
            parts = {name: joules - before.get(name, 0.0) for name, joules in _parts(tracker).items()}
            seconds = tracker._last_measured_time - since
            if seconds > 0 and any(parts.values()):
                known = {name: joules for name, joules in parts.items() if joules > 0}
                found.append(Figure(self.name, sum(parts.values()), _how(tracker), seconds, known))
        return found


def _parts(tracker: Any) -> dict[str, float]:
    return {name: getattr(tracker, attribute).kWh * _J for name, attribute in _PARTS.items()}


def _how(tracker: Any) -> str:
    """Its methods. RAM is always an estimate there; GPUs are read from their driver."""
    told = []
    for part in tracker._hardware:
        kind, mode = type(part).__name__, getattr(part, "_mode", "")
        if kind == "CPU":
            told.append(f"CPU {_MODES.get(mode, mode)}")
        elif kind == "RAM":
            told.append("RAM estimated")
        else:
            told.append(f"{kind} read")
    pue = getattr(tracker, "_pue", None)
    scope = f"{tracker._tracking_mode} mode"
    return ", ".join([*told, scope, *([f"PUE {pue:g}"] if pue not in (None, 1, 1.0) else [])])
