"""AMD's GPUs by amdsmi, the library that comes with ROCm. Not yet run on hardware."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from bitwatt.readings import Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock, Counter, Power, implausible

CEILING_W = 3000.0
RESOLUTION_S = 0.1
#: What the library gives for a value that it does not know.
UNKNOWN = (0xFFFF, 0xFFFFFFFF)


class Gpu:
    def __init__(self, handle: Any, device: Device, clock: Clock) -> None:
        self.handle, self.device = handle, device
        ceiling = device.ceiling_w or CEILING_W
        self.power = Power(ceiling_w=ceiling, clock=clock)
        self._clock, self._unit_j = clock, 0.0
        self.counted: Counter | None = None
        self.warned = False

    def counter(self, unit_j: float) -> Counter:
        """The library tells what a count is worth with each value; it stays the same."""
        if self.counted is None or unit_j != self._unit_j:
            ceiling, self._unit_j = self.device.ceiling_w or CEILING_W, unit_j
            self.counted = Counter(unit_j=unit_j, ceiling_w=ceiling, resolution_s=RESOLUTION_S, clock=self._clock)
        return self.counted


class Amd:
    name = "amd"
    source = "amdsmi: the GPU's energy accumulator, or its power added up where it has none"

    def __init__(self, smi: Any = None, clock: Clock = SYSTEM) -> None:
        self._smi, self._clock = smi, clock
        self._gpus: list[Gpu] = []
        self._owner: int | None = None

    def why_absent(self) -> str | None:
        if self._smi is None and find_spec("amdsmi") is None:
            return "amdsmi is not installed: it comes with ROCm, in share/amd_smi; pip install the version of your ROCm"
        try:
            handles = self._connect()
        except BaseException as error:  # it raises KeyError and worse on import, and leaves by SystemExit
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"amdsmi does not start: {type(error).__name__}: {error}"
        return None if handles else "amdsmi finds no GPU"

    def open(self) -> list[Device]:
        self._gpus = []
        for number, handle in enumerate(self._connect()):
            uuid = _answer(partial(self._smi.amdsmi_get_gpu_device_uuid, handle)) or f"amd-{number}"
            asic = _answer(partial(self._smi.amdsmi_get_gpu_asic_info, handle)) or {}
            name = str(asic.get("market_name", "AMD GPU"))
            self._gpus.append(Gpu(handle, Device(f"gpu:{uuid}", "gpu", name, CEILING_W, RESOLUTION_S), self._clock))
        return [gpu.device for gpu in self._gpus]

    def read(self) -> list[Reading]:
        if self._gpus and self._owner != os.getpid():
            for gpu, handle in zip(self._gpus, _answer(self._connect) or [], strict=False):
                gpu.handle = handle  # a connection does not survive a fork
        return [reading for gpu in self._gpus for reading in self._read(gpu)]

    def close(self) -> None:
        if self._gpus and self._owner == os.getpid():
            _answer(lambda: self._smi.amdsmi_shut_down())
        self._gpus = []

    def _connect(self) -> list[Any]:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints when imported
            if self._smi is None:
                import amdsmi

                self._smi = amdsmi
            self._smi.amdsmi_init()
            self._owner = os.getpid()
            return list(self._smi.amdsmi_get_processor_handles())

    def _read(self, gpu: Gpu) -> list[Reading]:
        id = gpu.device.id
        watts, note = self._watts(gpu)
        total, why = self._energy(gpu, watts, note)
        readings = [Reading(id, "energy_j", total, note=why), Reading(id, "power_w", watts, note=note)]
        activity = _answer(lambda: self._smi.amdsmi_get_gpu_activity(gpu.handle)) or {}
        busy = _number(activity.get("gfx_activity"))
        if busy is not None and 0 <= busy <= 100:
            readings.append(Reading(id, "utilisation", busy / 100))
        memory = _answer(lambda: self._smi.amdsmi_get_gpu_vram_usage(gpu.handle)) or {}
        used = _number(memory.get("vram_used"))
        if used is not None:
            readings.append(Reading(id, "memory_bytes", used * 2**20))
        return readings

    def _watts(self, gpu: Gpu) -> tuple[float | None, str]:
        told = _answer(lambda: self._smi.amdsmi_get_power_info(gpu.handle)) or {}
        names = "current_socket_power", "socket_power", "average_socket_power"  # by generation, one is known
        watts = next((value for name in names if (value := _number(told.get(name)))), None)
        if watts is None or not 0 < watts <= CEILING_W:
            return None, implausible(watts, CEILING_W)
        return watts, ""

    def _energy(self, gpu: Gpu, watts: float | None, why_no_watts: str) -> tuple[float | None, str]:
        """The accumulator; power where there is none, or while it stands still, as some of them do."""
        told = _answer(lambda: self._smi.amdsmi_get_energy_count(gpu.handle)) or {}
        count = _number(told.get("energy_accumulator", told.get("power")))  # its older name
        worth_uj = _number(told.get("counter_resolution"))
        if count is not None and worth_uj:
            counter = gpu.counter(worth_uj * 1e-6)
            total, note = counter.count(int(count))
            return (total, note) if total is not None else counter.lost(note, watts)
        if gpu.counted is not None:
            return gpu.counted.lost("the energy accumulator does not answer", watts)
        total, note = gpu.power.sample(watts) if watts is not None else (None, why_no_watts)
        if total is not None and not gpu.warned:
            gpu.warned, note = True, "this GPU tells no energy: its power is added up"
        return total, note


def _answer(question: Callable[[], Any]) -> Any:
    """What the library says, None where it fails: its exceptions are of many families."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return question()
    except Exception:
        return None


def _number(value: Any) -> float | None:
    """It says "N/A", or a number of ones, where it does not know."""
    return float(value) if isinstance(value, int | float) and value not in UNKNOWN else None


SENSOR = Amd
