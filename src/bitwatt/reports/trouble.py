"""What on the machine may explain odd numbers: time that others took, devices that were held back."""

from __future__ import annotations

from bitwatt.readings import Metered
from bitwatt.units import format_percent

#: Shares of the time above which it is told.
_STEAL, _STALL, _THROTTLED = 0.01, 0.10, 0.05


def troubles(metered: Metered) -> list[str]:
    """Sentences, the gravest first."""
    use, seconds, told = metered.usage, metered.seconds, list[str]()
    if seconds <= 0:
        return told
    for name, value in use.items():
        device, _, quantity = name.rpartition(".")
        if quantity == "throttled_mean" and value > _THROTTLED:
            why = next(
                (note.partition(": ")[2] for note in metered.notes if note.startswith(f"{device} throttled")), ""
            )
            told.append(f"{device} was held back {format_percent(value)} of the time" + (f" ({why})" if why else ""))
        elif quantity in ("other_processes", "other_processes_peak") and value >= 1:
            others = "1 other process was" if value < 1.5 else f"{value:.0f} other processes were"
            told.append(f"{others} on {device}: their energy is in its counter")
    if (share := use.get("host.steal_seconds", 0.0) / seconds) > _STEAL:
        told.append(f"the hypervisor gave {format_percent(share)} of a core's time to others")
    for kind in ("cpu", "memory", "io"):
        share = use.get(f"host.{kind}_stall_seconds", 0.0) / seconds
        if share > _STALL:
            what = {"cpu": "a processor", "memory": "memory", "io": "disks"}[kind]
            told.append(f"tasks on this machine waited for {what} {format_percent(min(share, 1.0))} of the time")
    return told
