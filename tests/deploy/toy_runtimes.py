"""A runtime whose manners are told by its artefact's options: for tests of what measures them, in real processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitwatt.context import current
from bitwatt.deploy.measuring import footprint
from bitwatt.deploy.records import Artefact
from bitwatt.readings import Device, Reading

METADATA = "Metadata-Version: 2.1\nName: toy-runtimes\nVersion: 1.0\n"
POINTS = "[bitwatt.deploy.runtimes]\ntoy = toy_runtimes:Toy\n"
COUNTER = "[bitwatt.sensors]\ntoy = toy_runtimes:ToyCounter\n"
IDLE_W, BUSY_W = 5.0, 20.0


def install(folder: Path, *, counter: bool = False) -> Path:
    """As a package of somebody else's, which is found by its entry points; `folder` must be importable."""
    place = folder / "toy_runtimes-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(METADATA)
    (place / "entry_points.txt").write_text(POINTS + (COUNTER if counter else ""))
    return folder


def toy(name: str, **manners: Any) -> Artefact:
    imports = tuple(manners.pop("imports", ("numpy",)))
    return Artefact(name, "toy", ".", (), "predict", options=manners, imports=imports)


class Toy:
    name, baseline, order = "toy", "", 99

    def load(self, artefact: Artefact, threads: int) -> Model:
        if artefact.options.get("fails") == "load":
            raise ValueError("this model is broken")
        if artefact.options.get("leaks_mb"):  # by call: a machine that stands still must not cut them short
            footprint.SECONDS = 600.0
        return Model(dict(artefact.options))


class Model:
    def __init__(self, manners: dict[str, Any]) -> None:
        self.manners, self.kept, self.calls = manners, [], 0

    def predict(self, rows: Any) -> Any:
        self.calls += 1
        fails = self.manners.get("fails") if self.calls > self.manners.get("after", 0) else None
        if fails == "raise" or (fails == "large" and len(rows) > 8):
            raise ValueError("no rows like these")
        if fails == "exit":
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(3)
        if fails == "watched" and current() is not None:
            print("seen", file=sys.stderr, flush=True)
            os._exit(3)
        if fails == "crash":
            os.abort()
        if fails == "hang":
            time.sleep(3600)
        if self.manners.get("prints"):
            print("chatter " * 100)
        if mb := self.manners.get("leaks_mb"):
            self.kept.append(b"\1" * int(mb * 1e6))
        if mb := self.manners.get("spikes_mb"):
            len(b"\1" * int(mb * 1e6))
        if us := self.manners.get("cpu_us"):
            _spin(us, time.thread_time_ns)
        else:
            _spin(self.manners.get("us", 50) * (self.manners.get("cold", 1) if self.calls <= 40 else 1))
        return rows


class ToyCounter:
    """Draws a little all the time, and more for each second of CPU time of the process that reads it."""

    name = "toy"
    source = "a toy counter"

    def why_absent(self) -> str | None:
        return None

    def open(self) -> list[Device]:
        return [Device("cpu:0", "cpu", "toy", 1000.0, 0.01)]

    def read(self) -> list[Reading]:
        return [Reading("cpu:0", "energy_j", IDLE_W * time.monotonic() + BUSY_W * time.process_time())]

    def close(self) -> None:
        pass


def _spin(us: float, clock: Callable[[], int] = time.perf_counter_ns) -> None:
    end = clock() + us * 1000
    while clock() < end:
        pass
