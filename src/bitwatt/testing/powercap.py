"""A powercap tree in a folder of yours, with counters that you move, and its faults."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

#: What the kernel says of a package of 2^32 counts.
RANGE_UJ = 262_143_328_850


class FakePowercap:
    """Zones by their folder's name, as the kernel lays them out under /sys/class/powercap."""

    def __init__(self, root: Path, zones: Mapping[str, str], range_uj: int = RANGE_UJ) -> None:
        self.root, self.range_uj = root, range_uj
        self._denied: set[Path] = set()
        for zone, name in zones.items():
            folder = root / zone
            folder.mkdir(parents=True)
            (folder / "name").write_text(f"{name}\n")
            (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
            (folder / "energy_uj").write_text("0\n")

    def set(self, zone: str, joules: float) -> None:
        """The counter as it stands; you wrap it."""
        (self.root / zone / "energy_uj").write_text(f"{round(joules * 1e6)}\n")

    def draw(self, zone: str, joules: float) -> None:
        """Draw so much more, wrapping as the hardware does."""
        now = int((self.root / zone / "energy_uj").read_text()) + round(joules * 1e6)
        (self.root / zone / "energy_uj").write_text(f"{now % self.range_uj}\n")

    def reset(self, zone: str, joules: float = 0.0) -> None:
        """Start again from nothing, as after a suspension or a reload of the driver."""
        self.set(zone, joules)

    def vanish(self, zone: str) -> None:
        (self.root / zone).rename(self.root / f".{zone}")

    def come_back(self, zone: str) -> None:
        (self.root / f".{zone}").rename(self.root / zone)

    def deny(self, zone: str) -> None:
        """EACCES from now on, for whoever reads through `read` (root is never denied by a file's mode)."""
        self._denied.add(self.root / zone / "energy_uj")

    def allow(self, zone: str) -> None:
        self._denied.discard(self.root / zone / "energy_uj")

    def read(self, path: Path) -> str:
        """Give this to the sensor as `read`."""
        if path in self._denied:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return path.read_text()


def fake_powercap(root: Path, zones: Mapping[str, str] | None = None, *, range_uj: int = RANGE_UJ) -> FakePowercap:
    """One package with its memory, unless you say which zones (folder -> name)."""
    return FakePowercap(root, zones or {"intel-rapl:0": "package-0", "intel-rapl:0:0": "dram"}, range_uj)
