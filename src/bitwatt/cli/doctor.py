"""Tell what bitwatt can watch and read on this machine, and what stands in the way."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bitwatt.cli.options import add_store_option

#: Framework -> the versions it was tested with, as (first, last) major.minor; None where any will do.
WATCHED: dict[str, tuple[tuple[int, int], tuple[int, int]] | None] = {
    "torch": ((2, 8), (2, 13)),
    "transformers": None,
    "tokenizers": None,
    "scikit-learn": None,
    "xgboost": None,
    "lightgbm": None,
    "catboost": None,
}

#: A device that is at work for more than this part of the time is not idle.
IDLE = 0.05


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_option(parser)
    parser.add_argument(
        "--probe", action="store_true", help="time matrix products and copies here, and keep the rates for utilisation"
    )
    parser.add_argument(
        "--idle", metavar="SECONDS", type=_seconds,
        help="measure what the devices draw while nothing runs, and keep it for this machine",
    )  # fmt: skip


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 1 to 86400")
    return seconds


def main(args: argparse.Namespace) -> int:
    if args.idle is not None:
        return _measure_idle(args.idle)
    from bitwatt.machine import describe
    from bitwatt.reports.text import fitting
    from bitwatt.store import root

    sections = {
        "Machine": dict(describe().facts) | {"gpu": _gpu()},
        "Watched": {name: _framework(name) for name in WATCHED},
        "Energy": _sensors() | {"idle baseline": _baseline()},
        "Store": {"folder": _store(root(args.store))},
    }
    for title, facts in sections.items():
        print(title)
        for name, text in facts.items():
            print(fitting(f"  {name:<14}{text}", sys.stdout.encoding))
    if args.probe:
        _probe(describe().facts.get("cpu", ""))
    return 0


def _probe(cpu: str) -> None:
    from bitwatt.hardware.catalogue import find
    from bitwatt.hardware.probe import probe, save
    from bitwatt.units import format_count

    probes = probe(cpu_name=cpu)
    if not probes:
        print("Probe\n  neither torch nor numpy is installed, so nothing was timed")
        return
    for one in probes:
        threads = f", {one.threads} {'thread' if one.threads == 1 else 'threads'}" if one.threads else ""
        print(f"Probe of {one.device} ({one.library}{threads})")
        if one.threads and one.cores and one.threads < one.cores:
            print(
                f"  these are no peaks: {one.cores} cores are usable; set OMP_NUM_THREADS={one.cores} and probe again"
            )
        known = find(one.device)
        for name, rate in one.rates.items():
            unit = "B/s" if name == "bandwidth" else "OP/s" if name.startswith("int") else "FLOP/s"
            what = format_count(rate.size, "B") if name == "bandwidth" else f"{rate.size} x {rate.size}"
            peak = None if known is None else known.bandwidth if name == "bandwidth" else known.peaks.get(name)
            share = f"; {rate.value / peak.value:.0%} of the catalogue's" if peak else ""
            value = format_count(float(f"{rate.value:.3g}"), unit)
            print(f"  {name:<14}{value} at {what}, median of {rate.repeats}{share}")
        for name, why in one.skipped.items():
            print(f"  {name:<14}not measured: {why}")
    print(f"  kept in {save(probes)}")


def _framework(name: str) -> str:
    """Without importing it: doctor must be quick and must not start a device."""
    from importlib.metadata import PackageNotFoundError, version

    if find_spec({"scikit-learn": "sklearn"}.get(name, name)) is None:
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


def _sensors() -> dict[str, str]:
    """Each sensor: what it reads here, or why it cannot and what to do about it."""
    from bitwatt.sensors import available, survey

    found = {}
    for sensor in available(_options()):
        found[sensor.name] = f"reads {', '.join(device.id for device in sensor.devices)}: {sensor.source}"
        sensor.close()
    idle = "not needed: another sensor reads the same"
    return {name: f"absent: {why}" if why else found.get(name, idle) for name, why in survey(_options()).items()}


def _options() -> dict[str, dict[str, Any]]:
    from bitwatt.metering.configured import configured

    return configured().options


def _baseline() -> str:
    from bitwatt.metering import idle

    known = idle.baseline()
    if not known:
        return "not measured; with nothing else running: bitwatt doctor --idle 60"
    watts = ", ".join(f"{device} {power:.1f} W" for device, power in known.items())
    return f"{watts} (measured {idle.measured_on()})"


def _measure_idle(seconds: float) -> int:
    """Do nothing for so long, and keep what the devices drew."""
    from bitwatt.metering import Meter, idle

    print(f"Measuring for {seconds:g} s. Leave the machine alone: what runs now counts as idle.", flush=True)
    found = idle.measure(Meter(), seconds)
    if not found:
        print("No energy was measured: nothing is kept.")
        for name, text in _sensors().items():
            print(f"  {name:<14}{text}")
        return 1
    still = {device: power for device, (power, busy) in found.items() if busy is None or busy <= IDLE}
    for device, (power, busy) in found.items():
        told = (
            "" if busy is None else f" ({busy:.0%} busy{'' if device in still else ': not kept, since it is not idle'})"
        )
        print(f"  {device:<14}{power:.1f} W{told}")
    if still:
        print(f"kept in {idle.keep(still)}")
    if len(still) < len(found):
        print("Stop what uses the busy devices, and measure them again.")
    return 0 if len(still) == len(found) else 1


def _store(folder: Path | str) -> str:
    """The folder itself, or the nearest one above that exists, which is where it would be made."""
    if isinstance(folder, str):
        return _remote(folder)
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return f"{folder}: {place} is not a folder; choose another with --store"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{folder}: no permission to write in {place}; choose another with --store"
    kept = len(list(folder.glob("*.run")))
    return f"{folder.absolute()}: writable, {kept} {'run' if kept == 1 else 'runs'} kept"


def _remote(url: str) -> str:
    from bitwatt.errors import BitwattError
    from bitwatt.store import place

    try:
        kept = len(place(url).files())
    except (BitwattError, OSError) as error:
        return f"{url}: cannot be read: {error}"
    return f"{url}: readable, {kept} {'run' if kept == 1 else 'runs'} kept"
