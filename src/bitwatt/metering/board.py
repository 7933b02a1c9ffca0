"""The latest value of everything, and running totals that never step back: sensors may, and devices vanish."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bitwatt.readings import MEASURED, TOTALS, Device, Reading

ENERGY, POWER = "energy_j", "power_w"
Key = tuple[str, str]  # device, quantity

#: Seconds between two levels over which a line may be drawn; longer, nobody knows what was between.
GAP = 15.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The totals at one moment."""

    time: float
    totals: Mapping[Key, float]
    lost: Mapping[str, float]


class Board:
    """What sensors said, put together. Not locked: the meter is."""

    def __init__(self) -> None:
        self.devices: dict[str, Device] = {}
        self.sources: dict[str, str] = {}
        self.how: dict[str, str] = {}
        self.formulas: dict[str, str] = {}  # of models: what a reading's note says
        self.totals: dict[Key, float] = {}
        self.levels: dict[Key, float] = {}
        self.said: dict[Key, str] = {}  # what stands beside a level: why a GPU is held back
        self.lost: dict[str, float] = {}  # device -> seconds of which its energy is not known
        # device -> what was last wrong with it, when, and whether with the time before that
        self.trouble: dict[str, tuple[float, str, bool]] = {}
        self._raw: dict[Key, tuple[float, float]] = {}  # time and value of the last good reading
        self._bridged: dict[str, float] = {}  # joules added from power while the counter was away
        self._power: dict[str, tuple[float, float]] = {}
        self._asked: dict[str, float] = {}
        self._gap: dict[str, float] = {}  # of the seconds lost, those since the last good reading

    def know(self, devices: Iterable[Device], source: str) -> None:
        for device in devices:
            self.devices.setdefault(device.id, device)
            self.sources.setdefault(device.id, source)

    def take(self, now: float, readings: Iterable[Reading]) -> None:
        """What one sensor read just now."""
        powers: dict[str, float] = {}
        counters: dict[str, Reading] = {}
        for reading in readings:
            value = reading.value
            key = (reading.device, reading.quantity)
            if reading.quantity == ENERGY:
                counters[reading.device] = reading
            elif value is None or not math.isfinite(value):
                self.levels.pop(key, None)
            elif reading.quantity in TOTALS:
                self._advance(key, now, value)
            else:
                self.levels[key] = value
                if reading.note:
                    self.said[key] = reading.note
                if reading.quantity == POWER:
                    powers[reading.device] = value
                    self.how.setdefault(reading.device, reading.how)
        for device in counters.keys() | powers.keys():
            self._energy(device, now, counters.get(device), powers.get(device))

    def hear(self, levels: Mapping[Key, float]) -> None:
        """Levels that another process read, at one moment."""
        self.levels.update(levels)

    def snapshot(self, now: float) -> Snapshot:
        return Snapshot(now, dict(self.totals), dict(self.lost))

    def wrong(self, device: str, since: float) -> str:
        """What was wrong with a device after a moment. A step that ends there was made before it."""
        at, why, step = self.trouble.get(device, (0.0, "", True))
        return why if at > since or (at == since and not step) else ""

    def when(self, key: Key) -> float | None:
        """The time of a total's last good reading."""
        return self._raw[key][0] if key in self._raw else None

    def energies(self) -> dict[str, float]:
        return {device: total for (device, quantity), total in self.totals.items() if quantity == ENERGY}

    def _energy(self, device: str, now: float, counter: Reading | None, power: float | None) -> None:
        before = self._asked.get(device)
        self._asked[device] = now
        good = counter is not None and counter.value is not None and math.isfinite(counter.value)
        joules = self._from_power(device, now, power)
        if counter is None and (device, ENERGY) in self._raw:
            return  # it was not asked: it counts on
        if good and counter is not None and counter.value is not None:
            self.how[device] = counter.how
            if counter.how != MEASURED and counter.note:
                self.formulas[device] = counter.note
            if counter.note and counter.how == MEASURED:
                self.trouble[device] = (now, counter.note, True)
            known, gap = self.totals.get((device, ENERGY), 0.0), self._gap.pop(device, 0.0)
            if self._advance((device, ENERGY), now, counter.value, self._bridged.pop(device, 0.0)):
                if self.totals[device, ENERGY] > known and gap:  # it counted on meanwhile: nothing is lost
                    self.lost[device] -= gap
                return
        elif counter is not None and counter.note:
            self.trouble[device] = (now, counter.note, False)
        if joules is not None:
            key = (device, ENERGY)
            if key in self._raw:
                self._bridged[device] = self._bridged.get(device, 0.0) + joules
                self.trouble.setdefault(device, (now, "the counter was away: its power was integrated meanwhile", True))
            self.totals[key] = self.totals.get(key, 0.0) + joules
        elif before is not None and now > before and (device, ENERGY) in self.totals:
            for seconds in (self.lost, self._gap):
                seconds[device] = seconds.get(device, 0.0) + now - before

    def _from_power(self, device: str, now: float, power: float | None) -> float | None:
        """Joules since the last level, by trapezium; None where that is too long ago."""
        last = self._power.get(device)
        if power is None or power < 0:
            self._power.pop(device, None)
            return None
        self._power[device] = (now, power)
        if last is None:
            return 0.0 if (device, ENERGY) not in self.totals else None
        seconds = now - last[0]
        return (power + last[1]) / 2 * seconds if 0 <= seconds <= GAP else None

    def _advance(self, key: Key, now: float, value: float, bridged: float = 0.0) -> bool:
        """Add the step to the total, unless it is none: backward, or more than the device can draw."""
        last = self._raw.get(key)
        self._raw[key] = (now, value)
        if last is None:
            self.totals.setdefault(key, 0.0)
            return True
        step, seconds = value - last[1], now - last[0]
        if step < 0:
            self.trouble[key[0]] = (now, f"{key[1]} stepped back: that step is not counted", True)
            return False
        device = self.devices.get(key[0])
        is_read = key[1] == ENERGY and self.how.get(key[0], MEASURED) == MEASURED  # models book what was used before
        ceiling = device.ceiling_w if device is not None and is_read else None
        if ceiling is not None and step > ceiling * (max(seconds, 0.0) + 1.0):  # counters are up to a second late
            why = f"a step of {step:.3g} J in {seconds:.3g} s is more than it can draw: not counted"
            self.trouble[key[0]] = (now, why, True)
            return False
        self.totals[key] = self.totals.get(key, 0.0) + max(step - bridged, 0.0)
        return True
