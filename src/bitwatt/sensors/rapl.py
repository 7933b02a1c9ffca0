"""Energy of processors and their memory from the kernel's powercap tree: Intel's RAPL, which AMD's have, too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from bitwatt.readings import Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock, Counter

ROOT = Path("/sys/class/powercap")
PACKAGE = re.compile(r"package-(\d+)(?:-die-(\d+))?")
#: More than a socket, and than the memory behind one, can draw; where the tree tells limits, twice the highest of them.
CEILING_W = {"cpu": 1000.0, "dram": 500.0}
#: The registers are written about once in a millisecond.
RESOLUTION_S = 0.001
#: Dies whose counters differ by less, after so many joules, show the same register.
SAME_J, AFTER_J = 5.0, 1000.0

FIX = (
    """sudo sh -c 'groupadd -f rapl; usermod -aG rapl "$SUDO_USER"; printf "z %s 0440 root rapl\\n" """
    """"{folder}/*/*/energy_uj" "{folder}/*/*/*/energy_uj" > /etc/tmpfiles.d/rapl.conf; """
    """systemd-tmpfiles --create /etc/tmpfiles.d/rapl.conf', and log in again. The members of the group rapl, and """
    """nobody else, may then follow the processor's power, finely enough to guess at secrets (CVE-2020-8694). """
    """A container needs {folder} mounted, too"""
).replace("{folder}", "/sys/devices/virtual/powercap")  # where the tree is; ROOT holds links to it


class Zone:
    """One counter of the tree."""

    def __init__(self, folder: Path, id: str, kind: str, range_uj: int, ceiling_w: float, clock: Clock) -> None:
        self.path = folder / "energy_uj"
        self.device = Device(id, kind, f"{folder.name} {id}", ceiling_w, RESOLUTION_S)
        self.counter = Counter(unit_j=1e-6, range=range_uj, ceiling_w=ceiling_w, resolution_s=RESOLUTION_S, clock=clock)


class Rapl:
    name = "rapl"
    source = "RAPL counters through powercap"

    def __init__(self, root: Path = ROOT, read: Callable[[Path], str] = Path.read_text, clock: Clock = SYSTEM) -> None:
        self._root, self._read, self._clock = root, read, clock
        self._zones: list[Zone] = []

    def why_absent(self) -> str | None:
        if not self._root.is_dir():
            return f"{self._root} does not exist: a container, a virtual machine, or a kernel without powercap"
        folders = self._find()
        if not folders:
            return (
                f"{self._root} shows no package: hidden by a container, a virtual machine, or no RAPL in the processor"
            )
        denied, failed = 0, ""
        for folder in folders.values():
            try:
                int(self._read(folder / "energy_uj"))
                return None
            except PermissionError:
                denied += 1
            except (OSError, ValueError) as error:
                failed = str(error)
        if denied:
            return f"{denied} counters, which only root may read; to open them: {FIX}"
        return f"{len(folders)} counters, and none can be read: {failed}"

    def open(self) -> list[Device]:
        self._zones = []
        for id, folder in self._find().items():
            kind = id.partition(":")[0]
            try:
                range_uj = int(self._read(folder / "max_energy_range_uj"))
            except (OSError, ValueError):
                continue  # without it a wrap could not be told
            self._zones.append(Zone(folder, id, kind, range_uj, self._ceiling(folder, kind), self._clock))
        self._zones = self._without_mirrors(self._zones)
        return [zone.device for zone in self._zones]

    def read(self) -> list[Reading]:
        readings = []
        for zone in self._zones:
            try:
                total, note = zone.counter.count(int(self._read(zone.path)))
            except PermissionError:
                total, note = zone.counter.lost(f"{zone.device.id} may no longer be read; to open it: {FIX}")
            except (OSError, ValueError) as error:
                total, note = zone.counter.lost(f"{zone.device.id} cannot be read: {error}")
            readings.append(Reading(zone.device.id, "energy_j", total, note=note))
        return readings

    def close(self) -> None:
        self._zones = []

    def _find(self) -> dict[str, Path]:
        """Device -> folder: packages and memories by the names of zones, since their numbers are those of discovery.

        `core` and `uncore` are inside a package, `psys` is around it, and intel-rapl-mmio shows packages once more.
        """
        names: dict[str, str] = {}
        # The folder of classes lists all zones side by side; the tree itself, where that is given, has them nested.
        folders = {folder.name: folder for folder in self._root.glob("*:*")}
        if not any(zone.count(":") > 1 for zone in folders):
            nested = [*self._root.glob("*/*:*"), *self._root.glob("*/*/*:*")]
            folders = {folder.name: folder for folder in nested} | folders
        for zone, folder in sorted(folders.items()):
            try:
                names[zone] = self._read(folder / "name").strip()
            except OSError:
                continue
        found: dict[str, Path] = {}
        for zone in sorted(names, key=lambda zone: ("mmio" in zone, zone)):
            parent = names.get(zone.rpartition(":")[0], "")
            kind, package = ("dram", PACKAGE.fullmatch(parent)) if names[zone] == "dram" else ("cpu", None)
            package = package or PACKAGE.fullmatch(names[zone])
            if package is not None:
                socket, die = package.groups()
                found.setdefault(f"{kind}:{socket}" + (f".{die}" if die else ""), folders[zone])
        return found

    def _without_mirrors(self, zones: list[Zone]) -> list[Zone]:
        """Some processors show one register of the socket under each of its dies."""
        kept: list[tuple[str, float | None]] = []
        unique = []
        for zone in zones:
            try:
                value: float | None = int(self._read(zone.path)) / 1e6
            except (OSError, ValueError):
                value = None
            socket = zone.device.id.partition(".")[0]
            mirrored = "." in zone.device.id and any(
                socket == other and value and seen and min(value, seen) > AFTER_J and abs(value - seen) < SAME_J
                for other, seen in kept
            )
            kept.append((socket, value))
            if not mirrored:
                unique.append(zone)
        return unique

    def _ceiling(self, folder: Path, kind: str) -> float:
        limits = []
        for file in [*folder.glob("constraint_*_max_power_uw"), *folder.glob("constraint_*_power_limit_uw")]:
            try:
                limits.append(int(self._read(file)) / 1e6)
            except (OSError, ValueError):
                continue  # some are there and refuse to be read
        return min(max(2 * max(limits, default=0.0), 100.0), CEILING_W[kind]) if any(limits) else CEILING_W[kind]


SENSOR = Rapl
