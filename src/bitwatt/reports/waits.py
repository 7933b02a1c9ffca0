"""What a run waited for: data, other ranks; in seconds, and in joules. And when its first batch, and the first work of
a GPU, was there."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from bitwatt.impact.carbon import drawn_until
from bitwatt.readings import Metered
from bitwatt.records import Run
from bitwatt.units import format_duration

#: A wait is told of from this share of the run; one for the beginning, from so many seconds, too.
SHARE, BEGINNING_S = 0.02, 1.0
_WORDS = {
    "data": "for data",
    "ranks": "for other ranks",
}
_BEGUN = {"first_batch": "first batch after", "first_gpu_work": "first work of a GPU after"}


@dataclass(frozen=True, slots=True)
class Wait:
    """`energy_j` is a share of the measured energy by time (`apportioned`); None where that is not known."""

    seconds: float
    energy_j: float | None = None


def waits(run: Run, metered: Metered, devices: Collection[str]) -> dict[str, Wait]:
    """By what was waited for, as far as phases, messages, loaders and GPUs tell; energy is that of `devices`. What goes
    by until the first batch, or the first work, is all of the beginning, and no wait: imports and set-up are in it."""
    found = {}
    data = [one for name, one in metered.phases.items() if name.rpartition("/")[2] == "preprocess"]
    if data:
        known = [joules for one in data for name, joules in one.energy_j.items() if name in devices]
        found["data"] = Wait(math.fsum(one.seconds for one in data), math.fsum(known) if known else None)
    if run.rank is not None and run.rank.comm_seconds:  # what it cost the node is told when its ranks are joined
        found["ranks"] = Wait(math.fsum(run.rank.comm_seconds.values()))
    for key, name in (("first_batch", "first_batch_seconds"), ("first_gpu_work", "first_busy_seconds")):
        if name in metered.usage:
            seconds = metered.usage[name]
            parts = [part for part in metered.energy if part.device.id in devices]
            joules = math.fsum(drawn_until(part, metered, seconds) for part in parts) if parts else None
            found[key] = Wait(seconds, joules)
    return found


def told(found: dict[str, Wait], run_seconds: float, joules: dict[str, str]) -> str:
    """In words, those that count; `joules` are the energies as they are written."""
    words = []
    for key, word in _WORDS.items():
        if key in found and found[key].seconds > SHARE * run_seconds:
            words.append(f"{word} {_short(found[key])}" + (f", ~{joules[key]}" if key in joules else ""))
    return ", ".join(words)


def begun(found: dict[str, Wait], run_seconds: float) -> str:
    """In words, where it took long. What was drawn until then is for programs: it is not the price of a batch."""
    least = max(BEGINNING_S, SHARE * run_seconds)
    return ", ".join(
        f"{word} {_short(found[key])}" for key, word in _BEGUN.items() if key in found and found[key].seconds > least
    )


def _short(wait: Wait) -> str:
    return format_duration(float(f"{wait.seconds:.3g}"))
