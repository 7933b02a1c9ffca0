"""A line for each run in CodeCarbon's emissions.csv: the same columns and units, so that its readers can read it.

CodeCarbon writes kWh, kg, W and GB. What is not known is left empty, never 0. Its file has no column for how a number
came: `codecarbon_version` says who wrote the line and whether its energy was measured or modelled.
"""

from __future__ import annotations

import csv
import io
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from bitwatt.errors import BitwattError
from bitwatt.harmless import in_csv, on_terminal
from bitwatt.impact.energy import JOULES_PER_KWH
from bitwatt.impact.money import ACCELERATORS
from bitwatt.readings import Metered, counted
from bitwatt.records import Run
from bitwatt.reports.model import View
from bitwatt.sinks import Opening
from bitwatt.sinks.values import writer

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

#: As CodeCarbon 3.3 orders them.
COLUMNS = (
    "timestamp", "project_name", "run_id", "experiment_id", "duration", "emissions", "emissions_rate",
    "cpu_power", "gpu_power", "ram_power", "cpu_energy", "gpu_energy", "ram_energy", "energy_consumed",
    "water_consumed", "country_name", "country_iso_code", "region", "cloud_provider", "cloud_region", "os",
    "python_version", "codecarbon_version", "cpu_count", "cpu_model", "gpu_count", "gpu_model", "longitude",
    "latitude", "ram_total_size", "tracking_mode", "cpu_utilization_percent", "gpu_utilization_percent",
    "ram_utilization_percent", "ram_used_gb", "on_cloud", "pue", "wue",
)  # fmt: skip
_KINDS = {"cpu": ("cpu",), "gpu": tuple(ACCELERATORS), "ram": ("dram",)}


class Csv:
    """`path` of the file, emissions.csv unless given."""

    name = "csv"

    def __init__(self, path: str = "emissions.csv") -> None:
        self.path = Path(path).absolute()  # the program may change its folder
        self._opening: Opening | None = None

    def why_absent(self) -> str | None:
        return None

    def open(self, run: Opening) -> None:
        self._opening = run

    def close(self, run: Run) -> str:
        cells = row(View(run, "flops", self._opening.settings if self._opening else None))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab+") as file:  # one write at the end of the file: others may append, too
            if fcntl is not None:
                with suppress(OSError):  # not every file system can; closing lets go of it
                    fcntl.flock(file, fcntl.LOCK_EX)
            file.write(self._addition(file, cells))
        return str(self.path)

    def _addition(self, file: BinaryIO, cells: dict[str, Any]) -> bytes:
        """Our line; where there is none yet, after the first."""
        file.seek(0)
        header = next(csv.reader([file.readline().decode("utf-8-sig", "replace")]), [])
        if not header:
            return _line(COLUMNS) + _line(cells.values())
        if set(header) != set(COLUMNS):
            raise BitwattError(f"{self.path} has other columns than CodeCarbon's: name another file")
        file.seek(-1, os.SEEK_END)
        broken = b"" if file.read(1) == b"\n" else b"\n"
        return broken + _line(cells[name] for name in header)


def row(view: View) -> dict[str, Any]:
    """The run in CodeCarbon's columns; None where a value is not known."""
    run, metered, found = view.run, view.run.meter, dict.fromkeys(COLUMNS)
    energy = view.energy
    settings, facts = view.settings, run.machine.facts
    found |= {
        "timestamp": run.started[:19],
        "project_name": _harmless(run.name),
        "run_id": run.id,
        "experiment_id": _harmless(run.about.parent) or None,
        "duration": run.seconds,
        "os": _harmless(facts.get("os", "")) or None,
        "python_version": facts.get("python"),
        "codecarbon_version": writer(),
        "cpu_count": _count(facts.get("cores")),
        "cpu_model": _harmless(facts.get("cpu", "")) or None,
        "country_iso_code": _harmless(settings.country or "") or None,
        "region": _harmless(settings.region or "") or None,
        "pue": settings.pue,
        "tracking_mode": "machine",
    }
    if metered is not None and energy is not None:
        found |= _drawn(metered, energy.used.devices)
        joules = energy.used.energy_j
        found["energy_consumed"] = None if joules is None else joules / JOULES_PER_KWH
        if energy.used.how:
            found["codecarbon_version"] = f"{writer()}, energy {energy.used.label}"
        grams = energy.carbon.total_g
        if grams is not None:
            found |= {"emissions": grams / 1000, "emissions_rate": grams / 1000 / max(run.seconds, 1e-9)}
        memory = metered.usage.get("memory_bytes_peak", metered.usage.get("memory_bytes"))
        found["ram_used_gb"] = None if memory is None else memory / 1024**3
    return found


def _drawn(metered: Metered, devices: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    known = [part for part in counted(metered.energy) if part.device.id in devices]
    for part, kinds in _KINDS.items():
        mine = [one for one in known if one.device.kind in kinds]
        if mine:
            joules = sum(one.energy_j or 0.0 for one in mine)
            found[f"{part}_energy"] = joules / JOULES_PER_KWH
            found[f"{part}_power"] = joules / metered.seconds if metered.seconds else None
    gpus = [part.device.name for part in metered.energy if part.device.kind in _KINDS["gpu"]]
    if gpus:
        found |= {"gpu_count": len(gpus), "gpu_model": ", ".join(f"{gpus.count(n)} x {n}" for n in dict.fromkeys(gpus))}
    return found


def _count(cores: str | None) -> int | None:
    number = re.match(r"\d+", cores or "")
    return int(number[0]) if number else None


def _harmless(text: str) -> str:
    return in_csv(on_terminal(text))


def _line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
    return text.getvalue().encode()


SINK = Csv
