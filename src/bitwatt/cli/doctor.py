"""Tell what bitwatt can watch and read on this machine, and what stands in the way."""

from __future__ import annotations

import argparse
import ctypes.util
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from bitwatt.cli.options import add_store_option

#: Framework -> the versions it was tested with, as (first, last) major.minor; None where any will do.
WATCHED: dict[str, tuple[tuple[int, int], tuple[int, int]] | None] = {
    "torch": ((2, 8), (2, 13)),
    "transformers": None,
    "tokenizers": None,
}
RAPL = Path("/sys/class/powercap")


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.machine import describe
    from bitwatt.reports.text import fitting
    from bitwatt.store import FOLDER

    sections = {
        "Machine": dict(describe().facts) | {"gpu": _gpu()},
        "Watched": {name: _framework(name) for name in WATCHED},
        "Energy": {
            "": "this version reads no energy yet; found for when it does:",
            "rapl": _rapl(),
            "nvml": _nvml(),
        },
        "Store": {"folder": _store(args.store or FOLDER)},
    }
    for title, facts in sections.items():
        print(title)
        for name, text in facts.items():
            print(fitting(f"  {name:<14}{text}" if name else f"  {text}", sys.stdout.encoding))
    return 0


def _framework(name: str) -> str:
    """Without importing it: doctor must be quick and must not start a device."""
    from importlib.metadata import PackageNotFoundError, version

    if find_spec(name) is None:
        return f"not installed in {sys.prefix}, so not watched"
    try:
        found = version(name)
    except PackageNotFoundError:
        return "importable, but without version: watched if it behaves like a supported one"
    tested = WATCHED[name]
    if tested is None:
        return f"{found}: watched"
    first, last = ("{}.{}".format(*bound) for bound in tested)
    numbers = tuple(int(part) for part in found.split("+")[0].split(".")[:2] if part.isdecimal())
    if numbers < tested[0]:
        return f"{found}: too old; bitwatt supports {first} to {last}: pip install --upgrade {name}"
    if numbers > tested[1]:
        return f"{found}: newer than {last}, the last one tested; watched, new ops show up as missing"
    return f"{found}: watched (supported: {first} to {last})"


def _gpu() -> str:
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        try:
            answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
            return "; ".join(answer.stdout.strip().splitlines())
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stdout", None) or getattr(error, "stderr", None) or str(error)
            return f"nvidia-smi is there but fails: {str(said).strip().splitlines()[0]}"
    if Path("/proc/driver/nvidia/version").exists():
        return "an NVIDIA driver is loaded, but nvidia-smi is not on the PATH"
    return "none found (no nvidia-smi, no /proc/driver/nvidia)"


def _rapl() -> str:
    zones = sorted(RAPL.glob("*-rapl:*/energy_uj")) + sorted(RAPL.glob("*-rapl/*-rapl:*/energy_uj"))
    if not RAPL.is_dir():
        return f"absent: {RAPL} does not exist (a container, a virtual machine, or a kernel without powercap)"
    if not zones:
        return f"absent: {RAPL} holds no RAPL zone (a virtual machine, or a processor without it)"
    try:
        int(zones[0].read_text())
    except PermissionError:
        return f"{len(zones)} zones, not readable by this user; fix: sudo chmod a+r {RAPL}/*-rapl:*/energy_uj"
    except (OSError, ValueError) as error:
        return f"{len(zones)} zones, but reading fails: {error}"
    return f"{len(zones)} zones, readable"


def _nvml() -> str:
    library = ctypes.util.find_library("nvidia-ml")
    return f"{library} is installed" if library else "absent: no libnvidia-ml, which comes with the NVIDIA driver"


def _store(folder: Path) -> str:
    """The folder itself, or the nearest one above that exists, which is where it would be made."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return f"{folder}: {place} is not a folder; choose another with --store"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{folder}: no permission to write in {place}; choose another with --store"
    kept = len(list(folder.glob("*.run")))
    return f"{folder.absolute()}: writable, {kept} {'run' if kept == 1 else 'runs'} kept"
