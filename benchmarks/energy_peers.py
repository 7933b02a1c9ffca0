"""What energy trackers say of the same seconds on a machine without a counter: at work, and asleep.

    python benchmarks/energy_peers.py [--seconds 20] [--rows bitwatt,zeus] [--json FILE]

Each tracker runs in a process of its own around the same numpy and scikit-learn loop, then around as long a sleep,
which shows whether it measures the work at all and what it costs by itself: CPU seconds of the process and its children
while it sleeps, and those of importing, starting and stopping it. No country is given where a tracker works without.
Under the table stand the trackers' own words: what their results say of the method, and what they logged.

The trackers are no dependencies of bitwatt: the first run installs them into an environment of their own,
build/energy-peers.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "energy-peers"
PYTHON = HOME / "bin" / "python"
#: eco2ai fails with pandas 3 (it writes text into a column of numbers) and imports pkg_resources.
PACKAGES = [
    "codecarbon==3.3.2",
    "zeus==0.16.0",
    "carbontracker==2.4.7",
    "eco2ai==0.3.12",
    "pandas<3",
    "setuptools<81",
    "numpy",
    "scikit-learn",
    "psutil",
]
#: Watts that a user would look up for a server's processor; a guest with few of its cores gets them whole.
TDP_W = 270.0
#: What a result would hold, in a name or a value, to tell a reading from a guess.
METHOD = re.compile(r"measured|modelled|estimat|constant|\btdp\b|method|unknown|energy = None", re.IGNORECASE)
#: Lines of a log that speak of the method or the place.
TELLING = re.compile(METHOD.pattern + r"|RAPL|countr|location|average|Canada|mode\b", re.IGNORECASE)
COLUMNS = ["CPU s at work", "J at work", "J asleep", "gCO2e at work"]
COLUMNS += ["its CPU s asleep", "CPU s around", "wall s around"]
MARK = "energy_peers: "

Told = dict[str, Any]
Run = Callable[[], None]


def work() -> Callable[[float], None]:
    """The loop, with what it needs imported: trackers begin after a program's imports."""
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(0)
    a, x = random.normal(size=(400, 400)), random.normal(size=(2000, 40))
    y = (x[:, :3].sum(axis=1) > 0).astype(int)

    def loop(seconds: float) -> None:
        b, until = a, time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(20):
                b = np.tanh(b @ a)
            LogisticRegression().fit(PCA(10, random_state=0).fit_transform(x), y)
            RandomForestClassifier(10, max_depth=6, random_state=0).fit(x, y).predict(x)

    return loop


def nothing(run: Run) -> Told:
    run()
    return {"joules": None, "grams": None, "result": {}}


def bitwatt(run: Run, tdp_w: float | None = None) -> Told:
    import bitwatt
    from bitwatt.config import settings
    from bitwatt.reports.footprint import Footprint

    given = settings(tdp_w=tdp_w)
    with bitwatt.measure("peers", keep=False, settings=given) as session:
        run()
    print(bitwatt.report(session.run, settings=given))
    grams = Footprint(session.run.meter, given, session.run.started).carbon.total_g
    parts = [asdict(part) for part in session.run.meter.energy]
    known = [part["energy_j"] for part in parts if part["energy_j"] is not None]
    result = {f"{part['device']['id']} {field}": part[field] for part in parts for field in ("how", "source")}
    return {"joules": sum(known) if known else None, "grams": grams, "result": result}


def zeus(run: Run) -> Told:
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor()
    monitor.begin_window("run", sync_execution=False)
    run()
    window = monitor.end_window("run", sync_execution=False)
    return {"joules": window.total_energy, "grams": None, "result": asdict(window)}


def codecarbon(run: Run, **options: Any) -> Told:
    from codecarbon import EmissionsTracker

    tracker = EmissionsTracker(save_to_file=False, **options)
    tracker.start()
    run()
    tracker.stop()
    data = tracker.final_emissions_data
    return {"joules": 3.6e6 * data.energy_consumed, "grams": 1e3 * data.emissions, "result": vars(data)}


def carbontracker(run: Run) -> Told:
    from carbontracker import parser
    from carbontracker.tracker import CarbonTracker

    with tempfile.TemporaryDirectory() as folder:
        tracker = CarbonTracker(epochs=1, components="cpu", log_dir=folder, update_interval=1)
        tracker.epoch_start()
        run()
        tracker.epoch_end()
        tracker.stop()
        (log,) = parser.parse_all_logs(log_dir=folder)
    actual = log["actual"]
    return {"joules": 3.6e6 * actual["energy (kWh)"], "grams": actual["co2eq (g)"], "result": log}


def eco2ai(run: Run, **options: Any) -> Told:
    import eco2ai

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "emission.csv"
        tracker = eco2ai.Tracker(file_name=str(file), measure_period=1, **options)
        tracker.start()
        run()
        tracker.stop()
        with file.open() as lines:
            (row,) = csv.DictReader(lines)
    kwh, kg = float(row["power_consumption(kWh)"]), float(row["CO2_emissions(kg)"])
    return {"joules": 3.6e6 * kwh, "grams": 1e3 * kg, "result": row}


ROWS: dict[str, Callable[[Run], Told]] = {
    "bitwatt": bitwatt,
    f"bitwatt tdp_w={TDP_W:g}": lambda run: bitwatt(run, TDP_W),
    "zeus": zeus,
    "codecarbon": codecarbon,
    "codecarbon process": lambda run: codecarbon(run, tracking_mode="process"),
    f"codecarbon force_cpu_power={TDP_W:g}": lambda run: codecarbon(run, force_cpu_power=TDP_W),
    "carbontracker": carbontracker,
    "eco2ai": eco2ai,
    "eco2ai current, US": lambda run: eco2ai(run, alpha_2_code="US", cpu_processes="current"),
    "eco2ai all, US": lambda run: eco2ai(run, alpha_2_code="US", cpu_processes="all"),
    "no tracker": nothing,
}


def cpu_seconds() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def inside(row: str, seconds: float, sleeps: bool) -> Told:
    """In the tracker's own process: its CPU time within the span, and around it."""
    spent: dict[str, float] = {}
    span = time.sleep if sleeps else work()

    def run() -> None:
        began = cpu_seconds(), time.monotonic()
        span(seconds)
        spent.update(cpu_s=cpu_seconds() - began[0], wall_s=time.monotonic() - began[1])

    started = cpu_seconds(), time.monotonic()
    told = ROWS[row](run)
    around = cpu_seconds() - started[0] - spent["cpu_s"], time.monotonic() - started[1] - spent["wall_s"]
    return told | spent | {"around_s": around[0], "around_wall_s": around[1]}


def ask(row: str, seconds: float, sleeps: bool) -> Told:
    command = [str(PYTHON), __file__, "--inside", row, "--seconds", str(seconds), *(["--sleep"] if sleeps else [])]
    with tempfile.TemporaryDirectory() as folder:  # some trackers leave files where they run
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=20 * seconds + 300,
            check=False,
        )
    lines = done.stdout.strip().splitlines() or ["no message"]
    answers = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    log = [line for line in lines if not line.startswith(MARK)]
    if done.returncode or not answers:
        return {"joules": None, "grams": None, "failed": log[-1], "log": log, "result": {}}
    told: Told = json.loads(answers[-1])
    return told | {"log": log}


def own_words(told: Told) -> list[str]:
    """The fields of its result and the lines of its log that speak of the method or the place."""
    if "failed" in told:
        return [f"failed: {told['failed']}"]
    found = [f"{name} = {value}" for name, value in told["result"].items()]
    fields = [f"result: {line}" for line in found if METHOD.search(line)]
    silent = "result: null" if told["joules"] is None else "result: no word on the method"
    log = [line.strip() for line in dict.fromkeys(told["log"]) if TELLING.search(line) and "FutureWarning" not in line]
    return (fields or [silent]) + [f"log: {line}" for line in log]


def install() -> None:
    if (HOME / "ready").exists():
        return
    print(f"installing the trackers into {HOME.relative_to(ROOT)}", file=sys.stderr)
    venv.create(HOME, with_pip=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    (HOME / "ready").touch()


def table(rows: list[Told], seconds: float) -> str:
    """In Markdown, as it stands in docs/energy-peers.md. CPU seconds asleep and around are the tracker's own."""
    lines = ["| tracker | " + " | ".join(COLUMNS) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for row in rows:
        busy, asleep = row["work"], row["sleep"]
        cells = [_number(busy.get("cpu_s"), 3), _number(busy["joules"]), _number(asleep["joules"])]
        cells += [_number(busy["grams"], 3), f"{asleep.get('cpu_s', 0):.4f} ({asleep.get('cpu_s', 0) / seconds:.2%})"]
        cells += [_number(asleep.get(name), 2) for name in ("around_s", "around_wall_s")]
        if "failed" in busy or "failed" in asleep:
            cells = ["failed", *[""] * (len(COLUMNS) - 1)]
        lines.append(f"| {row['row']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float | None, digits: int = 4) -> str:
    return "null" if value is None else f"{value:.{digits}g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rows", default="", help="those whose names begin so, with commas between; else all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--sleep", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        print("\n" + MARK + json.dumps(inside(args.inside, args.seconds, args.sleep), default=str))
        return
    install()
    rows: list[Told] = []
    for row in [name for name in ROWS if name.startswith(tuple(args.rows.split(",")))]:
        load = os.getloadavg()[0]
        busy, asleep = ask(row, args.seconds, False), ask(row, args.seconds, True)
        rows.append({"row": row, "load": load, "work": busy, "sleep": asleep})
        if args.json:
            args.json.write_text(json.dumps({"seconds": args.seconds, "rows": rows}, indent=2) + "\n")
        print(f"{row} done", file=sys.stderr)
    loads = [row["load"] for row in rows]
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {min(loads):.1f} to {max(loads):.1f}, ", end="")
    print(f"{args.seconds:g} s each\n\n{table(rows, args.seconds)}\n\nIn their own words:")
    for told in rows:
        used = told["work"].get("cpu_s")
        print(f"\n{told['row']}" + (f" ({used:.2f} CPU s used at work)" if used else ""))
        print("\n".join(f"  {line[:160]}" for line in own_words(told["work"])))


if __name__ == "__main__":
    main()
