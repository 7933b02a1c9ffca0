"""Bytes a second that a batch moves, beside what the memory it sits in can do.

A small model stays in the processor's caches and moves more than the main memory ever could: the rate says little
without the level. What this machine has is found out once (`machine`), and kept with the study.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bitwatt.deploy.records import Counts

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
DRAM = "DRAM"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
#: Seconds for a cache, and for main memory, where one copy takes long; the share of a cache that a copy fills;
#: and how many copies there are at least.
SECONDS, LONGER, FILLED, LEAST = 0.03, 0.3, 0.5, 3


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """GB are 10^9 bytes."""

    gbps: float | None
    level: str | None = None  # L1, L2, L3, DRAM: where the weights and values of a batch fit
    roof_gbps: float | None = None  # of copies in that level, one thread, measured on this machine
    working_set: int | None = None  # bytes
    note: str = ""


def of(
    counts: Counts | None,
    median_ms: float | None,
    weights: int = 0,
    known: Mapping[str, str] | None = None,
    *,
    device: str = "cpu",
) -> Bandwidth:
    """`weights`: bytes of the artefact. `known`: what `machine` found where it was timed; by default, here."""
    if counts is None or not counts.bytes or not median_ms:
        return Bandwidth(None, note="bytes or times are not known")
    gbps = counts.bytes / median_ms / 1e6
    size = working_set(counts.bytes, weights)
    if device != "cpu":
        return Bandwidth(gbps, working_set=size, note=f"the caches of {device} are not known")
    known = machine() if known is None else known
    sizes = {name.removeprefix("cache_"): int(value) for name, value in known.items() if name.startswith("cache_")}
    if not sizes:
        return Bandwidth(gbps, working_set=size, note="the sizes of the caches are not known")
    level = next((name for name, held in sorted(sizes.items()) if size <= held), DRAM)
    roof, main = (_number(known.get(f"copy_gbps_{name}")) for name in (level, DRAM))
    note = ""
    if main is not None and gbps > main and level != DRAM:
        note = f"above the {main:.3g} GB/s of the main memory, as it sits in {level}"
    elif roof is not None and gbps > roof:
        note = f"above what copies reach in {level}: the rules count bytes that registers and nearer caches kept"
    return Bandwidth(gbps, level, roof, size, note)


def working_set(moved: int, weights: int) -> int:
    """Weights once, and of what else moved each value once, as it is written and then read. A forest is all there
    though a batch touches little of it: the next batch touches something else."""
    others = moved - weights if moved > weights else moved
    return weights + others // 2


@cache
def machine() -> dict[str, str]:
    """Caches of one core in bytes, and how fast one thread copies in each and in main memory; what is not known is
    left out."""
    sizes = caches()
    found = {f"cache_{level}": str(size) for level, size in sizes.items()}
    largest = max(sizes.values(), default=0)
    places = {**{level: int(size * FILLED) for level, size in sizes.items()}, DRAM: max(4 * largest, 1 << 26)}
    for level, size in places.items():
        if (rate := copied(size, LONGER if level == DRAM else SECONDS)) is not None:
            found[f"copy_gbps_{level}"] = f"{rate:.4g}"
    return found


def caches(folder: Path = CACHES) -> dict[str, int]:
    """L1 (of data), L2, L3 -> bytes; from the kernel, else from lscpu."""
    found = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:  # virtual machines hide some
            continue
        if kind != "Instruction" and (amount := _bytes(size)):
            found[f"L{level}"] = amount
    return found or _lscpu()


def _lscpu() -> dict[str, int]:
    if not (program := shutil.which("lscpu")):
        return {}
    try:
        told = subprocess.run(
            [program, "-B", "-C=NAME,ONE-SIZE"], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = [line.split() for line in told.stdout.splitlines()[1:]]
    return {
        row[0].removesuffix("d"): int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit() and row[0] != "L1i"
    }


def _bytes(text: str) -> int:
    number, unit = text.rstrip("KMG"), text[-1:]
    return int(number) * UNITS.get(unit, 1) if number.isdigit() else 0


def copied(size: int, seconds: float = SECONDS) -> float | None:
    """GB/s read and written by copies between two halves of `size` bytes: the best of several stretches, as a roof is
    what can be reached. Small halves are copied many times in one call, as values of their size at one place: a call's
    own time would show."""
    try:
        import numpy as np
    except ImportError:
        return None
    half = max(size // 2, 64)
    source, target = (np.full(half, fill, np.uint8).view(f"V{half}") for fill in (1, 0))
    times = max(1, int(4e6 // half))
    read, written = (np.lib.stride_tricks.as_strided(one, (times,), (0,)) for one in (source, target))
    best, stretches = 0.0, 0
    np.copyto(written, read)
    until = time.perf_counter() + seconds
    while stretches < LEAST or time.perf_counter() < until:
        stretches += 1
        began = time.perf_counter()
        np.copyto(written, read)
        best = max(best, 2 * half * times / (time.perf_counter() - began))
    return best / 1e9


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
