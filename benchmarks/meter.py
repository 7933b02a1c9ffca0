"""What the meter costs: CPU time of its thread for a second, of opening and closing a session, and of a phase's marks.

  python benchmarks/meter.py                      here, with the sensors that are here
  python benchmarks/meter.py --fakes              with a GPU, two packages and their memory as fakes

The bar is 0.1 % of one core for the thread. CPU time, not time: the machine may be busy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import bitwatt
from bitwatt.metering import Meter
from bitwatt.sensors import available
from bitwatt.sensors.counters import Clock
from bitwatt.testing import FakeSensor


def fakes() -> list[FakeSensor]:
    levels = {("gpu:GPU-1", name): 0.5 for name in ("utilisation", "memory_bytes", "clock_hz", "throttled")}
    return [
        FakeSensor(Clock(), {"cpu:0": 90.0, "cpu:1": 85.0, "dram:0": 8.0, "dram:1": 9.0}, name="rapl"),
        FakeSensor(Clock(), {"gpu:GPU-1": 300.0}, name="nvml", levels=levels),
    ]


def thread(meter: Meter, seconds: float) -> dict[str, float]:
    """CPU time of the process while the program does nothing: all of it is the thread's. Beside it what the meter says
    that it takes."""
    window = meter.window()
    time.sleep(0.2)
    before, process, began = meter.overhead, time.process_time(), time.monotonic()
    time.sleep(seconds)
    spent, elapsed, process = meter.overhead - before, time.monotonic() - began, time.process_time() - process
    window.end()
    interval = window.metered({}).interval_s or float("nan")
    shares = {"share_of_a_core": process / elapsed, "share_that_it_says": spent / elapsed}
    return {"seconds": elapsed, "cpu_s": process, "interval_s": interval, **shares}


def ticks(meter: Meter, times: int) -> dict[str, float]:
    """One look at everything, however dear: what the thread does when all is due."""
    window = meter.window()
    spent = []
    for _ in range(times):
        began = time.thread_time()
        meter.read()
        spent.append(time.thread_time() - began)
    window.end()
    return {"median_us": statistics.median(spent) * 1e6, "most_us": max(spent) * 1e6}


def parts() -> dict[str, dict[str, float]]:
    """CPU milliseconds of each sensor: a look, a reading at the ends, and what is read at the end alone. One at a time
    with rest in between, as the thread does it: caches are cold then."""
    found: dict[str, dict[str, float]] = {}
    for sensor in available():
        for name, ask in (("look", sensor.look), ("read", sensor.read), ("ends", sensor.ends)):
            spent = []
            for _ in range(7):
                time.sleep(0.3)
                began = time.thread_time()
                ask()
                spent.append(time.thread_time() - began)
            found.setdefault(sensor.name, {})[f"{name}_ms"] = statistics.median(spent) * 1e3
        sensor.close()
    return found


def sessions(meter: bool | Meter, times: int) -> float:
    """CPU microseconds of a session that holds nothing."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        with bitwatt.measure("nothing", keep=False, meter=meter):
            pass
        spent.append(time.process_time() - began)
    return statistics.median(spent) * 1e6


def phases(meter: bool | Meter, times: int) -> float:
    """CPU microseconds of a phase that is too short to be measured."""
    with bitwatt.measure("phases", keep=False, meter=meter):
        for _ in range(100):
            with bitwatt.phase("step"):
                pass
        began = time.process_time()
        for _ in range(times):
            with bitwatt.phase("step"):
                pass
        spent = time.process_time() - began
    return spent / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--fakes", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    began = time.process_time()
    found = [sensor.name for sensor in available()]
    opening = time.process_time() - began
    meter = Meter(fakes() if args.fakes else None)
    results = {
        "sensors": [sensor.name for sensor in fakes()] if args.fakes else found,
        "opening_ms": opening * 1e3,
        "sensors_cost": {} if args.fakes else parts(),
        "read": ticks(meter, 50),
        "session_us": {"metered": sessions(meter, 30), "not": sessions(False, 30)},
        "phase_us": {"metered": phases(meter, 20_000), "not": phases(False, 20_000)},
        "thread": thread(meter, args.seconds),
    }
    text = json.dumps(results, indent=2)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")
    share = results["thread"]["share_of_a_core"]  # type: ignore[index]
    print(f"the thread takes {100 * share:.3f} % of a core; the bar is 0.1 %")


if __name__ == "__main__":
    main()
