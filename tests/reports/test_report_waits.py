"""Time and energy that went by before there was something to do."""

from __future__ import annotations

import json

import pytest

import bitwatt
from bitwatt.readings import Device, Energy, Metered
from factories import transformer_run

#: 100 J in the first four of ten seconds, 900 J in the rest.
CPU = Energy(Device("cpu:0", "cpu"), 1000.0, "measured", "RAPL", 10.0)
SERIES = {"cpu:0": ((4.0, 25.0), (4.0, 150.0), (10.0, 150.0))}


def metered(**usage: float) -> Metered:
    return Metered(10.0, (CPU,), usage=usage, series=SERIES)


def test_the_first_batch_and_the_first_work_have_joules_by_the_power_until_then():
    run = transformer_run(meter=metered(first_batch_seconds=4.0, first_busy_seconds=5.0))
    waited = json.loads(bitwatt.report(run, format="json"))["energy"]["waited"]
    assert waited["first_batch"] == {"seconds": 4.0, "energy_j": pytest.approx(100.0)}
    assert waited["first_gpu_work"] == {"seconds": 5.0, "energy_j": pytest.approx(250.0)}
    text = " ".join(bitwatt.report(run).split())
    assert "start: first batch after 4 s, first work of a GPU after 5 s" in text
    assert "waited:" not in text  # imports and set-up are in it


def test_a_short_wait_is_for_programs_only():
    run = transformer_run(meter=metered(first_batch_seconds=0.2))
    assert "start:" not in bitwatt.report(run)
    assert json.loads(bitwatt.report(run, format="json"))["energy"]["waited"]["first_batch"]["seconds"] == 0.2


def test_without_energy_the_time_is_told_alone():
    run = transformer_run(meter=Metered(10.0, usage={"first_batch_seconds": 4.0}))
    assert "start: first batch after 4 s" in bitwatt.report(run)
    assert json.loads(bitwatt.report(run, format="json"))["energy"]["waited"]["first_batch"]["energy_j"] is None
