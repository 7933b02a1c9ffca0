"""Bytes a second between the main device and its memory: as its counters saw, else by what was counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bitwatt.pricing import Entry
from bitwatt.readings import MEASURED, MODELLED
from bitwatt.units import format_count, format_percent

if TYPE_CHECKING:
    from bitwatt.reports.model import View


@dataclass(frozen=True, slots=True)
class Bandwidth:
    bytes_per_s: float
    how: str  # measured, modelled
    source: str
    of_peak: float | None = None  # share of what the devices can do; modelled bytes know no cache and may pass it
    is_least: bool = False  # calls of which nobody knows the bytes

    def __str__(self) -> str:
        rate = f"{'≥ ' if self.is_least else ''}{format_count(float(f'{self.bytes_per_s:.3g}'), 'B/s')}"
        share = f", {format_percent(self.of_peak)} of its peak" if self.of_peak is not None else ""
        return f"{rate}{share} · {self.how} ({self.source})"


def achieved(view: View) -> Bandwidth | None:
    return _measured(view) or _modelled(view)


def _measured(view: View) -> Bandwidth | None:
    """DCGM tells the share of cycles in which the memory moved data; times the peak that is a rate. Of several GPUs,
    those that tell it stand for all."""
    devices, meter = view.devices, view.run.meter
    if meter is None or not devices.accelerators or not (peak := _peak(view)):
        return None
    names = [f"{part.device.id.rpartition('/')[2]}.dram_active_mean" for part in devices.accelerators]
    busy = [meter.usage[name] for name in names if name in meter.usage]
    if not busy:
        return None
    share = fmean(busy)
    return Bandwidth(share * peak, MEASURED, "DCGM's share of active memory cycles x the peak, over the run", share)


def _modelled(view: View) -> Bandwidth | None:
    run, devices = view.run, view.devices
    on_gpu = devices.has_gpu
    timed = math.fsum(run.device_seconds.values()) if on_gpu else 0.0
    seconds = timed or run.seconds
    moved = [_moved(entry) for entry in view.entries if devices.ran_on_gpu(entry) == on_gpu]
    known = [amount for amount in moved if amount is not None]
    if seconds <= 0 or not sum(known):
        return None
    rate, peak = sum(known) / seconds, _peak(view)
    whose = "GPU time" if timed else "the run's time"
    share = rate / peak if peak else None
    return Bandwidth(rate, MODELLED, f"bytes of the calls, without caches / {whose}", share, len(known) < len(moved))


def _moved(entry: Entry) -> int | None:
    work = entry.work
    if work is None or work.bytes_read is None or work.bytes_written is None:
        return None
    return (work.bytes_read + work.bytes_written) * entry.row.calls


def _peak(view: View) -> float | None:
    """Of all devices of the run together."""
    chip = view.devices.main_chip
    return None if chip is None or chip.bandwidth is None else chip.bandwidth.value * view.devices.count
