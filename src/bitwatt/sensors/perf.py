"""The same RAPL counters through the kernel's perf events, for where powercap may not be read but perf may."""

from __future__ import annotations

import os
import platform
import struct
from pathlib import Path

from bitwatt.readings import Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock, Counter
from bitwatt.sensors.rapl import CEILING_W, RESOLUTION_S

ROOT = Path("/sys")
EVENTS = {"cpu": "energy-pkg", "dram": "energy-ram"}
#: perf_event_open has no wrapper in the C library. The power events exist on x86 alone.
SYSCALL = {"x86_64": 298, "i686": 336}
FIX = (
    "sudo sysctl kernel.perf_event_paranoid=0 (until the next boot; a file in /etc/sysctl.d keeps it). It lets every "
    "user of this machine watch the processor's events system-wide, which tells something of what others run"
)


class Perf:
    name = "perf"
    source = "RAPL counters through perf events"
    order = 1  # rapl speaks first: it costs less, and both read the same registers

    def __init__(self, root: Path = ROOT, clock: Clock = SYSTEM) -> None:
        self._root, self._clock = root, clock
        self._pmu = root / "bus/event_source/devices/power"
        self._open: list[tuple[int, Device, Counter]] = []

    def why_absent(self) -> str | None:
        if platform.machine() not in SYSCALL:
            return f"perf has power events on x86 alone, and this is {platform.machine()}"
        if not self._pmu.is_dir():
            return f"{self._pmu} does not exist: a virtual machine, a container, or a processor without RAPL"
        try:
            kind, config, _ = self._event("energy-pkg")
            os.close(open_event(kind, config, self._cpus()[0]))
        except PermissionError:
            return f"the kernel does not let this user read power events; to let it: {FIX}"
        except (OSError, ValueError) as error:
            return f"power events cannot be opened: {error}"
        return None

    def open(self) -> list[Device]:
        self.close()
        for kind, event in EVENTS.items():
            try:
                type, config, scale = self._event(event)
            except OSError:
                continue  # many processors have no counter for memory
            for cpu in self._cpus():
                device = Device(f"{kind}:{self._socket(cpu)}", kind, event, CEILING_W[kind], RESOLUTION_S)
                descriptor = open_event(type, config, cpu)
                # The kernel unwraps these for us into 64 bits.
                counter = Counter(unit_j=scale, ceiling_w=CEILING_W[kind], resolution_s=RESOLUTION_S, clock=self._clock)
                self._open.append((descriptor, device, counter))
        return [device for _, device, _ in self._open]

    def read(self) -> list[Reading]:
        readings = []
        for descriptor, device, counter in self._open:
            try:
                total, note = counter.count(int.from_bytes(os.read(descriptor, 8), "little"))
            except OSError as error:
                total, note = counter.lost(f"{device.id} cannot be read: {error}")
            readings.append(Reading(device.id, "energy_j", total, note=note))
        return readings

    def close(self) -> None:
        for descriptor, _, _ in self._open:
            os.close(descriptor)
        self._open = []

    def _event(self, name: str) -> tuple[int, int, float]:
        """The numbers by which the kernel knows an event, and the joules of one count."""
        terms = dict(term.split("=") for term in (self._pmu / "events" / name).read_text().strip().split(","))
        scale = float((self._pmu / "events" / f"{name}.scale").read_text())
        return int((self._pmu / "type").read_text()), int(terms["event"], 0), scale

    def _cpus(self) -> list[int]:
        """One for each register: the kernel says which."""
        cpus: list[int] = []
        for part in (self._pmu / "cpumask").read_text().strip().split(","):
            first, _, last = part.partition("-")
            cpus += range(int(first), int(last or first) + 1)
        return cpus

    def _socket(self, cpu: int) -> str:
        topology = self._root / f"devices/system/cpu/cpu{cpu}/topology"
        socket = (topology / "physical_package_id").read_text().strip()
        others = [other for other in self._cpus() if other != cpu]
        shared = any(
            (self._root / f"devices/system/cpu/cpu{other}/topology/physical_package_id").read_text().strip() == socket
            for other in others
        )
        return f"{socket}.{(topology / 'die_id').read_text().strip()}" if shared else socket


def open_event(type: int, config: int, cpu: int) -> int:
    """A descriptor that counts one event on one CPU, for all processes."""
    import ctypes

    attributes = struct.pack("<IIQ", type, 64, config).ljust(64, b"\0")  # 64: the first version of perf_event_attr
    libc = ctypes.CDLL(None, use_errno=True)
    close_on_exec = 8
    number = SYSCALL[platform.machine()]
    descriptor: int = libc.syscall(number, attributes, -1, cpu, -1, ctypes.c_ulong(close_on_exec))
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return descriptor


SENSOR = Perf
