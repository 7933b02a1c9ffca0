"""CPU energy worked out, where no counter is: watts that you give, by how busy the process tree keeps the processor."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bitwatt.readings import MODELLED, Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock
from bitwatt.sensors.tree import System, Tree, TreeSensor, Use, system

ABSENT = (
    "no watts are given, and none are guessed: set tdp_w, the processor's TDP (and modelled.cores, where it has more "
    "than are here), or modelled.curve, measured on this machine; until then there are CPU seconds, and no joules"
)


class Modelled(TreeSensor):
    """W(u): the curve at the share u of all cores that the tree keeps busy, straight between its points.

    A TDP is the curve from nothing to itself. A curve that starts at idle watts charges all of them to this tree: it is
    the machine as if it ran nothing else.
    """

    name = "modelled"
    order = 9  # only where nobody measures

    def __init__(
        self,
        tdp_w: float | None = None,
        *,
        cores: int | None = None,
        curve: Sequence[tuple[float, float]] = (),
        pid: int | None = None,
        system: System | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._cores = cores or os.cpu_count() or 1
        self._curve = sorted((float(share), float(watts)) for share, watts in curve)
        if not self._curve and tdp_w:
            self._curve = [(0.0, 0.0), (1.0, float(tdp_w))]
        self._tdp_w, self._pid, self._given, self._clock = tdp_w, pid, system, clock

    @property
    def source(self) -> str:
        if self._tdp_w and self._curve == [(0.0, 0.0), (1.0, float(self._tdp_w))]:
            return f"modelled: {self._tdp_w:g} W (TDP) x CPU seconds of the process tree / {self._cores} cores"
        points = ", ".join(f"{watts:g} W at {share:.0%}" for share, watts in self._curve)
        return f"modelled: watts at the process tree's share of {self._cores} cores, of the curve {points}"

    def why_absent(self) -> str | None:
        if not self._curve:
            return ABSENT
        if any(not 0 <= share <= 1 or watts < 0 for share, watts in self._curve):
            return f"the curve {self._curve} is not one of watts by utilisation from 0 to 1"
        if (self._given or system()) is None:
            return "CPU seconds cannot be read: there is no /proc here, and psutil is not installed: pip install psutil"
        return None

    def open(self) -> list[Device]:
        found = self._given or system()
        if found is None or not self._curve:
            return []
        self._tree = Tree(os.getpid() if self._pid is None else self._pid, found, self._clock, io=False)
        self._joules, self._cpu_s, self._then = 0.0, 0.0, self._clock.monotonic()
        self._room = 0.0  # CPU seconds that all cores had left until now
        most = max(watts for _, watts in self._curve)
        return [Device("cpu", "cpu", "the process tree's share of the processor", ceiling_w=most)]

    def _read(self, use: Use, *, thoroughly: bool) -> list[Reading]:
        cpu_s, now = use.cpu_s, self._clock.monotonic()
        elapsed = now - self._then
        self._then = now
        if elapsed < 0:
            note = "the clock went back: this step is not counted"
            return [Reading("cpu", "energy_j", self._joules, MODELLED, note)]
        # What is more than fits into a step was used before, by a child that is found only now; or it belongs to the
        # next, since CPU time comes in ticks.
        fits = elapsed * self._cores
        used = min(cpu_s - self._cpu_s, fits)
        late = min(cpu_s - self._cpu_s - used, self._room)
        self._cpu_s += used + late
        self._room += fits - used - late
        if elapsed > 0:
            self._joules += elapsed * self._watts(used / fits)
        self._joules += late / self._cores * (self._watts(1.0) - self._watts(0.0))
        return [Reading("cpu", "energy_j", self._joules, MODELLED)]

    def _watts(self, share: float) -> float:
        share = min(max(share, self._curve[0][0]), self._curve[-1][0])
        for (left, low), (right, high) in zip(self._curve, self._curve[1:], strict=False):
            if share <= right:
                return low + (high - low) * ((share - left) / (right - left) if right > left else 0.0)
        return self._curve[-1][1]


SENSOR = Modelled
