"""Where power, energy and use of the machine are read: one file for each source; plug-ins by entry point.

A file here is a sensor if it has a name `SENSOR`: what to call, without arguments, to get one. Other files help them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from bitwatt.plugins import Plugins
from bitwatt.readings import MEASURED, MODELLED, Device, Reading
from bitwatt.sensors.counters import Lock


class Sensor(Protocol):
    """One source. Making one is cheap and touches nothing; `open` starts it.

    A class may also have `order` (an int, 0 unless told: of two that read the same, the lower speaks), `source` (how
    its numbers come, for the report; a model puts its numbers in), `ends()` (readings too dear for every second,
    taken when a run begins and ends), `look()` (what `read` reads but for counters that are dear to read and can do
    without a look every second) and `glance()` (what must be asked each second to be right, such as whether a GPU is
    at work, where looks are dear).
    """

    name: str

    def why_absent(self) -> str | None:
        """None where it can be read; else a sentence, with what to do about it. Found out by trying."""

    def open(self) -> list[Device]: ...

    def read(self) -> list[Reading]:
        """The values now. `energy_j` and the other totals run from `open`, unwrapped; they never step back."""

    def close(self) -> None: ...


#: Different remarks of one sensor that are kept.
NOTES = 20

Options = Mapping[str, Mapping[str, Any]]  # sensor -> keyword arguments


#: By name, those that speak first in front.
SENSORS: Plugins[Sensor] = Plugins("bitwatt.sensors", "SENSOR")


class Opened:
    """A sensor that was opened, and its manners: it never raises, warns once, and says nothing that another said."""

    def __init__(self, sensor: Sensor) -> None:
        self._sensor, self._warned, self._open = sensor, False, True
        self._lock = Lock()  # values that come in another order than they were read would look like resets
        self._silent: set[tuple[str, str]] = set()
        self.name = sensor.name
        self.source = str(getattr(sensor, "source", sensor.name))
        self.notes: list[str] = []
        self.devices = list(sensor.open())
        self._ids = frozenset(device.id for device in self.devices)
        first = self.read()  # totals run from here
        self._expected = {(reading.device, reading.quantity): reading.how for reading in first}
        self.notes += dict.fromkeys(
            reading.note for reading in first if reading.note and reading.note not in self.notes
        )

    @property
    def reads(self) -> Mapping[tuple[str, str], str]:
        """(device, quantity) -> how, as first read."""
        return {key: how for key, how in self._expected.items() if key not in self._silent}

    def read(self) -> list[Reading]:
        return self._ask(self._sensor.read) if self._open else []

    def look(self) -> list[Reading]:
        """What is worth a look every second."""
        return self._ask(getattr(self._sensor, "look", self._sensor.read)) if self._open else []

    def glance(self) -> list[Reading]:
        """What must be asked often to be right, where the sensor has something of that kind and it costs little."""
        glance = getattr(self._sensor, "glance", None)
        return self._ask(glance) if glance and self._open else []

    @property
    def glances(self) -> bool:
        return hasattr(self._sensor, "glance")

    def ends(self) -> list[Reading]:
        """What is read only when a run begins and ends."""
        ends = getattr(self._sensor, "ends", None)
        return self._ask(ends) if ends and self._open else []

    def close(self) -> None:
        if self._open:
            self._open = False
            try:
                self._sensor.close()
            except Exception as error:
                self._failed("closing", error)

    def give_way(self, others: Iterable[Opened], earlier: Container[Opened]) -> None:
        """Be silent on what an earlier one reads, and model nothing that another measures on a device of that kind."""
        kinds = {device.id: device.kind for device in self.devices}
        for other in others:
            theirs = {device.id: device.kind for device in other.devices}
            measured = {
                (theirs.get(id), quantity) for (id, quantity), how in other._expected.items() if how == MEASURED
            }
            for key, how in self._expected.items():
                better = how == MEASURED and other._expected.get(key) == MODELLED
                doubled = key in other._expected and other in earlier and not better
                if doubled or (how == MODELLED and (kinds.get(key[0]), key[1]) in measured):
                    self._silent.add(key)

    def _ask(self, question: Callable[[], list[Reading]]) -> list[Reading]:
        try:
            with self._lock:
                readings = [self._sound(reading) for reading in question()]
        except Exception as error:
            note = self._failed("reading", error)
            known = getattr(self, "_expected", {})
            readings = [Reading(device, quantity, None, how, note) for (device, quantity), how in known.items()]
        return [reading for reading in readings if (reading.device, reading.quantity) not in self._silent]

    def _sound(self, reading: Reading) -> Reading:
        """What comes from elsewhere is looked at here, where it costs its own readings and no more."""
        if reading.device not in self._ids:
            raise ValueError(f"{reading.device!r} is none of the devices that it opened")
        if reading.value is not None and not isinstance(reading.value, float | int):
            return replace(reading, value=float(reading.value))
        return reading

    def _failed(self, doing: str, error: Exception) -> str:
        note = f"{self.name}: {doing} failed: {type(error).__name__}: {error}"
        if note not in self.notes and len(self.notes) < NOTES:  # a message may hold a number that changes
            self.notes.append(note)
        if not self._warned:
            self._warned = True
            warnings.warn(f"bitwatt: {note}; what it reads is left out", stacklevel=4)
        return note


def survey(options: Options | None = None) -> dict[str, str | None]:
    """Each sensor, and why it cannot be read: None where it can."""
    return {name: _make(name, options)[1] for name in SENSORS}


def available(options: Options | None = None, *, only: Iterable[str] | None = None) -> list[Opened]:
    """The sensors that can be read here, opened. What two of them know is read by the first alone."""
    chosen = None if only is None else set(only)
    opened: list[Opened] = []
    for name in SENSORS:
        if chosen is not None and name not in chosen:
            continue
        made, absent = _make(name, options)
        if made is None or absent is not None:
            continue
        try:
            opened.append(Opened(made))
        except Exception as error:
            warnings.warn(f"bitwatt: the sensor {name} could not be opened: {error}", stacklevel=2)
    for index, sensor in enumerate(opened):
        sensor.give_way([other for other in opened if other is not sensor], opened[:index])
        if not sensor.reads:
            sensor.close()
    return [sensor for sensor in opened if sensor.reads]


def _make(name: str, options: Options | None) -> tuple[Sensor | None, str | None]:
    try:
        sensor = SENSORS[name](**(options or {}).get(name, {}))
        return sensor, sensor.why_absent()
    except Exception as error:
        warnings.warn(f"bitwatt: the sensor {name} fails: {error}", stacklevel=3)
        return None, f"it fails: {type(error).__name__}: {error}"
