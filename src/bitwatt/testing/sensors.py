"""A clock that is set by hand, a sensor that follows a script, and the contract every sensor keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bitwatt.readings import MEASURED, TOTALS, Device, Reading
from bitwatt.sensors import Sensor
from bitwatt.sensors.counters import Clock


class FakeClock(Clock):
    """Time passes when told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self._awake = self._boot = now

    def monotonic(self) -> float:
        return self._awake

    def boottime(self) -> float:
        return self._boot

    def advance(self, seconds: float) -> None:
        """Pass, awake. Negative: a clock that jumps back."""
        self._awake += seconds
        self._boot += seconds

    def suspend(self, seconds: float) -> None:
        """The lid is closed: only the clock that counts suspension goes on."""
        self._boot += seconds


class FakeSensor:
    """A sensor of constant watts and of any other values, on a clock of yours.

    `watts` is by device id (`cpu:0`, `gpu:GPU-1`); change it, or `levels`, between readings. `fail` makes the next
    readings raise; `lose` makes the devices unreadable, with a note.
    """

    def __init__(
        self,
        clock: Clock,
        watts: Mapping[str, float] | None = None,
        *,
        name: str = "fake",
        levels: Mapping[tuple[str, str], float] | None = None,
        how: str = MEASURED,
        absent: str | None = None,
        resolution_s: float | None = 0.001,
    ) -> None:
        self.name, self._clock, self._how, self._absent = name, clock, how, absent
        self.watts = dict(watts or {})
        self.levels = dict(levels or {})
        self._resolution_s = resolution_s
        self._joules = dict.fromkeys(self.watts, 0.0)
        self._then = clock.monotonic()
        self.opened = self.closed = self.reads = 0
        self._fault: Exception | None = None
        self._lost: str | None = None

    def why_absent(self) -> str | None:
        return self._absent

    def open(self) -> list[Device]:
        self.opened += 1
        self._joules, self._then = dict.fromkeys(self.watts, 0.0), self._clock.monotonic()
        ids = dict.fromkeys([*self.watts, *(device for device, _ in self.levels)])
        return [Device(id, id.partition(":")[0], resolution_s=self._resolution_s) for id in ids]

    def read(self) -> list[Reading]:
        self.reads += 1
        if self._fault is not None:
            raise self._fault
        now = self._clock.monotonic()
        readings = []
        for device, watts in self.watts.items():
            self._joules[device] += watts * max(now - self._then, 0.0)
            readings += self._say(device, "energy_j", self._joules[device]) + self._say(device, "power_w", watts)
        self._then = now
        for (device, quantity), value in self.levels.items():
            readings += self._say(device, quantity, value)
        return readings

    def close(self) -> None:
        self.closed += 1

    def fail(self, error: Exception | None) -> None:
        """Raise it when read, as a broken plug-in does; None: mended."""
        self._fault = error

    def lose(self, why: str | None) -> None:
        """Say None, and why; None: found again."""
        self._lost = why

    def _say(self, device: str, quantity: str, value: float) -> list[Reading]:
        if self._lost is not None:
            return [Reading(device, quantity, None, self._how, self._lost)]
        return [Reading(device, quantity, value, self._how)]


def check_sensor(sensor: Sensor, *, clock: FakeClock | None = None, reads: int = 3) -> list[list[Reading]]:
    """Raise AssertionError unless the sensor keeps its manners; what it read, where it can be read here.

    With a clock of yours a second passes between readings. The sensor is closed afterwards.
    """
    assert sensor.name, "a sensor has a name"
    absent = sensor.why_absent()
    if absent is not None:
        assert len(absent) >= 10, f"{sensor.name}: say why it is absent, and what to do about it"
        sensor.close()  # never opened: it may be closed all the same
        return []
    devices = sensor.open()
    ids = [device.id for device in devices]
    assert ids, f"{sensor.name}: not absent, but without devices"
    assert len(set(ids)) == len(ids), f"{sensor.name}: {ids} are not told apart"
    assert all(device.kind for device in devices), f"{sensor.name}: a device is of a kind"
    taken = []
    for _ in range(reads):
        taken.append(sensor.read())
        if clock is not None:
            clock.advance(1.0)
    for ends in filter(None, [getattr(sensor, "ends", None)]):
        _check_readings(sensor.name, ids, ends())
    sensor.close()
    sensor.close()
    sensor.read()  # a reader that is late
    for readings in taken:
        _check_readings(sensor.name, ids, readings)
    _check_steps(sensor.name, taken)
    return taken


def _check_readings(name: str, ids: Sequence[str], readings: Iterable[Reading]) -> None:
    seen = set()
    for reading in readings:
        what = f"{name}: {reading}"
        assert reading.device in ids, f"{what}: no such device was opened"
        assert (reading.device, reading.quantity) not in seen, f"{what}: twice"
        seen.add((reading.device, reading.quantity))
        assert reading.value is not None or reading.note, f"{what}: say why there is no value"
        assert reading.value is None or reading.value >= 0, f"{what}: negative, or not a number"
        assert reading.value is None or reading.value < float("inf"), f"{what}: endless"
        if reading.quantity == "utilisation" and reading.value is not None:
            assert reading.value <= 1, f"{what}: utilisation goes from 0 to 1"


def _check_steps(name: str, taken: Sequence[Sequence[Reading]]) -> None:
    last: dict[tuple[str, str], float] = {}
    for readings in taken:
        for reading in readings:
            if reading.quantity in TOTALS and reading.value is not None:
                before = last.get((reading.device, reading.quantity), 0.0)
                assert reading.value >= before, f"{name}: {reading} steps back from {before}"
                last[reading.device, reading.quantity] = reading.value
