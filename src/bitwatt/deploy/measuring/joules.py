"""Energy of a batch, from counters of processors and GPUs, where there are any; CPU seconds always, named so.

A counter is of a whole processor or GPU and moves a few times a second. So a scenario is asked again and again for long
enough, and what the machine draws while it does nothing, measured right before, is subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bitwatt.deploy import runtimes
from bitwatt.deploy.amounts import amount
from bitwatt.deploy.measuring import batching, children
from bitwatt.deploy.measuring.timing import Progress
from bitwatt.deploy.measuring.worker import limit_torch
from bitwatt.deploy.records import CONTROL, Artefact, Call, Joules, Plan, cell
from bitwatt.readings import MEASURED
from bitwatt.sensors import SENSORS, Opened, available, survey

#: A loop is as long as so many steps of the slowest counter, and no shorter than this.
STEPS, LEAST_S = 10, 0.5
FEEDS = 32

#: By sensor and device: when it was read, and joules so far; and joules of a stretch of time, with its seconds.
Readings = dict[tuple[str, str], tuple[float, float | None]]
Drawn = dict[tuple[str, str], tuple[float, float]]


def joules(
    artefacts: Mapping[str, Artefact],
    calls: Sequence[Call],
    rows: Path,
    plan: Plan,
    folder: Path,
    found: dict[str, dict[str, Joules]],
    *,
    progress: Progress | None = None,
    timeout_s: float = children.HANGS_S,
) -> list[str]:
    """Fills `found`, by scenario and setting, as it goes on; returns what failed. CPU seconds are the median of the
    timed calls."""
    seconds = cpu_seconds(calls)
    why = why_none()
    if why:
        source = f"no energy counter ({why}); CPU seconds are the median of the timed calls"
        for name, each in seconds.items():
            found[name] = {at: Joules(None, value, source) for at, value in each.items()}
        return []
    notes: list[str] = []
    turns = [(name, threads) for threads in plan.threads for name in artefacts]
    for turn, (name, threads) in enumerate(turns):
        if progress is not None:
            progress(turn, len(turns), f"energy of {name}")
        job = {
            "task": "bitwatt.deploy.measuring.joules:draw", "artefact": children.packed(artefacts[name]),
            "rows": str(rows), "batches": list(plan.batches),
        }  # fmt: skip
        ended = children.run(job, folder, threads=threads, core=turn, timeout_s=timeout_s)
        if ended.failure:
            notes.append(f"the energy of {name} with {amount(threads, 'thread')} is not known: {ended.failure}")
        known = {one["batch"]: one for one in ended.results}
        for batch in plan.batches:
            at = cell(batch, threads)
            one = known.get(batch, {"uj": None, "source": "it failed while its energy was read"})
            found.setdefault(name, {})[at] = Joules(one["uj"], seconds.get(name, {}).get(at), one["source"])
    return notes


def cpu_seconds(calls: Iterable[Call]) -> dict[str, dict[str, float]]:
    known: dict[str, dict[str, list[int]]] = {}
    for call in calls:
        if call.warm and not call.scenario.endswith(CONTROL):
            settings = known.setdefault(call.scenario, {})
            settings.setdefault(cell(call.batch, call.threads), []).append(call.cpu_ns)
    return {name: {at: median(each) / 1e9 for at, each in cells.items()} for name, cells in known.items()}


def counters() -> list[Opened]:
    """The sensors here that measure energy, opened; the others are closed again."""
    found = []
    for sensor in available():
        if any(quantity == "energy_j" and how == MEASURED for (_, quantity), how in sensor.reads.items()):
            found.append(sensor)
        else:
            sensor.close()
    return found


def why_none() -> str:
    """Why there is no counter; empty where there is one."""
    opened = counters()
    for sensor in opened:
        sensor.close()
    if opened:
        return ""
    told = survey()
    return "; ".join(f"{name}: {told[name]}" for name in ("rapl", "nvml") if name in SENSORS and told[name])


def draw(job: dict[str, Any], tell: children.Tell) -> None:
    """The task: one scenario, all batch sizes."""
    artefact = children.unpacked(job["artefact"])
    tell.at(artefact.scenario, "while it was loaded")
    rows = batching.load(job["rows"])
    predict = runtimes.load(artefact, job["threads"]).predict
    limit_torch(job["threads"])
    sensors = counters()
    steps = [device.resolution_s or 0.0 for sensor in sensors for device in sensor.devices]
    seconds = max(LEAST_S, STEPS * max(steps, default=0.0))
    for batch in job["batches"]:
        feeds = batching.batches(rows, batch, FEEDS)
        predict(feeds[0])
        tell.at(artefact.scenario, f"while idling before batch size {batch}")
        before = read(sensors)
        time.sleep(seconds)
        idle = drawn(before, read(sensors))
        tell.at(artefact.scenario, f"while its energy was read at batch size {batch}")
        calls, before = 0, read(sensors)
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            predict(feeds[calls % len(feeds)])
            calls += 1
        spent = drawn(before, read(sensors))
        tell.result({"batch": batch, **told(" and ".join(sensor.source for sensor in sensors), calls, idle, spent)})


def told(source: str, calls: int, idle: Drawn, spent: Drawn) -> dict[str, Any]:
    if not idle or idle.keys() != spent.keys():
        return {"uj": None, "source": f"{source}: the counter was lost while it was read"}
    idle_w = {key: joules / seconds for key, (joules, seconds) in idle.items()}
    above = sum(joules - idle_w[key] * seconds for key, (joules, seconds) in spent.items())
    busy_w = sum(joules / seconds for joules, seconds in spent.values())
    said = (
        f"{source}: {calls} calls in {max(seconds for _, seconds in spent.values()):.2f} s at {busy_w:.1f} W, of which "
        f"{sum(idle_w.values()):.1f} W when idle are left out"
    )
    if above <= 0:
        return {"uj": None, "source": f"{said}: no more than idle, so that its share is not known"}
    return {"uj": 1e6 * above / calls, "source": said}


def read(sensors: Sequence[Opened], clock: Callable[[], float] = time.monotonic) -> Readings:
    """Of each device when, and its joules so far. The clock is looked at right before a sensor is asked, as sensors
    read their counters first: what else they read takes longer at one time than at another."""
    found: Readings = {}
    for sensor in sensors:
        now = clock()
        for one in sensor.read():
            if one.quantity == "energy_j" and one.how == MEASURED:
                found[sensor.name, one.device] = (now, one.value)
    return found


def drawn(before: Readings, after: Readings) -> Drawn:
    """Joules of each device and the seconds between its own two readings; nothing where one was lost on the way."""
    found: Drawn = {}
    for key, (began, first) in before.items():
        ended, last = after.get(key, (began, None))
        if first is None or last is None:
            return {}
        found[key] = (last - first, ended - began)
    return found
