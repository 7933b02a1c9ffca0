"""What this machine really does: matrix products by number format and copies in memory, timed here, kept for later.

torch where it is installed, else numpy. Each rate is the best over sizes of the median over repeats: a peak is what
can be reached, and a median is not fooled by one lucky call.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bitwatt import state

#: The longest a rate may take to measure, and how often a size is timed.
SECONDS, REPEATS = 4.0, 7


@dataclass(frozen=True, slots=True)
class Rate:
    """Operations (or bytes) a second at one size: the median of the repeats, and the slowest and quickest of them."""

    value: float
    size: int  # rows of the square matrices, or bytes copied
    repeats: int
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class Probe:
    """One device of this machine."""

    device: str
    library: str
    when: str
    rates: Mapping[str, Rate] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)  # format -> why there is no rate
    threads: int | None = None  # of a processor: how many the library used, and the cores it might have used
    cores: int | None = None


Timed = tuple[Callable[[], Any], Callable[[], None]]  # the call, and how to wait for it


def probe(*, seconds: float = SECONDS, cpu_name: str = "") -> list[Probe]:
    """The CPU, and every CUDA device that torch sees."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    if find_spec("torch") is None:
        if find_spec("numpy") is None:
            return []
        numpy: Any = importlib.import_module("numpy")
        return [_Numpy(numpy).probe(cpu_name, when, seconds)]
    torch: Any = importlib.import_module("torch")
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [_Torch(torch, place).probe(cpu_name, when, seconds) for place in ("cpu", *gpus)]


def usable_cores() -> int:
    """Those that this process may run on; two threads of one core are one, as they share its arithmetic."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = set()
    for cpu in usable:
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(topology.read_text().strip() if topology.exists() else str(cpu))
    return len(cores)


class _Library(ABC):
    """Makes the calls that are timed."""

    name = ""
    sizes: tuple[int, ...] = (512, 1024, 2048, 4096)
    copies: tuple[int, ...] = (1 << 26, 1 << 28)

    def device(self, cpu_name: str) -> str:
        return cpu_name or platform.processor() or platform.machine()

    def threads(self) -> int | None:
        """Of a processor, where the library tells."""
        return None

    @abstractmethod
    def formats(self) -> Mapping[str, Any]: ...

    @abstractmethod
    def product(self, format: str, dtype: Any, n: int) -> contextlib.AbstractContextManager[Timed]: ...

    @abstractmethod
    def copy(self, size: int) -> Timed: ...

    def probe(self, cpu_name: str, when: str, seconds: float) -> Probe:
        rates: dict[str, Rate] = {}
        skipped: dict[str, str] = {}
        for format, dtype in self.formats().items():
            try:
                rates[format] = self._best(partial(self.product, format, dtype), seconds)
            except Exception as error:  # a format that this build or device lacks
                skipped[format] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        try:
            sizes = [(size, _rate(*self.copy(size), 2.0 * size, size, seconds / 2)) for size in self.copies]
            rates["bandwidth"] = max((rate for _, rate in sizes), key=lambda rate: rate.value)
        except Exception as error:
            skipped["bandwidth"] = f"{type(error).__name__}: {error}"
        threads = self.threads()
        cores = usable_cores() if threads else None
        return Probe(self.device(cpu_name), self.name, when, rates, skipped, threads, cores)

    def _best(self, make: Callable[[int], contextlib.AbstractContextManager[Timed]], seconds: float) -> Rate:
        """Sizes grow until the next would take too long: eight times the work each."""
        best: Rate | None = None
        for n in self.sizes:
            with make(n) as timed:
                rate = _rate(*timed, 2.0 * n**3, n, seconds / 2)
            best = rate if best is None or rate.value > best.value else best
            if 8 * REPEATS * 2.0 * n**3 / rate.value > seconds:
                break
        assert best is not None
        return best


def _rate(call: Callable[[], Any], wait: Callable[[], None], work: float, size: int, seconds: float) -> Rate:
    """Calls are timed in batches of at least 10 ms, so that the clock and one wait cost nothing."""
    call()
    wait()  # the first call loads kernels and allocates
    began = time.perf_counter()
    call()
    wait()
    batch = max(1, int(0.01 / max(time.perf_counter() - began, 1e-9)))
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < REPEATS and (len(found) < 3 or time.perf_counter() - began < seconds):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        wait()
        found.append(work * batch / (time.perf_counter() - start))
    return Rate(median(found), size, len(found), min(found), max(found))


class _Numpy(_Library):
    def __init__(self, numpy: Any) -> None:
        self.numpy, self.name = numpy, f"numpy {numpy.__version__}"

    def formats(self) -> Mapping[str, Any]:
        return {"fp64": self.numpy.float64, "fp32": self.numpy.float32}

    @contextlib.contextmanager
    def product(self, format: str, dtype: Any, n: int) -> Iterator[Timed]:
        a, b = (self.numpy.random.default_rng(seed).random((n, n)).astype(dtype) for seed in (0, 1))
        out = self.numpy.empty((n, n), dtype)
        yield lambda: self.numpy.matmul(a, b, out=out), _nothing

    def copy(self, size: int) -> Timed:
        source, target = self.numpy.ones(size, self.numpy.uint8), self.numpy.zeros(size, self.numpy.uint8)
        return lambda: self.numpy.copyto(target, source), _nothing


class _Torch(_Library):
    def __init__(self, torch: Any, place: str) -> None:
        self.torch, self.place, self.name = torch, place, f"torch {torch.__version__}"
        self.cuda = place.startswith("cuda")
        if self.cuda:
            self.sizes, self.copies = (4096, 8192, 16384), (1 << 28, 1 << 30)

    def device(self, cpu_name: str) -> str:
        return str(self.torch.cuda.get_device_name(self.place)) if self.cuda else super().device(cpu_name)

    def threads(self) -> int | None:
        return None if self.cuda else int(self.torch.get_num_threads())

    def formats(self) -> Mapping[str, Any]:
        torch = self.torch
        found = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16}
        if not self.cuda:
            return found
        found |= {"fp16": torch.float16, "int8": torch.int8}
        capability = torch.cuda.get_device_capability(self.place)
        if not torch.version.hip and capability >= (8, 0):
            found["tf32"] = torch.float32
        if capability >= (8, 9) and hasattr(torch, "float8_e4m3fn"):
            found["fp8"] = torch.float8_e4m3fn
        return found

    @contextlib.contextmanager
    def product(self, format: str, dtype: Any, n: int) -> Iterator[Timed]:
        torch = self.torch
        with torch.no_grad(), self._tf32(format == "tf32"):
            a, b = (self._matrix(dtype, n) for _ in range(2))
            turned = b.t().contiguous().t() if format in ("int8", "fp8") else b  # the layout their tensor cores want
            if format == "int8":
                yield lambda: torch._int_mm(a, turned), self.wait
            elif format == "fp8":
                one = torch.ones((), device=self.place)
                yield lambda: torch._scaled_mm(a, turned, one, one, out_dtype=torch.bfloat16), self.wait
            else:
                out = torch.empty((n, n), dtype=dtype, device=self.place)
                yield lambda: torch.matmul(a, b, out=out), self.wait

    def _matrix(self, dtype: Any, n: int) -> Any:
        torch = self.torch
        if dtype == torch.int8:
            return torch.randint(-128, 128, (n, n), dtype=dtype, device=self.place)
        return torch.randn((n, n), device=self.place).to(dtype)

    @contextlib.contextmanager
    def _tf32(self, allowed: bool) -> Iterator[None]:
        before = self.torch.get_float32_matmul_precision()
        self.torch.set_float32_matmul_precision("high" if allowed else "highest")
        try:
            yield
        finally:
            self.torch.set_float32_matmul_precision(before)

    def copy(self, size: int) -> Timed:
        source = self.torch.ones(size, dtype=self.torch.uint8, device=self.place)
        target = self.torch.zeros_like(source)
        return lambda: target.copy_(source), self.wait

    def wait(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize(self.place)


def _nothing() -> None:
    """The call has already waited."""


def state_file(machine: str = "") -> Path:
    """One for each machine: home folders are shared in clusters."""
    return state.folder() / f"probe-{machine or state.machine()}.json"


def save(probes: list[Probe]) -> Path:
    """Beside what is known of other devices; whole or not at all."""
    file = state_file()
    known = _read(file)
    known.update({one.device: asdict(one) for one in probes})
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_name(f"{file.name}.{os.getpid()}")
    scratch.write_text(json.dumps(known, indent=1), encoding="utf-8")
    scratch.replace(file)
    return file


def measured(device: str, machine: str = "") -> dict[str, float]:
    """What was measured of a device, here or on the machine of that id: format, or bandwidth -> a second. Empty where
    nothing was."""
    rates = _read(state_file(machine)).get(device, {}).get("rates", {})
    return {format: float(rate["value"]) for format, rate in rates.items()}


def _read(file: Path) -> dict[str, Any]:
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
