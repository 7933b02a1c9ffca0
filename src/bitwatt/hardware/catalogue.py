"""What processors can do at best, by number format, from the .toml files beside this one. A device is found by the name
that its driver gives, letter for letter but for case: one that is not listed is unknown, never a neighbour."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from bitwatt.config import Settings
from bitwatt.units import format_count

DENSE, SPARSE = "dense", "sparse"
#: A run's number format -> what the catalogue calls it, for matrix products, best unit first.
MATRIX: Mapping[str, tuple[str, ...]] = {
    "float64": ("fp64_tensor", "fp64"),
    "float32": ("fp32_tensor", "fp32"),
    "tf32": ("tf32",),
    "bfloat16": ("bf16",),
    "float16": ("fp16",),
    "complex128": ("fp64_tensor", "fp64"),
    "complex64": ("fp32_tensor", "fp32"),
    "float8_e4m3fn": ("fp8",),
    "float8_e4m3fnuz": ("fp8",),
    "float8_e5m2": ("fp8",),
    "float8_e5m2fnuz": ("fp8",),
    "float4_e2m1fn_x2": ("fp4",),
    "float4_e2m1fn": ("fp4",),
    **dict.fromkeys(("int8", "uint8", "qint8", "quint8"), ("int8",)),
    **dict.fromkeys(("int4", "uint4", "quint4x2"), ("int4",)),
}
#: The same for work outside matrix units, which computes narrow floats no faster than fp32 on most devices.
VECTOR: Mapping[str, tuple[str, ...]] = {
    "float64": ("fp64",),
    "complex128": ("fp64",),
    **dict.fromkeys(("float32", "complex64", "bfloat16", "float16"), ("fp32",)),
}


@dataclass(frozen=True, slots=True)
class Peak:
    """Operations (or bytes) a second, and what that number is."""

    value: float
    format: str  # bf16, fp64_tensor, ..., bandwidth
    source: str
    kind: str = DENSE

    def __str__(self) -> str:
        work = "FLOP/s" if self.format.startswith(("fp", "bf", "tf")) else "OP/s"
        unit = "B/s" if self.format == "bandwidth" else work
        return f"{format_count(self.value, unit)} {self.format} {self.kind} ({self.source})"


@dataclass(frozen=True, slots=True)
class Chip:
    """One device as its maker describes it. `peaks` are dense; of a CPU, for all cores of a socket at base clock."""

    name: str
    kind: str  # gpu, accelerator, cpu
    peaks: Mapping[str, Peak]
    sparse: Mapping[str, Peak] = field(default_factory=dict)
    bandwidth: Peak | None = None
    memory_bytes: float | None = None
    tdp_w: float | None = None
    cores: int | None = None
    names: tuple[str, ...] = ()
    source: str = ""
    url: str = ""
    checked: str = ""  # when, and with which copy of the source its numbers were compared
    note: str = ""

    def matrix(self, format: str) -> Peak | None:
        """The peak for products of a run's number format; None where the device has none for it."""
        return next((self.peaks[name] for name in MATRIX.get(format, (format,)) if name in self.peaks), None)

    def vector(self, format: str) -> Peak | None:
        return next((self.peaks[name] for name in VECTOR.get(format, ()) if name in self.peaks), None)

    def part(self, cores: float, sockets: int = 1) -> Chip:
        """So many cores of so many of it: fewer in a virtual machine or a container, more where there are several
        sockets. The cores of a socket share its memory; each socket has its own."""
        if self.cores is None or (cores >= self.cores and sockets == 1):
            return self
        share = min(cores / self.cores, sockets)
        used = math.ceil(share)
        whole = f"{used} x {self.cores}" if used > 1 else f"{self.cores}"
        source = f"{'' if share == used else f'{cores:g} of '}{whole} cores; {self.source}"
        peaks = {name: replace(peak, value=peak.value * share, source=source) for name, peak in self.peaks.items()}
        memory = self.bandwidth and replace(self.bandwidth, value=self.bandwidth.value * used)
        return replace(self, peaks=peaks, bandwidth=memory, source=source, tdp_w=self.tdp_w and self.tdp_w * used)


def find(
    name: str,
    settings: Settings | None = None,
    measured: Mapping[str, float] | None = None,
    cores: float | None = None,
    sockets: int = 1,
) -> Chip | None:
    """The device called `name`: as the settings say, else (where `measured` is given) as measured here, else as the
    catalogue has it, of which so many `cores`, in so many `sockets`, are there. Each peak keeps its own source. None
    where nobody knows anything of it."""
    known = _by_name().get(_plain(name))
    if known is not None and cores is not None:
        known = known.part(cores, sockets)
    overrides = (settings.peaks if settings else {}) or {}
    told = {**overrides.get("*", {})}
    for device, table in overrides.items():
        if _plain(device) == _plain(name):
            told.update(table)
    if known is None and not told and not measured:
        return None
    found = known or Chip(name, "", {}, source="user's numbers or measured here")
    for values, source in ((measured or {}, "measured here"), (told, settings.source("peaks") if settings else "")):
        if values:
            found = _with(found, values, source)
    return found


def _with(chip: Chip, values: Mapping[str, float], source: str) -> Chip:
    peaks = {name: Peak(value, name, source) for name, value in values.items()}
    bandwidth = peaks.pop("bandwidth", chip.bandwidth)
    return replace(chip, peaks={**chip.peaks, **peaks}, bandwidth=bandwidth)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


@functools.cache
def chips() -> tuple[Chip, ...]:
    """Every device of the catalogue."""
    folder = files("bitwatt.hardware")
    tables = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return tuple(_read(row) for file in tables for row in tomllib.loads(file.read_text("utf-8"))["device"])


@functools.cache
def _by_name() -> Mapping[str, Chip]:
    return {_plain(name): one for one in chips() for name in one.names}


def _read(row: Mapping[str, Any]) -> Chip:
    source = str(row["source"])
    if "per_cycle" in row:
        hertz = row["cores"] * row["base_ghz"] * 1e9
        dense, source = {name: each * hertz for name, each in row["per_cycle"].items()}, f"at base clock; {source}"
    else:
        dense = {name: value * 1e12 for name, value in row["dense_tflops"].items()}
    sparse = {name: value * 1e12 for name, value in row.get("sparse_tflops", {}).items()}
    return Chip(
        name=row["name"],
        kind=row["kind"],
        peaks={name: Peak(value, name, source) for name, value in dense.items()},
        sparse={name: Peak(value, name, source, SPARSE) for name, value in sparse.items()},
        bandwidth=Peak(row["bandwidth_gb_s"] * 1e9, "bandwidth", source),
        memory_bytes=row["memory_gb"] * 1e9 if "memory_gb" in row else None,
        tdp_w=row.get("tdp_w"),
        cores=row.get("cores"),
        names=tuple(row["names"]),
        source=source,
        url=row["url"],
        checked=row["checked"],
        note=row.get("note", ""),
    )
