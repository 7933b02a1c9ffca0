"""What devices draw when nothing runs: measured by `bitwatt doctor --idle`, kept for the machine, with its date."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from bitwatt import state

if TYPE_CHECKING:
    from bitwatt.metering.meter import Meter

FORMAT = "bitwatt.idle"


def place() -> Path:
    """The file of this machine."""
    return state.folder() / f"idle-{state.machine()}.json"


def baseline() -> dict[str, float]:
    """Device -> watts. Empty where nobody measured, or what was kept cannot be read."""
    path = place()
    with suppress(OSError):
        return dict(_read(path, path.stat().st_mtime_ns))
    return {}


def measured_on() -> str:
    """When the baseline was measured, ISO 8601; empty where there is none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(place().read_text())["measured"])
    return ""


def measure(
    meter: Meter, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, tuple[float, float | None]]:
    """Do nothing for so long. Device -> watts, and which part of the time it was busy, where it tells."""
    window = meter.window(all_devices=True)
    sleep(seconds)
    window.end()
    found = window.metered({})
    watts = {}
    for part in found.energy:
        if part.mean_w is None or part.how != "measured":
            continue
        watts[part.device.id] = (part.mean_w, found.usage.get(f"{part.device.id}.utilisation_mean"))
    return watts


def keep(watts: dict[str, float]) -> Path:
    """Beside what is known of other devices of this machine, which may not be plugged in just now."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "format": FORMAT,
        "version": 1,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "watts": baseline() | watts,
    }
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(document, indent=2) + "\n")
    os.replace(temporary, path)
    return path


@lru_cache(maxsize=4)
def _read(path: Path, _: int) -> tuple[tuple[str, float], ...]:
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        document = json.loads(path.read_text())
        if document["format"] == FORMAT:
            return tuple((str(device), float(watts)) for device, watts in document["watts"].items() if watts > 0)
    return ()
