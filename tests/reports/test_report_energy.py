"""The Energy block: calm, labelled, and silent about what nobody measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import bitwatt
from bitwatt.config import settings
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy
from bitwatt.reports.power import chart, sparkline
from bitwatt.reports.trouble import troubles
from factories import make_run, metered, transformer_run


def block(text: str) -> list[str]:
    return text.partition("\nEnergy: ")[2].partition("\n\n")[0].splitlines()


def modelled() -> Metered:
    part = Energy(Device("cpu", "cpu"), 120.0, "modelled", "modelled: 100 W (TDP) x CPU seconds / 2 cores", 12.0, 10.0)
    phase = PhaseEnergy({"cpu": 60.0}, "apportioned", 1.1)
    return Metered(12.0, (part,), {"forward": phase}, {"cpu": 60.0}, {"cpu_seconds": 2.4}, overhead_s=0.001)


def test_the_block_is_short_and_says_how_each_number_is_known():
    run = transformer_run(meter=metered())
    lines = block(bitwatt.report(run, width=100))
    assert len(lines) <= 13
    text = " ".join(line.strip() for line in lines)
    assert text.startswith("3.6 kJ measured · 300 W mean")
    assert "A GPU: 3 kJ · 250 W mean, 610 W peak · measured (NVML) · idle 41.7 %, 375 J at 75 W" in text
    assert "package 1: unknown: vanished" in text
    assert "location unknown" in text
    assert "no price set" in text
    assert "meter: 4 ms of CPU time, < 0.1 % of a core" in text


def test_phases_show_joules_and_ratios_with_how_they_were_found():
    run = transformer_run(meter=metered())
    rows = {row.split()[0]: row for row in bitwatt.report(run, by="phase", width=140).splitlines() if row[:1].isalpha()}
    assert "~1 kJ" in rows["forward"]  # apportioned
    assert " 660 J" in rows["evaluate/inference"]  # measured
    assert "~" not in rows["evaluate/inference"]
    flops = bitwatt.totals(run).by("phase")["evaluate/inference"]
    ratio = json.loads(bitwatt.report(run, format="json"))["energy"]["by_phase"]["evaluate/inference"]
    assert ratio["j_per_tflop"] == pytest.approx(660 / (flops / 1e12))
    assert ratio["how"] == "measured"


def test_modelled_energy_gives_no_ratio_unless_asked_for_and_is_marked_then():
    run = transformer_run(meter=modelled())
    plain = bitwatt.report(run, width=140)
    assert "unknown: nothing was measured; modelled, 120 J" in plain
    assert "J/TFLOP" not in plain
    document = json.loads(bitwatt.report(run, format="json"))["energy"]
    assert (document["energy_j"], document["measured_j"], document["j_per_tflop"]) == (None, None, None)
    shown = bitwatt.report(run, width=140, settings=settings(show_modelled=True))
    assert "120 J modelled" in shown
    assert re.search(r"modelled [\d.]+ k?\s?J/TFLOP", shown)


def test_without_a_counter_it_is_one_sentence_and_never_zero():
    run = transformer_run(meter=Metered(3.0, usage={"cpu_seconds": 2.0}))
    lines = block(bitwatt.report(run))
    assert lines[0] == "unknown: no counter can be read here (bitwatt doctor says why); 2 s of CPU time"
    assert len(lines) <= 3
    assert " 0 J" not in bitwatt.report(run)
    assert json.loads(bitwatt.report(run, format="json"))["energy"]["energy_j"] is None
    assert "J/TFLOP" not in bitwatt.report(run)


def test_a_run_that_was_not_metered_has_no_block():
    for format in ("text", "markdown", "html"):
        assert "Energy" not in bitwatt.report(transformer_run(), format=format)
    assert json.loads(bitwatt.report(transformer_run(), format="json"))["energy"] is None


def test_carbon_and_cost_come_from_settings_and_say_so():
    run = transformer_run(meter=metered())
    # 3600 J is 1 Wh; x 1.5 PUE x 400 g/kWh = 0.6 g; x 1.5 x 0.3 per kWh
    told = settings(pue=1.5, intensity_g_per_kwh=400, price_per_kwh=0.3, currency="EUR")
    text = " ".join(block(bitwatt.report(run, settings=told)))
    assert "600 mg CO2e" in text
    assert "PUE 1.5" in text
    assert "0.00045 EUR" in text
    assert "pue 1.5 (pue=)" in text


def test_mfu_has_its_denominator():
    known = replace(metered().energy[0], device=Device("gpu:GPU-1", "gpu", "NVIDIA H200"))
    run = transformer_run(meter=replace(metered(), energy=(known,)))
    text = " ".join(line.strip() for line in block(bitwatt.report(run)))
    assert re.search(r"MFU: \d+\.\d+ % of .*FLOP/s .* dense", text)
    assert "MFU: unknown: no peak is known for 'A GPU'" in bitwatt.report(transformer_run(meter=metered()))


def test_html_draws_power_over_time_and_escapes_names():
    series = {"gpu:GPU-1": ((1.0, 100.0), (2.0, 300.0)), "cpu:0": ((1.0, 50.0), (2.0, 40.0))}
    part = replace(metered().energy[0], device=Device("gpu:GPU-1", "gpu", "<b>GPU</b>"))
    page = bitwatt.report(transformer_run(meter=metered(energy=(part,), series=series)), format="html")
    assert page.count("<polyline") == 2
    assert "<b>GPU" not in page
    assert "&lt;b&gt;GPU" in page
    assert chart({}, {}) == ""
    assert chart({"gpu:1": ((1.0, 5.0),)}, {}) == ""


def test_a_sparkline_shows_the_shape():
    assert sparkline([(float(i), 10.0 if i < 4 else 80.0) for i in range(8)]) == "▂▂▂▂████"
    assert sparkline([(1.0, 5.0)]) == ""
    assert len(sparkline([(float(i), float(i)) for i in range(500)])) == 32
    plain = bitwatt.report(transformer_run(meter=metered()))
    from bitwatt.reports.text import fitting

    assert fitting(plain, "ascii").isascii()


def test_what_may_explain_odd_numbers_is_told():
    usage = {
        "gpu:A.throttled_mean": 0.5, "gpu:A.other_processes_peak": 2.0, "host.steal_seconds": 1.0,
        "host.io_stall_seconds": 5.0, "host.memory_stall_seconds": 0.01,
    }  # fmt: skip
    told = troubles(Metered(10.0, usage=usage, notes=("gpu:A throttled: power cap",)))
    assert told[0] == "gpu:A was held back 50.0 % of the time (power cap)"
    assert "2 other processes were on gpu:A" in told[1]
    assert any("hypervisor gave 10.0 %" in sentence for sentence in told)
    assert any("disks 50.0 %" in sentence for sentence in told)
    assert len(told) == 4
    assert troubles(Metered(10.0)) == []


def test_waiting_for_data_is_told_with_its_energy():
    phases = {"preprocess": PhaseEnergy({"gpu:GPU-1": 500.0}, "apportioned", 3.0)}
    run = transformer_run(meter=metered(phases=phases, remainder_j={"gpu:GPU-1": 2500.0, "cpu:0": 600.0}))
    assert "waited: for data 3 s, ~500 J" in bitwatt.report(run)


def test_every_format_survives_a_run_without_work():
    for format in ("text", "markdown", "json", "html"):
        assert bitwatt.report(make_run(meter=metered()), format=format)
