"""Energy that is known for a part of a run only: a lower bound, told as one, and compared with nothing."""

from __future__ import annotations

import json

import pytest

import bitwatt
from bitwatt.comparing.quantities import value
from bitwatt.config import settings
from bitwatt.fingerprint import summary
from bitwatt.impact.energy import Ratio, used
from bitwatt.readings import Device, Energy, Metered
from bitwatt.reports.points import placed
from bitwatt.sinks.values import values
from bitwatt.store.cells import joules
from factories import transformer_run


def metered(known_s: float, seconds: float = 30.0) -> Metered:
    cpu = Energy(Device("cpu:0", "cpu"), 50 * known_s, "measured", "RAPL", known_s, 50.0)
    dram = Energy(Device("dram:0", "dram"), 5 * seconds, "measured", "RAPL", seconds, 5.0)
    return Metered(seconds, (cpu, dram))


def test_the_headline_says_of_how_much_and_the_mean_is_of_that():
    run = transformer_run(meter=metered(10.0))
    head = next(line for line in bitwatt.report(run).splitlines() if line.startswith("Energy: "))
    assert head.startswith("Energy: ≥ 650 J measured, known for 10.0 of 30.0 s · 55 W mean · ≥ ")
    told = json.loads(bitwatt.report(run, format="json"))["energy"]
    assert (told["known_s"], told["is_least"]) == (10.0, True)


@pytest.mark.parametrize("known_s", [30.0, 29.2, 0.0])  # all of it, all but the last second, and not said
def test_what_is_known_all_along_is_no_bound(known_s):
    assert used(metered(known_s)).known_s is None
    head = next(
        line for line in bitwatt.report(transformer_run(meter=metered(known_s))).splitlines() if "J/TFL" in line
    )
    assert "≥" not in head
    assert (
        json.loads(bitwatt.report(transformer_run(meter=metered(known_s)), format="json"))["energy"]["is_least"]
        is False
    )


def test_grams_say_that_they_are_the_least():
    known = settings("/", intensity_g_per_kwh=100)
    text = " ".join(bitwatt.report(transformer_run(meter=metered(10.0)), settings=known).split())
    assert "at least: its energy is known for 10.0 of 30.0 s" in text


def test_it_is_compared_with_nothing():
    one = placed(
        metered(10.0), settings("/", intensity_g_per_kwh=100), "2026-03-01T10:00:00+00:00", flops=1, bops=1, name=""
    )
    assert (one.point.energy_j, one.point.grams) == (None, None)
    priced = settings("/", intensity_g_per_kwh=100)
    assert value(transformer_run(meter=metered(10.0)), "grams", settings=priced).amount is None
    assert value(transformer_run(meter=metered(30.0)), "grams", settings=priced).amount == pytest.approx(
        0.0458, rel=0.01
    )
    found = value(transformer_run(meter=metered(10.0)), "energy")
    assert (found.amount, found.because) == (None, "it is known for 10.0 of 30.0 s only")
    assert value(transformer_run(meter=metered(30.0)), "energy").amount == 1650


@pytest.mark.parametrize(
    ("missing", "is_least", "sign"), [(0, False, ""), (3, False, "≤ "), (0, True, "≥ "), (3, True, "≶ ")]
)
def test_the_sign_of_a_ratio(missing, is_least, sign):
    assert Ratio(1.0, 1, 1, "measured", missing, is_least).sign == sign


def test_lists_sinks_and_files_say_that_it_is_the_least():
    run = transformer_run(meter=metered(10.0))
    found = summary(run)
    assert (found["energy_j"], found["energy_how"]) == (650.0, "measured in part")
    assert joules(found["energy_j"], found["energy_how"]) == "≥ 650 J"
    assert [joules(650, how) for how in ("measured", "apportioned", "modelled", None)] == [
        "650 J",
        "~650 J",
        "~650 J",
        "650 J",
    ]
    (sent,) = [one for one in values(run) if one.name == "energy_j"]
    assert sent.about["how"] == "measured in part"
