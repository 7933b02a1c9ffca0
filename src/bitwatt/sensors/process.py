"""What the process tree and its machine use: CPU seconds, memory, bytes; and what else goes on: load, steal, stalls."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from bitwatt.readings import CHILD_PEAK, OWN_PEAK, Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock, Tally
from bitwatt.sensors.tree import PROC, System, Tree, TreeSensor, Use, system, text
from bitwatt.sensors.waiting import Wanted

IO = ("io_read_bytes", "io_written_bytes", "disk_read_bytes", "disk_written_bytes")
PRESSURE = {"cpu": "cpu_stall_seconds", "memory": "memory_stall_seconds", "io": "io_stall_seconds"}
#: What the host tells is read where a run begins or ends, and so often in between.
HOST_S = 5.0
#: Living children whose highest memory is asked for.
CHILDREN = 32
NETWORK = ("network_received_bytes", "network_sent_bytes")


class Process(TreeSensor):
    name = "process"
    source = "the kernel's accounts of processes"

    def __init__(
        self, pid: int | None = None, *, proc: Path = PROC, system: System | None = None, clock: Clock = SYSTEM
    ) -> None:
        self._pid, self._proc, self._given, self._clock = pid, proc, system, clock
        self._tallies: dict[str, Tally] = {}

    def why_absent(self) -> str | None:
        if (self._given or system()) is None:
            return "there is no /proc here, and psutil is not installed: pip install psutil"
        return None

    def open(self) -> list[Device]:
        found = self._given or system()
        if found is None:
            return []
        self._pid = os.getpid() if self._pid is None else self._pid
        self._tree = Tree(self._pid, found, self._clock)
        self._wanted = Wanted(self._pid, self._proc)
        self._tallies = {}
        self._busy: tuple[float, float] | None = None
        self._host()  # totals run from here
        return [Device("process", "process", f"process {self._pid} and its children"), Device("host", "host")]

    def _read(self, use: Use, *, thoroughly: bool) -> list[Reading]:
        now = self._clock.monotonic()
        values: dict[str, float] = {"cpu_seconds": use.cpu_s, "memory_bytes": use.memory_bytes}
        values["children_cpu_seconds"] = use.children_s
        values["processes"] = use.processes
        values.update(zip(IO, use.io, strict=False))
        stalled = self._stalled("cpu")
        wanted = self._wanted.look(now, stalled, use.pids)
        if wanted is not None:
            values["wanted_seconds"] = wanted
        readings = [Reading("process", quantity, value) for quantity, value in values.items()]
        if thoroughly:
            readings += [Reading("process", name, value) for name, value in self._peaks(use).items()]
        if thoroughly or now >= self._host_due:
            readings += [Reading("host", quantity, value) for quantity, value in self._host().items()]
        return readings

    def ends(self) -> list[Reading]:
        """The memory that no other process shares takes milliseconds to add up."""
        if self._tree is None:
            return []
        unique = [_unique(self._proc, pid) for pid in self._tree.pids]
        known = [value for value in unique if value is not None]
        note = "" if known else "the system does not tell it of these processes"
        readings = [Reading("process", "unique_memory_bytes", sum(known) if known else None, note=note)]
        return readings

    def _peaks(self, use: Use) -> dict[str, float]:
        """The most that the process held since it was started, and the most that one child did, dead or alive: the
        kernel keeps both, however seldom anybody looks."""
        first = self._pid or 0
        children = [_peak(self._proc, pid) or 0 for pid in sorted(use.pids - {first})[:CHILDREN]]
        if first == os.getpid():
            children.append(_most_of_the_dead())
        own = _peak(self._proc, first)
        found = {OWN_PEAK: own or 0, CHILD_PEAK: max(children, default=0)}
        return {name: float(peak) for name, peak in found.items() if peak}

    def _host(self) -> dict[str, float]:
        self._host_due = self._clock.monotonic() + HOST_S
        values: dict[str, float] = {}
        if hasattr(os, "getloadavg"):
            values["load"] = os.getloadavg()[0]
        values.update(self._stat())
        for name, quantity in PRESSURE.items():
            total = self._stalled(name)
            if total is not None:
                values[quantity] = self._tally(quantity, total)
        network = _network(self._proc)
        if network is not None:
            values.update(
                (quantity, self._tally(quantity, bytes)) for quantity, bytes in zip(NETWORK, network, strict=True)
            )
        return values

    def _stat(self) -> dict[str, float]:
        """Of all processors: the share that was busy since the last reading, and the time a hypervisor took away."""
        try:
            first = text(f"{self._proc}/stat").partition("\n")[0]
        except OSError:
            return {}
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        times = [int(field) * tick_s for field in first.split()[1:9]]
        total, idle, stolen = sum(times), times[3] + times[4], times[7]
        values = {"steal_seconds": self._tally("steal_seconds", stolen)}
        before, self._busy = self._busy, (total, idle)
        if before is not None and total > before[0]:
            values["utilisation"] = min(max(1 - (idle - before[1]) / (total - before[0]), 0.0), 1.0)
        return values

    def _stalled(self, name: str) -> float | None:
        """Seconds in which some task waited: `some avg10=0.00 avg60=0.00 avg300=0.00 total=<microseconds>`."""
        try:
            return int(text(f"{self._proc}/pressure/{name}").partition("\n")[0].rpartition("total=")[2]) / 1e6
        except (OSError, ValueError):
            return None  # the kernel was built or started without it

    def _tally(self, quantity: str, value: float) -> float:
        return self._tallies.setdefault(quantity, Tally()).count(value)


def _network(proc: Path) -> tuple[int, int] | None:
    """Received and sent, over all interfaces but the loop."""
    try:
        lines = text(f"{proc}/net/dev").splitlines()[2:]
    except OSError:
        return _network_elsewhere()
    received = sent = 0
    for name, fields in ((line.partition(":")[0].strip(), line.partition(":")[2].split()) for line in lines):
        if name != "lo":
            received, sent = received + int(fields[0]), sent + int(fields[8])
    return received, sent


def _network_elsewhere() -> tuple[int, int] | None:
    if find_spec("psutil") is None:
        return None
    import psutil

    others = [counts for name, counts in psutil.net_io_counters(pernic=True).items() if not name.startswith("lo")]
    return sum(counts.bytes_recv for counts in others), sum(counts.bytes_sent for counts in others)


def _unique(proc: Path, pid: int) -> int | None:
    if proc.exists():
        try:
            lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:  # it has ended, or is another user's
            return None
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
    if find_spec("psutil") is None:
        return None
    import psutil

    try:
        return int(psutil.Process(pid).memory_full_info().uss)
    except psutil.Error:
        return None


def _peak(proc: Path, pid: int) -> int | None:
    try:
        status = (proc / str(pid) / "status").read_text()
    except OSError:
        return None
    found = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) * 1024 if found else None


def _most_of_the_dead() -> int:
    """Of children that were waited for, the most that one held. A child begins as a copy of its parent, so that it is
    no less than what the parent held then."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


SENSOR = Process
