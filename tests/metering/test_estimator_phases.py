"""Calls of estimators are phases that the meter may measure, and must not slow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import bitwatt
from bitwatt.metering import Meter
from bitwatt.testing import FakeClock, FakeSensor

pytest.importorskip("sklearn")
from sklearn.linear_model import LinearRegression


def test_a_long_fit_is_measured_and_the_rest_is_no_part_of_it():
    clock = FakeClock()

    class Lasts(LinearRegression):
        def fit(self, X, y):
            clock.advance(2.0)
            return super().fit(X, y)

    meter = Meter([FakeSensor(clock, {"cpu:0": 100.0})], clock=clock.monotonic, thread=False)
    with bitwatt.measure("fit", meter=meter, keep=False) as session:
        clock.advance(1.0)
        Lasts().fit([[0.0], [1.0]], [0, 1])
        clock.advance(0.5)
    metered = session.run.meter
    fit = metered.phases["fit"]
    assert (fit.how, fit.seconds) == ("measured", 2.0)
    assert fit.energy_j["cpu:0"] == pytest.approx(200)  # 100 W x 2 s
    assert metered.energy[0].energy_j == pytest.approx(350)


SHORT = """
import json
import bitwatt
from bitwatt.metering import Meter
from bitwatt.sensors.counters import Clock
from bitwatt.testing import FakeSensor
from sklearn.linear_model import LinearRegression

with bitwatt.measure("fits", meter=Meter([FakeSensor(Clock(), {"cpu:0": 100.0})]), keep=False) as session:
    for _ in range(200):
        LinearRegression().fit([[0.0], [1.0]], [0, 1])
run, fit = session.run, session.run.meter.phases["fit"]
joules = fit.energy_j["cpu:0"], run.meter.energy[0].energy_j
print(json.dumps([fit.how, *joules, run.phase_seconds["fit"], run.meter.seconds]))
"""


def test_many_short_calls_are_shared_out_by_their_time():
    """In a process of its own: where torch is watched too, it books the time."""
    done = subprocess.run([sys.executable, "-c", SHORT], capture_output=True, text=True, timeout=300, check=True)
    how, joules, total, seconds, whole = json.loads(done.stdout)
    assert how == "apportioned"
    assert joules == pytest.approx(total * seconds / whole, rel=0.01)
