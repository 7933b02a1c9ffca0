"""Energy of a batch by a counter whose truth is known, and what is said where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from toy_runtimes import BUSY_W, install, toy

from bitwatt.deploy.measuring import batching
from bitwatt.deploy.measuring.joules import cpu_seconds, drawn, joules, read, told, why_none
from bitwatt.deploy.records import CONTROL, Call, Joules, Plan
from bitwatt.readings import Device, Reading
from bitwatt.sensors import SENSORS, Opened

PLAN = Plan(batches=(1, 8), threads=(1,))
CALLS = [
    Call(0, 0, 0, name, batch, 1, index, 10_000, cpu_ns, warm)
    for name in ("a", "a" + CONTROL)
    for batch in (1, 8)
    for index, (cpu_ns, warm) in enumerate([(1000, True), (3000, True), (2000, True), (90_000, False)])
]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(install(packages, counter=request.param)))
    vars(SENSORS).pop("_known", None)  # packages were looked for before
    yield batching.save(np.ones((64, 4)), tmp_path / "rows")
    vars(SENSORS).pop("_known", None)


@pytest.mark.parametrize("rows", [True], indirect=True)
def test_energy_is_what_the_counter_says_without_idling(rows: Path) -> None:
    found: dict[str, dict[str, Joules]] = {}
    seen = []
    notes = joules(
        {"a": toy("a", cpu_us=2000), "b": toy("b")}, CALLS, rows, PLAN, rows.parent / "work", found,
        progress=lambda done, of, what: seen.append(sorted(found)),
    )  # fmt: skip
    assert seen == [[], ["a"]], "what was read of one is there while the next is read"
    assert notes == []
    for at in ("1x1", "8x1"):
        one = found["a"][at]
        assert one.measured_uj is not None
        assert one.cpu_seconds == 2e-6
        # 20 W for 2 ms of CPU time, however long neighbours let it wait; the loop around it takes next to nothing.
        assert 0.8 * BUSY_W * 2000 < one.measured_uj < 1.3 * BUSY_W * 2000
        assert "a toy counter" in one.source
        assert re.search(r"of which (4\.9|5\.\d) W when idle are left out", one.source), one.source


@pytest.mark.parametrize("rows", [True], indirect=True)
def test_one_that_fails_has_no_energy_and_is_told(rows: Path) -> None:
    found: dict[str, dict[str, Joules]] = {}
    notes = joules({"a": toy("a", fails="raise")}, CALLS, rows, PLAN, rows.parent / "work", found)
    assert found["a"]["1x1"].measured_uj is None
    assert found["a"]["1x1"].cpu_seconds == 2e-6
    assert len(notes) == 1
    assert "no rows like these" in notes[0]


@pytest.mark.parametrize("rows", [False], indirect=True)
def test_without_a_counter_there_are_cpu_seconds_and_a_reason(rows: Path) -> None:
    if not why_none():
        pytest.skip("this machine has a counter")
    found: dict[str, dict[str, Joules]] = {}
    joules({"a": toy("a")}, CALLS, rows, PLAN, rows.parent / "work", found)
    one = found["a"]["8x1"]
    assert (one.measured_uj, one.cpu_seconds) == (None, 2e-6)
    assert "no energy counter" in one.source
    assert "rapl" in one.source


def test_cpu_seconds_are_of_warm_calls_and_not_of_the_control() -> None:
    assert cpu_seconds(CALLS) == {"a": {"1x1": 2e-6, "8x1": 2e-6}}


class Slow:
    """A steady draw, whose counter is read first, and then other things that take as long as is told."""

    name = source = "slow"

    def __init__(self, watts: float, after: list[float]) -> None:
        self.watts, self.after, self.now = watts, after, 0.0

    def open(self) -> list[Device]:
        return [Device("gpu:0", "gpu")]

    def read(self) -> list[Reading]:
        found = [Reading("gpu:0", "energy_j", self.watts * self.now), Reading("gpu:0", "power_w", self.watts)]
        self.now += self.after.pop(0) if self.after else 0.0
        return found

    def close(self) -> None: ...


def test_joules_and_seconds_are_of_one_window_however_long_a_reading_takes() -> None:
    """100 W, read after 0 and 0.5 s. Only the first of the two also reads what takes 0.25 s."""
    sensor = Slow(100.0, [0.0, 0.25, 0.0])
    opened = Opened(sensor)  # reads it once, too
    before = read([opened], lambda: sensor.now)
    sensor.now = 0.5
    found = drawn(before, read([opened], lambda: sensor.now))
    assert found == {("slow", "gpu:0"): (50.0, 0.5)}


def test_each_sensor_has_a_clock_of_its_own() -> None:
    """The second is read a second after the first, at the end only: its joules are of a longer window, and so are its
    seconds. 10 W and 20 W when idle; 13 W and 26 W for 10 and 11 seconds: 30 J and 66 J above, by 4 calls."""
    idle = {("a", "x"): (10.0, 1.0), ("b", "y"): (20.0, 1.0)}
    spent = {("a", "x"): (130.0, 10.0), ("b", "y"): (286.0, 11.0)}
    found = told("two", 4, idle, spent)
    assert found["uj"] == pytest.approx(1e6 * (30 + 66) / 4)
    assert found["source"] == "two: 4 calls in 11.00 s at 39.0 W, of which 30.0 W when idle are left out"


def test_a_device_that_is_lost_is_no_zero() -> None:
    known, lost = {("a", "x"): (0.0, 1.0)}, {("a", "x"): (1.0, None)}
    assert drawn(known, lost) == drawn(known, {}) == {}
    whole = drawn(known, {("a", "x"): (1.0, 3.0)})
    for idle, spent in ((whole, {}), ({}, whole), ({}, {})):
        assert told("s", 1, idle, spent) == {"uj": None, "source": "s: the counter was lost while it was read"}
