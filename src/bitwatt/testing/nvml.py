"""A stand-in for the module pynvml: GPUs whose watts you set, on a clock of yours, and their faults.

It has the calls, errors and fields that bitwatt uses, in the shapes of nvidia-ml-py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from bitwatt.sensors.counters import Clock

ERRORS = {
    "SUCCESS": 0, "ERROR_UNINITIALIZED": 1, "ERROR_INVALID_ARGUMENT": 2, "ERROR_NOT_SUPPORTED": 3,
    "ERROR_NO_PERMISSION": 4, "ERROR_NOT_FOUND": 6, "ERROR_DRIVER_NOT_LOADED": 9,
    "ERROR_TIMEOUT": 10, "ERROR_FUNCTION_NOT_FOUND": 13,
    "ERROR_GPU_IS_LOST": 15, "ERROR_NO_DATA": 21, "ERROR_UNKNOWN": 999,
}  # fmt: skip
U32, U64 = 1, 3  # nvmlValueType_t


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        name = next((name for name, number in ERRORS.items() if number == value), f"error {value}")
        super().__init__(name.removeprefix("ERROR_").replace("_", " ").capitalize())
        self.value = value


@dataclass(eq=False)
class FakeGPU:
    """One GPU. `watts` may be changed at any time; what is in `unsupported` it does not tell, by quantity."""

    uuid: str = "GPU-00000000-0000-0000-0000-000000000000"
    name: str = "Fake H1"
    watts: float = 100.0
    limit_w: float = 700.0
    utilisation: int = 50
    memory_bytes: int = 1 << 30
    clock_mhz: int = 1500
    memory_clock_mhz: int = 2600
    throttle_bits: int = 0
    pcie: tuple[int, int] = (0, 0)
    pcie_type: int = U64
    pcie_rate_kb: tuple[int, int] = (1000, 2000)
    nvlink_kib: tuple[int, int] | None = None
    processes: Sequence[int] = ()
    instances: Sequence[str] = ()  # UUIDs of MIG instances
    unsupported: set[str] = field(default_factory=set)
    energy_mj: float = 1e6  # since the driver was loaded
    frozen: bool = False
    lost: bool = False
    fault: int | None = None  # an error that every call gives


class FakeNVML:
    """Hand it to `Nvml(nvml=...)`. `unload` and `load` take the driver away and back."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 197, 198
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 138, 139

    def __init__(self, clock: Clock, *gpus: FakeGPU) -> None:
        self.gpus = list(gpus) or [FakeGPU()]
        self.inits = 0
        self._clock, self._then, self._loaded, self._open = clock, clock.monotonic(), True, 0

    def __getattr__(self, name: str) -> int:
        if name.removeprefix("NVML_") in ERRORS:
            return ERRORS[name.removeprefix("NVML_")]
        raise AttributeError(name)

    def unload(self) -> None:
        self._loaded, self._open = False, 0

    def load(self) -> None:
        """The driver again: counters start anew."""
        self._pass()
        self._loaded = True
        for gpu in self.gpus:
            gpu.energy_mj = 0.0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self._loaded:
            raise NVMLError(ERRORS["ERROR_DRIVER_NOT_LOADED"])
        self._open += 1
        self.inits += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        if not self._open:
            raise NVMLError(ERRORS["ERROR_UNINITIALIZED"])
        self._open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGPU:  # noqa: N802
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: N802
        for gpu in self.gpus:
            if gpu.uuid == uuid:
                return self._alive(gpu)
            if uuid in gpu.instances:
                return (gpu, uuid)
        raise NVMLError(ERRORS["ERROR_NOT_FOUND"])

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, instance: tuple[FakeGPU, str]) -> FakeGPU:  # noqa: N802
        return instance[0]

    def nvmlDeviceGetUUID(self, gpu: FakeGPU) -> str:  # noqa: N802
        return gpu.uuid

    def nvmlDeviceGetName(self, gpu: FakeGPU) -> str:  # noqa: N802
        return gpu.name

    def nvmlDeviceGetMigMode(self, gpu: FakeGPU) -> list[int]:  # noqa: N802
        return [int(bool(gpu.instances))] * 2

    def nvmlDeviceGetPowerManagementLimitConstraints(self, gpu: FakeGPU) -> list[int]:  # noqa: N802
        return [100_000, round(gpu.limit_w * 1e3)]

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: FakeGPU) -> int:  # noqa: N802
        self._pass()
        return int(self._alive(gpu, "energy_j").energy_mj)

    def nvmlDeviceGetPowerUsage(self, gpu: FakeGPU) -> int:  # noqa: N802
        return round(self._alive(gpu, "power_w").watts * 1e3)

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGPU) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self._alive(gpu, "utilisation").utilisation, memory=0)

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGPU) -> Any:  # noqa: N802
        return SimpleNamespace(used=self._alive(gpu, "memory_bytes").memory_bytes)

    def nvmlDeviceGetClockInfo(self, gpu: FakeGPU, kind: int) -> int:  # noqa: N802
        self._alive(gpu, "clock_hz")
        return gpu.clock_mhz if kind == self.NVML_CLOCK_SM else gpu.memory_clock_mhz

    def nvmlDeviceGetCurrentClocksEventReasons(self, gpu: FakeGPU) -> int:  # noqa: N802
        return self._alive(gpu, "throttled").throttle_bits

    nvmlDeviceGetCurrentClocksThrottleReasons = nvmlDeviceGetCurrentClocksEventReasons  # noqa: N815

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGPU) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in self._alive(gpu, "other_processes").processes]

    def nvmlDeviceGetPcieThroughput(self, gpu: FakeGPU, way: int) -> int:  # noqa: N802
        return self._alive(gpu, "pcie").pcie_rate_kb[way]

    def nvmlDeviceGetFieldValues(self, gpu: FakeGPU, fields: Sequence[tuple[int, int]]) -> list[Any]:  # noqa: N802
        return [self._field(self._alive(gpu), number) for number, _ in fields]

    def _field(self, gpu: FakeGPU, number: int) -> Any:
        links = gpu.nvlink_kib
        known = {
            138: None if links is None else (links[0], U64),
            139: None if links is None else (links[1], U64),
            186: None if "instant" in gpu.unsupported else (round(gpu.watts * 1e3), U32),
            197: None if "pcie" in gpu.unsupported else (gpu.pcie[0], gpu.pcie_type),
            198: None if "pcie" in gpu.unsupported else (gpu.pcie[1], gpu.pcie_type),
        }.get(number)
        if known is None:
            return SimpleNamespace(nvmlReturn=ERRORS["ERROR_NOT_SUPPORTED"], valueType=0, value=None)
        value, kind = known
        return SimpleNamespace(nvmlReturn=0, valueType=kind, value=SimpleNamespace(uiVal=value % 2**32, ullVal=value))

    def _alive(self, gpu: FakeGPU, quantity: str = "") -> FakeGPU:
        if not self._open:
            raise NVMLError(ERRORS["ERROR_UNINITIALIZED"])
        if gpu.lost or gpu.fault is not None:
            raise NVMLError(ERRORS["ERROR_GPU_IS_LOST"] if gpu.fault is None else gpu.fault)
        if quantity in gpu.unsupported:
            raise NVMLError(ERRORS["ERROR_NOT_SUPPORTED"])
        return gpu

    def _pass(self) -> None:
        """Counters go on with the time that has passed."""
        now = self._clock.monotonic()
        for gpu in self.gpus:
            if not gpu.frozen:
                gpu.energy_mj += gpu.watts * max(now - self._then, 0.0) * 1e3
        self._then = now
