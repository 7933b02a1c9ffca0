"""NVIDIA's GPUs by the driver's library: energy, power, use, traffic, what holds them back. CUDA is not started."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bitwatt.readings import Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock, Counter, Power, Tally, implausible
from bitwatt.sensors.tree import SHARE_AT_ENDS, family
from bitwatt.sensors.visible import chosen

#: More than any module draws, where the driver does not tell its limit; else twice that.
CEILING_W = 3000.0
#: The counter is in millijoules, but moves only some ten times a second.
RESOLUTION_S = 0.1
#: What changes slowly, or is dear to ask for, is asked for so often; the dearer, the seldomer, so that it takes no more
#: than this share of a core, but once in so many seconds. Bytes on links are asked for as often as that share lets.
SLOW_S, SHARE, SELDOM_S = 10.0, 1e-4, 30.0
#: A GPU or driver that is lost is looked for so often.
RETRY_S = 5.0
THROTTLES = {
    0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown", 0x80: "power brake", 0x200: "board limit", 0x400: "reliability",
}  # fmt: skip
#: Fields that count bytes: sent, received, scope (the highest number: all links together), bytes of one count.
TRAFFIC = {
    "pcie": ("NVML_FI_DEV_PCIE_COUNT_TX_BYTES", "NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 0, 1),
    "nvlink": ("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 0xFFFFFFFF, 1024),
}
#: How a field's value is kept (nvmlValueType_t), for those that whole counts come in; the first has 32 bits only.
VALUES = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal"}


class Gpu:
    """One GPU: what is known of it, and what it cannot tell."""

    def __init__(self, uuid: str, name: str, ceiling_w: float, scope: str, clock: Clock) -> None:
        self.uuid, self.scope = uuid, scope
        self.device = Device(f"gpu:{uuid}", "gpu", name, ceiling_w, RESOLUTION_S)
        self.counter: Counter | None = Counter(unit_j=1e-3, ceiling_w=ceiling_w, resolution_s=RESOLUTION_S, clock=clock)
        self.power = Power(ceiling_w=ceiling_w, clock=clock)
        self.tallies: dict[str, Tally] = {}
        self.unsupported: set[str] = set()
        self.slow_due = float("-inf")
        self.traffic_due = self.traffic_soonest = float("-inf")
        self.handle: Any = None


class Nvml:
    name = "nvml"
    source = "NVML: the GPU's energy counter, or its power added up where it has none"

    def __init__(
        self,
        nvml: Any = None,
        *,
        visible: str | None = None,
        pid: int | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._nvml, self._pid, self._clock = nvml, pid, clock
        self._visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        self._gpus: list[Gpu] = []
        self._owner: int | None = None  # the process whose connection this is
        self._tried = float("-inf")

    def why_absent(self) -> str | None:
        if self._nvml is None and find_spec("pynvml") is None:
            driver = (
                "an NVIDIA driver is loaded"
                if Path("/proc/driver/nvidia/version").exists()
                else "no NVIDIA driver here"
            )
            return f"nvidia-ml-py is not installed ({driver}): pip install nvidia-ml-py"
        nvml = self._module()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            return f"the NVIDIA driver does not answer: {error}"
        try:
            if nvml.nvmlDeviceGetCount() == 0:
                return "the NVIDIA driver is there, but no GPU"
            if not chosen(nvml, self._visible)[0]:
                return f"CUDA_VISIBLE_DEVICES={self._visible} leaves no GPU"
        except nvml.NVMLError as error:
            return f"the NVIDIA driver does not list its GPUs: {error}"
        finally:
            nvml.nvmlShutdown()
        return None

    def open(self) -> list[Device]:
        self.close()
        nvml = self._module()
        nvml.nvmlInit()
        self._owner = os.getpid()
        picked, notes = chosen(nvml, self._visible)
        for handle, slices in picked:
            uuid, name = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)
            gpu = Gpu(uuid, name, self._ceiling(handle), self._scope(handle, name, slices, notes), self._clock)
            gpu.handle = handle
            self._gpus.append(gpu)
        return [gpu.device for gpu in self._gpus]

    def read(self) -> list[Reading]:
        self._reconnect()
        counted = [self._count(gpu) for gpu in self._gpus]  # first, since the caller has looked at the clock just now
        return [
            reading
            for gpu, (value, why) in zip(self._gpus, counted, strict=True)
            for reading in self._read(gpu, value, why)
        ]

    def look(self) -> list[Reading]:
        """All but the energy counter, which is the dearest to read: 3.5 ms on an H200, where power takes 0.05 ms. Where
        power is added up, that is done here as well."""
        self._reconnect()
        counters = [gpu for gpu in self._gpus if gpu.counter is not None]
        uncounted = [gpu for gpu in self._gpus if gpu.counter is None]
        readings = [reading for gpu in counters for reading in self._levels(gpu, *self._watts(gpu), ends=False)]
        return readings + [reading for gpu in uncounted for reading in self._read(gpu, None, "", ends=False)]

    def glance(self) -> list[Reading]:
        """Whether GPUs are at work: the driver tells it of the last part of a second only, so that idle time is as
        true as this is frequent."""
        self._reconnect()
        asked = [(gpu, *self._ask(gpu, "utilisation", partial(self._busy, gpu))) for gpu in self._gpus]
        return [Reading(gpu.device.id, "utilisation", value) for gpu, value, _ in asked if value is not None]

    def _busy(self, gpu: Gpu) -> float:
        return float(self._module().nvmlDeviceGetUtilizationRates(gpu.handle).gpu) / 100

    def ends(self) -> list[Reading]:
        """Levels that are asked for slowly: of a short run they would be missed."""
        return [reading for gpu in self._gpus for reading in self._slow(gpu)]

    def close(self) -> None:
        self._leave()
        self._gpus = []

    def _leave(self) -> None:
        if self._owner == os.getpid():
            with contextlib.suppress(self._module().NVMLError):  # the driver may have gone, and the connection with it
                self._module().nvmlShutdown()
        self._owner = None

    def _module(self) -> Any:
        if self._nvml is None:
            import pynvml

            self._nvml = pynvml
        return self._nvml

    def _reconnect(self) -> None:
        """Handles and the connection do not survive a fork."""
        if self._owner not in (None, os.getpid()):
            self._connect()

    def _connect(self) -> None:
        """Again, after a fork or when the driver was lost; handles from before are worth nothing."""
        nvml = self._module()
        self._leave()
        self._tried = self._clock.monotonic()
        for gpu in self._gpus:
            gpu.handle = None
        with contextlib.suppress(nvml.NVMLError):  # tried again a little later
            nvml.nvmlInit()
            self._owner = os.getpid()
        for gpu in self._gpus if self._owner is not None else []:
            with contextlib.suppress(nvml.NVMLError):
                gpu.handle = nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)

    def _read(self, gpu: Gpu, count: int | None, why_no_count: str, *, ends: bool = True) -> list[Reading]:
        watts, power_note = self._watts(gpu)
        total, note = self._energy(gpu, count, why_no_count, watts, power_note)
        if gpu.scope:
            note, gpu.scope = "; ".join(filter(None, [note, gpu.scope])), ""
        levels = self._levels(gpu, watts, power_note, ends=ends)
        return [Reading(gpu.device.id, "energy_j", total, note=note), *levels]

    def _levels(self, gpu: Gpu, watts: float | None, power_note: str, *, ends: bool) -> list[Reading]:
        nvml, id, readings = self._module(), gpu.device.id, list[Reading]()
        slowly = self._clock.monotonic() >= gpu.slow_due
        if "power_w" not in gpu.unsupported:
            readings.append(Reading(id, "power_w", watts, note=power_note))
        ask: dict[str, Callable[[], float]] = {"utilisation": partial(self._busy, gpu)}
        if ends or slowly:
            ask["memory_bytes"] = lambda: nvml.nvmlDeviceGetMemoryInfo(gpu.handle).used
        if slowly:
            ask["clock_hz"] = lambda: nvml.nvmlDeviceGetClockInfo(gpu.handle, nvml.NVML_CLOCK_SM) * 1e6
            ask["memory_clock_hz"] = lambda: nvml.nvmlDeviceGetClockInfo(gpu.handle, nvml.NVML_CLOCK_MEM) * 1e6
        for quantity, question in ask.items():
            value, why = self._ask(gpu, quantity, question)
            if quantity not in gpu.unsupported:
                readings.append(Reading(id, quantity, value, note=why))
        readings += self._traffic(gpu, ends)
        if slowly:
            now, spent = self._clock.monotonic(), time.thread_time()
            readings += self._slow(gpu)
            gpu.slow_due = now + min(max(SLOW_S, (time.thread_time() - spent) / SHARE), SELDOM_S)
        return readings

    def _slow(self, gpu: Gpu) -> list[Reading]:
        return self._throttled(gpu) + self._others(gpu) + self._rates(gpu)

    def _ask(self, gpu: Gpu, quantity: str, question: Callable[[], Any]) -> tuple[Any, str]:
        """An answer, or None and why. What a GPU does not have is not asked for again."""
        nvml = self._module()
        if quantity in gpu.unsupported:
            return None, "not supported"
        if gpu.handle is None:
            self._retry()
        if gpu.handle is None:
            return None, f"{gpu.device.name} is lost, or its driver"
        try:
            return question(), ""
        except nvml.NVMLError as error:
            if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
                gpu.unsupported.add(quantity)
            elif error.value not in (nvml.NVML_ERROR_NO_PERMISSION, nvml.NVML_ERROR_TIMEOUT, nvml.NVML_ERROR_NO_DATA):
                self._retry()
            return None, f"{gpu.device.name} does not tell its {quantity}: {error}"

    def _retry(self) -> None:
        if self._clock.monotonic() - self._tried >= RETRY_S:
            self._connect()

    def _watts(self, gpu: Gpu) -> tuple[float | None, str]:
        """The instant's power; the older call gives the mean of a second on newer GPUs."""
        nvml, watts, why = self._module(), None, ""
        if "instant" not in gpu.unsupported:
            watts, why = self._ask(gpu, "instant", lambda: self._field(gpu, "NVML_FI_DEV_POWER_INSTANT") / 1e3)
        if watts is None and "instant" in gpu.unsupported:
            watts, why = self._ask(gpu, "power_w", lambda: nvml.nvmlDeviceGetPowerUsage(gpu.handle) / 1e3)
        ceiling = gpu.device.ceiling_w or CEILING_W
        if watts is not None and not 0 < watts <= ceiling:
            return None, implausible(watts, ceiling)
        return watts, why

    def _count(self, gpu: Gpu) -> tuple[int | None, str]:
        if gpu.counter is None:
            return None, ""
        nvml = self._module()
        return self._ask(gpu, "energy_j", lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu.handle))

    def _energy(
        self, gpu: Gpu, count: int | None, why_no_count: str, watts: float | None, why_no_watts: str
    ) -> tuple[float | None, str]:
        if gpu.counter is not None:
            if count is not None:
                total, note = gpu.counter.count(count)
                return (total, note) if total is not None else gpu.counter.lost(note, watts)
            if "energy_j" not in gpu.unsupported or gpu.counter.begun:
                return gpu.counter.lost(why_no_count, watts)
            gpu.counter = None
            gpu.scope = "; ".join(filter(None, ["this GPU has no energy counter: its power is added up", gpu.scope]))
        if watts is None:
            return None, why_no_watts or "neither energy nor power is told"
        return gpu.power.sample(watts)

    def _field(self, gpu: Gpu, name: str, scope: int = 0, *, wide: bool = False) -> int:
        """One of the driver's numbered values; NVMLError where it has none, or none that is `wide` enough."""
        nvml = self._module()
        number = getattr(nvml, name, None)
        if number is None:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        field = nvml.nvmlDeviceGetFieldValues(gpu.handle, [(number, scope)])[0]
        if field.nvmlReturn not in (nvml.NVML_SUCCESS, nvml.NVML_ERROR_INVALID_ARGUMENT):
            raise nvml.NVMLError(field.nvmlReturn)
        # Drivers that are older than the field call it an invalid argument.
        if field.nvmlReturn or field.valueType not in VALUES or (wide and VALUES[field.valueType] == "uiVal"):
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        return int(getattr(field.value, VALUES[field.valueType]))

    def _traffic(self, gpu: Gpu, ends: bool) -> list[Reading]:
        """Bytes on links since `open`. Counters of 32 bits wrap several times a second, unseen: they are none."""
        now, spent = self._clock.monotonic(), time.thread_time()
        if now < (gpu.traffic_soonest if ends else gpu.traffic_due):
            return []
        readings = []
        for link, (sent, received, scope, unit) in TRAFFIC.items():
            for field, quantity in ((sent, f"{link}_sent_bytes"), (received, f"{link}_received_bytes")):
                value, why = self._ask(gpu, quantity, partial(self._field, gpu, field, scope, wide=True))
                if quantity not in gpu.unsupported:
                    total = None if value is None else gpu.tallies.setdefault(quantity, Tally()).count(value * unit)
                    readings.append(Reading(gpu.device.id, quantity, total, note=why))
        spent = time.thread_time() - spent
        gpu.traffic_due, gpu.traffic_soonest = now + min(spent / SHARE, SELDOM_S), now + spent / SHARE_AT_ENDS
        return readings

    def _rates(self, gpu: Gpu) -> list[Reading]:
        """Where PCIe's bytes are not counted, what went through in the 20 ms that the driver takes to look."""
        nvml, readings = self._module(), []
        for way, counter in (("sent", nvml.NVML_PCIE_UTIL_TX_BYTES), ("received", nvml.NVML_PCIE_UTIL_RX_BYTES)):
            if f"pcie_{way}_bytes" in gpu.unsupported:
                quantity = f"pcie_{way}_bytes_per_s"
                rate, why = self._ask(gpu, quantity, partial(nvml.nvmlDeviceGetPcieThroughput, gpu.handle, counter))
                if quantity not in gpu.unsupported:
                    readings.append(Reading(gpu.device.id, quantity, None if rate is None else rate * 1e3, note=why))
        return readings

    def _throttled(self, gpu: Gpu) -> list[Reading]:
        nvml = self._module()
        # Drivers before 535 know it by its old name only.
        names = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        bits, why = self._ask(gpu, "throttled", lambda: _first(nvml, names, gpu.handle))
        if "throttled" in gpu.unsupported:
            return []
        reasons = [] if bits is None else [reason for bit, reason in THROTTLES.items() if bits & bit]
        value = None if bits is None else float(bool(reasons))
        return [Reading(gpu.device.id, "throttled", value, note=why or ", ".join(reasons))]

    def _others(self, gpu: Gpu) -> list[Reading]:
        """Processes on the GPU that are not of this tree: their energy is in the counter, too."""
        nvml = self._module()
        running, why = self._ask(gpu, "other_processes", lambda: nvml.nvmlDeviceGetComputeRunningProcesses(gpu.handle))
        if "other_processes" in gpu.unsupported:
            return []
        if running is None:
            return [Reading(gpu.device.id, "other_processes", None, note=why)]
        others = {process.pid for process in running} - family(self._pid or os.getpid())
        unseen = {pid for pid in others if not Path(f"/proc/{pid}").exists()}
        note = f"{len(unseen)} cannot be seen from here; in a container one may be this program" if unseen else ""
        return [Reading(gpu.device.id, "other_processes", float(len(others)), note=note)]

    def _ceiling(self, handle: Any) -> float:
        nvml = self._module()
        try:
            return max(2e-3 * float(nvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1]), 50.0)
        except nvml.NVMLError:
            return CEILING_W

    def _scope(self, handle: Any, name: str, slices: list[str], notes: list[str]) -> str:
        """What the counter covers beside this program's part of the GPU."""
        nvml, said = self._module(), list(notes)
        try:
            shared = nvml.nvmlDeviceGetMigMode(handle)[0] == 1
        except nvml.NVMLError:
            shared = False
        if slices or shared:
            of = f" ({', '.join(slices)})" if slices else ""
            said.append(f"the GPU is cut into MIG instances{of}: energy, power and traffic are those of all of it")
        if "GH200" in name or "GB200" in name:
            said.append("on this module the counter may cover the processor and its memory, too")
        return "; ".join(said)


def _first(module: Any, names: tuple[str, ...], handle: Any) -> int:
    """The first call that the driver knows."""
    for name in names[:-1]:
        try:
            return int(getattr(module, name)(handle))
        except module.NVMLError as error:
            if error.value != module.NVML_ERROR_FUNCTION_NOT_FOUND:
                raise
    return int(getattr(module, names[-1])(handle))


SENSOR = Nvml
