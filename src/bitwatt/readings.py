"""What the meter writes down: values as sensors read them, and what a run used, each with how it came to be known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: How a number came: read from an instrument, shared out of a measured total by time, or worked out from a model.
MEASURED, APPORTIONED, MODELLED = "measured", "apportioned", "modelled"
#: Behind one of these: of a part of the run's time.
IN_PART = "in part"

#: Running totals since the sensor was opened; every other quantity is a level at one moment.
#: `io_*_bytes` are by calls of the program: from disk, page cache, pipes and sockets; `disk_*_bytes` from disk alone.
TOTALS = frozenset([
    "energy_j", "cpu_seconds", "children_cpu_seconds", "wanted_seconds",
    "steal_seconds", "cpu_stall_seconds", "memory_stall_seconds", "io_stall_seconds",
    "io_read_bytes", "io_written_bytes", "disk_read_bytes", "disk_written_bytes",
    "network_sent_bytes", "network_received_bytes",
    "pcie_sent_bytes", "pcie_received_bytes", "nvlink_sent_bytes", "nvlink_received_bytes",
])  # fmt: skip


#: The most memory that the kernel has seen in the first process of the tree, and in any one of its children: ever.
OWN_PEAK, CHILD_PEAK = "own_peak_bytes", "child_peak_bytes"
#: CPU seconds of children from which they are told of.
CHILDREN_S = 0.1


@dataclass(frozen=True, slots=True)
class Device:
    """Something that draws power or has a level to read. `id` is the same in every process of the machine."""

    id: str  # cpu:0, dram:0, gpu:GPU-5f1c..., host, process
    kind: str  # cpu, dram, gpu, host, process
    name: str = ""  # what the vendor calls it
    ceiling_w: float | None = None  # more than it can draw: a step above it is no energy
    resolution_s: float | None = None  # how often its counter or level changes


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one device. None is "there is such a value, but not now"; `note` says why."""

    device: str
    quantity: str  # with its unit: energy_j, power_w, utilisation (0 to 1), memory_bytes, clock_hz, cpu_seconds, ...
    value: float | None
    how: str = MEASURED
    note: str = ""


@dataclass(frozen=True, slots=True)
class Energy:
    """What one device drew during a run. `energy_j` is None where nobody knows."""

    device: Device
    energy_j: float | None
    how: str  # measured, modelled
    source: str  # the sensor, and for a model its formula with the numbers in it
    seconds: float = 0.0  # covered by readings
    mean_w: float | None = None
    peak_w: float | None = None
    idle_w: float | None = None  # the baseline, where one was measured
    idle_seconds: float | None = None
    idle_j: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class PhaseEnergy:
    """A phase's share of the energy, by device, and how it was found; a device that is modelled says so itself."""

    energy_j: Mapping[str, float]
    how: str  # measured, apportioned; modelled where all of it is
    seconds: float
    device_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Metered:
    """What a run used of the machine. Nothing here is a price: carbon and money come later, from settings."""

    seconds: float
    energy: tuple[Energy, ...] = ()
    phases: Mapping[str, PhaseEnergy] = field(default_factory=dict)
    remainder_j: Mapping[str, float] = field(default_factory=dict)  # by device: in no phase
    usage: Mapping[str, float] = field(default_factory=dict)  # of the process tree and the host, by name with unit
    series: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)  # device -> (second, watts)
    overhead_s: float = 0.0  # CPU time of the meter itself
    interval_s: float | None = None  # mean time between two looks; None where only the ends were read
    settings: Mapping[str, str] = field(default_factory=dict)  # what was configured, and where
    grid: Mapping[str, Any] = field(default_factory=dict)  # what a service said of the electricity when it ended
    notes: tuple[str, ...] = ()

    @property
    def has_children(self) -> bool:
        """Whether children did more than a moment's work: their memory was looked at now and then, and the peak of the
        tree is no less than what is told."""
        return self.usage.get("children_cpu_seconds", 0.0) >= CHILDREN_S

    @property
    def measured_j(self) -> float | None:
        """The sum over devices whose energy was measured, none twice; None where none was."""
        known = counted(part for part in self.energy if part.how == MEASURED)
        return sum(part.energy_j or 0.0 for part in known) if known else None


def counted(parts: Iterable[Energy]) -> list[Energy]:
    """Those that may be added up, of those that are known. A meter of a whole machine holds its processors and GPUs: it
    stands alone, unless they drew more, which shows that it missed some."""
    machines: dict[str, tuple[list[Energy], list[Energy]]] = {}
    for part in parts:
        if part.energy_j is not None:
            whole, inside = machines.setdefault(part.device.id.rpartition("/")[0], ([], []))  # joined: machine/device
            (whole if part.device.kind == "host" else inside).append(part)
    found = []
    for whole, inside in machines.values():
        drawn = sum(part.energy_j or 0.0 for part in inside if part.how == MEASURED)
        found += whole if sum(part.energy_j or 0.0 for part in whole) > drawn else inside
    return found


def metered_json(metered: Metered) -> dict[str, Any]:
    """For a file; `metered_of` reads it."""
    return asdict(metered)


def metered_of(fields: Mapping[str, Any]) -> Metered:
    energy = tuple(Energy(**one | {"device": Device(**one["device"])}) for one in fields["energy"])
    phases = {name: PhaseEnergy(**one) for name, one in fields["phases"].items()}
    series = {device: tuple((at, watts) for at, watts in points) for device, points in fields["series"].items()}
    known = {"energy": energy, "phases": phases, "series": series, "notes": tuple(fields["notes"])}
    return Metered(**{**fields, **known})
