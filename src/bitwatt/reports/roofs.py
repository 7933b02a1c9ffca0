"""The machine's roofs for a run: what its device can do at best in the formats that ran, and where the run lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bitwatt.impact.utilisation import Share, ideal

if TYPE_CHECKING:
    from bitwatt.hardware.catalogue import Chip, Peak
    from bitwatt.reports.model import View

#: Formats with less of the work have no roof; ops with less are not drawn.
_LEAST = 0.01
_OPS = 8


@dataclass(frozen=True, slots=True)
class Place:
    """A phase or op: FLOP for each byte, and FLOP/s where its time is known."""

    name: str
    intensity: float
    rate: float | None


@dataclass(frozen=True, slots=True)
class Roofs:
    """`peaks` and `bandwidth` are those of one device, of which the run had `devices`."""

    device: str
    devices: int
    peaks: tuple[Peak, ...]
    bandwidth: Peak
    phases: tuple[Place, ...]
    ops: tuple[Place, ...]


def roofs(view: View) -> Roofs | str:
    """Or why there are none."""
    if not view.entries:
        return "no work was counted"
    devices = view.devices
    name, chip = devices.main, devices.main_chip
    if not name:
        return "the device is not known, or there are several kinds"
    add = f'set [peaks."{name}"] in bitwatt.toml, or measured_peaks = true after bitwatt doctor --probe'
    if chip is None:
        return f"no peaks are known for {name}; {add}"
    if chip.bandwidth is None:
        return f"the memory bandwidth of {name} is not known; {add}"
    peaks = _peaks(view, chip)
    if not peaks:
        formats = ", ".join(sorted({share.format for share in _shares(view, chip)}))
        return f"no peak of {name} is known for {formats or 'what ran'}; {add}"
    phases = tuple(
        Place(line.name, line.intensity, (line.amounts.get("flops") or 0) / seconds if seconds else None)
        for line in view.phases
        if line.intensity
        for seconds in [line.device_seconds or line.seconds]
    )
    whole = view.priced["flops"].total
    ops = tuple(
        Place(line.name, line.intensity, None)
        for line in view.ops
        if line.intensity and (line.amounts.get("flops") or 0) >= _LEAST * whole
    )
    return Roofs(chip.name or name, devices.count, peaks, chip.bandwidth, phases, ops[:_OPS])


def _shares(view: View, chip: Chip) -> tuple[Share, ...]:
    return ideal(view.devices.work(view.entries, gpu=view.devices.has_gpu), chip)


def _peaks(view: View, chip: Chip) -> tuple[Peak, ...]:
    """Highest first, each once."""
    shares = _shares(view, chip)
    least = _LEAST * sum(share.flops for share in shares)
    found = {share.peak.format: share.peak for share in shares if share.peak and share.flops >= least}
    return tuple(sorted(found.values(), key=lambda peak: -peak.value))
