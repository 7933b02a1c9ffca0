"""Phases that are long enough to be measured: the counters are read where they begin and end.

Whether one is long is known when it ends. So a phase is tried, and not tried again once an entry was short; reading may
take a small share of the time whatever the program does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bitwatt.metering.sync import synchronise

if TYPE_CHECKING:
    from bitwatt.metering.meter import Meter

#: The counter moves at least so often in a phase that is measured.
STEPS = 10
#: Reading counters for phases may take this share of the time, and so many CPU seconds at once.
SHARE, BURST = 2e-4, 0.01


@dataclass(slots=True)
class Region:
    """All entries of one phase."""

    seconds: float = 0.0
    energy: dict[str, float] = field(default_factory=dict)
    short: bool = False  # some entry was too short, not read, or beside another


@dataclass(slots=True, eq=False)
class Mark:
    """One entry."""

    path: tuple[str, ...]
    time: float
    energy: Mapping[str, float]


class Regions:
    """Of one window."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._regions: dict[tuple[str, ...], Region] = {}
        self._open: list[Mark] = []
        self._began, self._spent = meter.now(), 0.0
        self._last: tuple[float, Mapping[str, float]] | None = None
        self._done = False

    def enter(self, path: tuple[str, ...]) -> Mark | None:
        """A phase begins here and now; give the mark to `leave`."""
        region = self._regions.get(path)
        if region is not None and region.short:
            return None
        try:
            return self._enter(path)
        except Exception as error:
            self._give_up(error)
            return None

    def leave(self, mark: Mark | None) -> None:
        """It ends."""
        if mark is None or self._done:
            return
        try:
            self._leave(mark)
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """The program goes on; phases from here on are not measured one by one, and the run says so."""
        self._done = True
        self._meter.notes.append(f"phases were no longer measured: {type(error).__name__}: {error}")

    def _enter(self, path: tuple[str, ...]) -> Mark | None:
        if not self._may_measure(path):
            return None
        synchronise()  # without the lock: a device may never answer
        with self._meter.patiently():
            mark = self._read(path)
            self._open.append(mark)
            return mark

    def _leave(self, mark: Mark) -> None:
        region = self._regions[mark.path]
        if self._meter.now() - mark.time < STEPS * self._meter.resolution:
            region.short = True
        if not region.short:
            synchronise()
        with self._meter.patiently():
            if mark not in self._open:
                return
            place = self._open.index(mark)
            for inner in self._open[place + 1 :]:  # generators may end out of order
                self._regions[inner.path].short = True
            del self._open[place:]
            if region.short:
                return
            end = self._read(mark.path)
            region.seconds += end.time - mark.time
            for device, joules in end.energy.items():
                region.energy[device] = region.energy.get(device, 0.0) + joules - mark.energy.get(device, 0.0)

    def close(self) -> None:
        """The window ends. A phase that is open is not measured."""
        self._done = True
        for mark in self._open:
            self._regions[mark.path].short = True

    def measured(self, seconds: float) -> dict[str, tuple[float, dict[str, float]]]:
        """Phase -> seconds and joules by device, those inside others included."""
        still = {mark.path for mark in self._open}
        return {
            "/".join(path): (region.seconds, dict(region.energy))
            for path, region in list(self._regions.items())
            if not region.short and path not in still and 0 < region.seconds <= seconds
        }

    def _may_measure(self, path: tuple[str, ...]) -> bool:
        with self._meter.patiently():
            region = self._regions.setdefault(path, Region())
            room = self._spent <= BURST + SHARE * (self._meter.now() - self._began)
            if self._done or not room or not self._meter.has_energy:
                region.short = True
            for other in self._open:
                if path[: len(other.path)] != other.path or path == other.path:  # beside another: whose energy is it?
                    region.short = self._regions[other.path].short = True
            return not region.short

    def _read(self, path: tuple[str, ...]) -> Mark:
        now = self._meter.now()
        if self._last is None or not 0 <= now - self._last[0] < self._meter.resolution / 2:  # else it has hardly moved
            now = self._meter.read(energy_alone=True).time
            self._spent += self._meter.read_cost
            self._last = (now, self._meter.board.energies())
        return Mark(path, *self._last)
