"""What else went on on the machine while it was measured: load, stolen time, pressure, clock speed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from bitwatt.deploy.amounts import amount

PROC = Path("/proc")
SPEEDS = Path("/sys/devices/system/cpu")
#: Above these the machine is called busy: runnable tasks of others per core, shares of time.
BUSY_LOAD, BUSY_SHARE = 0.5, 0.05


@dataclass(frozen=True)
class Look:
    """Levels at one moment, and totals since the machine was started; what it does not tell is left out."""

    at_s: float
    levels: Mapping[str, float]
    totals_s: Mapping[str, float]


def look(proc: Path = PROC, speeds: Path = SPEEDS) -> Look:
    levels: dict[str, float] = {}
    if hasattr(os, "getloadavg"):
        levels["load_1min"] = os.getloadavg()[0]
    mhz = _mhz(proc, speeds)
    if mhz:
        levels["mhz_mean"], levels["mhz_least"] = mean(mhz), min(mhz)
    totals = {name: value for name in ("cpu", "memory") if (value := _stalled(proc, name)) is not None}
    stolen = _stolen(proc)
    if stolen is not None:
        totals["steal"] = stolen
    return Look(time.monotonic(), levels, totals)


def between(before: Look, after: Look) -> tuple[dict[str, float], list[str]]:
    """For the study: levels before and after, shares of the time in between; and what to say about them."""
    cores = os.cpu_count() or 1
    found = {"cores": float(cores)}
    for name, value in before.levels.items():
        found[f"{name}_before"] = value
    for name, value in after.levels.items():
        found[f"{name}_after"] = value
    seconds = after.at_s - before.at_s
    for name, value in after.totals_s.items():
        if name in before.totals_s and seconds > 0:
            # Stolen seconds are counted on all cores together, stalled ones once for the machine.
            share = (value - before.totals_s[name]) / seconds / (cores if name == "steal" else 1)
            found["steal_share" if name == "steal" else f"{name}_stall_share"] = share
    return found, _said(found, cores)


def _said(found: Mapping[str, float], cores: int) -> list[str]:
    said = []
    load = found.get("load_1min_before", 0.0)
    if load > BUSY_LOAD * cores:
        said.append(f"the machine was busy when this began: load {load:.1f} on {amount(cores, 'core')}")
    words = {
        "steal_share": "of the processors' time was taken by the hypervisor",
        "cpu_stall_share": "of the time something waited for a processor",
        "memory_stall_share": "of the time something waited for memory",
    }
    limits = {"cpu_stall_share": 0.25}  # our own processes wait for each other now and then
    for name, words_ in words.items():
        if found.get(name, 0.0) > limits.get(name, BUSY_SHARE):
            said.append(f"{100 * found[name]:.0f} % {words_}")
    first, last = found.get("mhz_mean_before"), found.get("mhz_mean_after")
    if first and last and abs(last / first - 1) > 0.1:
        said.append(f"the clock went from {first:.0f} to {last:.0f} MHz")
    return said


def _stalled(proc: Path, name: str) -> float | None:
    """Seconds in which some task waited."""
    try:
        return int((proc / "pressure" / name).read_text().partition("\n")[0].rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return None


def _stolen(proc: Path) -> float | None:
    try:
        fields = (proc / "stat").read_text().partition("\n")[0].split()
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def _mhz(proc: Path, speeds: Path) -> list[float]:
    found = []
    for path in speeds.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        try:
            found.append(int(path.read_text()) / 1000)
        except (OSError, ValueError):
            continue
    if found:
        return found
    try:  # a virtual machine: what its processor is sold as
        lines = (proc / "cpuinfo").read_text().splitlines()
        return [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    except (OSError, ValueError):
        return []
