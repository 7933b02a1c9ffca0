"""What energy trackers say of the same seconds: at work, and asleep.

    python benchmarks/energy_peers.py [--seconds 20] [--tools bitwatt,zeus] [--json FILE]

Each tracker runs in a process of its own around the same loop, then around as long a sleep, which shows whether it
measures the work at all and what it costs by itself (CPU seconds of the process and its children while it sleeps). The
trackers are no dependencies of bitwatt: the first run installs them into a virtual environment, .venv/energy-peers.
No network is needed; where one of them asks for a country it is told one, so that it does not look for it.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".venv" / "energy-peers"
PYTHON = HOME / "bin" / "python"
#: eco2ai fails with pandas 3: it writes text into a column of numbers.
PACKAGES = [
    "codecarbon==3.3.2",
    "zeus==0.16.0",
    "carbontracker==2.4.7",
    "eco2ai==0.3.12",
    "pandas<3",
    "numpy",
    "psutil",
]

Told = dict[str, Any]


def work(seconds: float) -> None:
    import numpy as np

    a, until = np.random.default_rng(0).normal(size=(400, 400)), time.monotonic() + seconds
    while time.monotonic() < until:
        a = np.tanh(a @ a)


def bitwatt(run: Callable[[], None]) -> Told:
    import bitwatt

    with bitwatt.measure("peers", keep=False) as session:
        run()
    meter = session.run.meter
    parts = [(part.device.id, part.energy_j, part.how) for part in meter.energy]
    known = [joules for _, joules, _ in parts if joules is not None]
    how = ", ".join(f"{device} {how}" for device, joules, how in parts if joules is not None)
    cpu = meter.usage.get("cpu_seconds")
    seconds = "" if cpu is None else f"; {cpu:.2f} CPU-seconds, which are no joules"
    return {"joules": sum(known) if known else None, "says": (how or "no counter: null") + seconds}


def zeus(run: Callable[[], None]) -> Told:
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor()
    monitor.begin_window("run", sync_execution=False)
    run()
    window = monitor.end_window("run", sync_execution=False)
    return {
        "joules": window.total_energy,
        "says": f"cpu_energy={window.cpu_energy}, total_energy={window.total_energy}",
    }


def codecarbon(run: Callable[[], None]) -> Told:
    from codecarbon import OfflineEmissionsTracker

    tracker = OfflineEmissionsTracker(country_iso_code="USA", save_to_file=False, log_level="critical")
    tracker.start()
    run()
    tracker.stop()
    data = tracker.final_emissions_data
    parts = {name: 3.6e6 * getattr(data, f"{name}_energy") for name in ("cpu", "ram", "gpu")}
    said = ", ".join(f"{name} {joules:.0f} J" for name, joules in parts.items())
    return {"joules": 3.6e6 * data.energy_consumed, "says": f"{said}; no word on how"}


def carbontracker(run: Callable[[], None]) -> Told:
    from carbontracker import parser
    from carbontracker.tracker import CarbonTracker

    with tempfile.TemporaryDirectory() as folder:
        tracker = CarbonTracker(epochs=1, components="cpu", log_dir=folder, verbose=0, update_interval=1)
        tracker.epoch_start()
        run()
        tracker.epoch_end()
        tracker.stop()
        (log,) = parser.parse_all_logs(log_dir=folder)
    kwh = log["actual"]["energy (kWh)"]
    return {"joules": 3.6e6 * kwh, "says": f"a mean TDP times its PUE ({kwh * 3.6e6:.0f} J); no label in the result"}


def eco2ai(run: Callable[[], None]) -> Told:
    import eco2ai

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "emission.csv"
        tracker = eco2ai.Tracker(file_name=str(file), alpha_2_code="US", measure_period=1, ignore_warnings=True)
        tracker.start()
        run()
        tracker.stop()
        with file.open() as lines:
            kwh = sum(float(row["power_consumption(kWh)"]) for row in csv.DictReader(lines))
    return {"joules": 3.6e6 * kwh, "says": "a guessed TDP times CPU share; no label in the result"}


TOOLS: dict[str, Callable[[Callable[[], None]], Told]] = {
    "bitwatt": bitwatt,
    "zeus": zeus,
    "codecarbon": codecarbon,
    "carbontracker": carbontracker,
    "eco2ai": eco2ai,
}


def cpu_seconds() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def inside(tool: str, seconds: float, sleeps: bool) -> Told:
    """In the tracker's own process. What it costs is taken from when the span begins to when it ends."""
    spent: dict[str, float] = {}

    def run() -> None:
        began = cpu_seconds()
        (time.sleep if sleeps else work)(seconds)
        spent["cpu_s"] = cpu_seconds() - began

    started = cpu_seconds()
    told = TOOLS[tool](run)
    return told | spent | {"around_s": cpu_seconds() - started - spent["cpu_s"]}


def ask(tool: str, seconds: float, sleeps: bool) -> Told:
    command = [str(PYTHON), __file__, "--inside", tool, "--seconds", str(seconds), *(["--sleep"] if sleeps else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20 * seconds + 300, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return {"joules": None, "says": f"failed: {lines[-1][:90]}", "cpu_s": None}
    told: Told = json.loads(done.stdout.splitlines()[-1])
    return told


def install() -> None:
    if PYTHON.exists():
        return
    print("installing the trackers into .venv/energy-peers", file=sys.stderr)
    venv.create(HOME, with_pip=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--editable", str(ROOT)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", choices=TOOLS, help=argparse.SUPPRESS)
    parser.add_argument("--sleep", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(inside(args.inside, args.seconds, args.sleep)))
        return
    install()
    rows = []
    for tool in args.tools.split(","):
        busy, asleep = ask(tool, args.seconds, False), ask(tool, args.seconds, True)
        rows.append({"tool": tool, "work": busy, "sleep": asleep})
        print(f"{tool} done", file=sys.stderr)
    print(f"\n{'tracker':<15}{'at work':>12}{'asleep':>12}{'its own cost':>16}   what it says")
    for row in rows:
        joules = [_joules(row[span]["joules"]) for span in ("work", "sleep")]
        cost = row["sleep"].get("cpu_s")
        share = "?" if cost is None else f"{100 * cost / args.seconds:.3f} % of a core"
        print(f"{row['tool']:<15}{joules[0]:>12}{joules[1]:>12}{share:>22}   {row['work']['says']}")
    if args.json:
        args.json.write_text(json.dumps({"seconds": args.seconds, "rows": rows}, indent=2) + "\n")


def _joules(joules: float | None) -> str:
    return "null" if joules is None else f"{joules:.1f} J"


if __name__ == "__main__":
    main()
