"""The Energy block: calm, labelled, and silent about what nobody measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import bitwatt
from bitwatt.config import settings
from bitwatt.ledger import Row
from bitwatt.observed import Observed
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy
from bitwatt.records import Machine, Op, TensorSpec
from bitwatt.reports.footprint import money
from bitwatt.reports.html import fragment
from bitwatt.reports.power import chart, sparkline
from bitwatt.reports.trouble import troubles
from bitwatt.served import Requests
from factories import make_run, metered, mm_op, transformer_run


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
    assert len(lines) <= 4
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
    text = " ".join(" ".join(block(bitwatt.report(run, settings=told))).split())
    assert "600 mg CO2e" in text
    assert "PUE 1.5" in text
    assert "0.00045 EUR" in text
    assert "settings: pue 1.5, intensity_g_per_kwh 400, price_per_kwh 0.3, currency EUR (arguments)" in text


def said(run, **options):
    """The block as one line, with settings of no file."""
    return " ".join(" ".join(block(bitwatt.report(run, settings=settings("/", **options)))).split())


def test_grams_tell_what_they_hold():
    run = transformer_run(meter=metered())
    # 12 s of one device of 150 kg that is used for 35,040 h
    text = said(run, intensity_g_per_kwh=400, embodied_kg=150, embodied_lifetime_h=35040)
    assert "414 mg CO2e (400 g/kWh, the user's number, intensity_g_per_kwh=; PUE not applied; " in text
    assert "14.3 mg of it embodied" in text
    assert "unstated" not in text
    assert "embodied share unknown" in said(run, intensity_g_per_kwh=400, embodied_kg=150)
    failed = said(run, intensity_g_per_kwh=400, grid_provider="carbon_aware_sdk")
    assert "carbon_aware_sdk: grid.url is not set" in failed  # another number stands in: that is told
    assert "CO2e unknown: codecarbon: " in said(run, region="nowhere")
    document = json.loads(bitwatt.report(run, format="json", settings=settings("/", intensity_g_per_kwh=400)))
    assert document["energy"]["carbon"]["intensity_g_per_kwh"] == 400


def test_what_follows_from_modelled_energy_is_marked():
    text = said(transformer_run(meter=modelled()), show_modelled=True, intensity_g_per_kwh=400, price_per_kwh=0.3)
    assert "modelled 13.3 mg CO2e" in text
    assert "modelled 0.00001" in text


def test_a_price_by_the_hour_needs_no_sensor():
    text = said(transformer_run(meter=Metered(7200.0)), price_per_device_hour=6172.5, currency="EUR")
    assert "cost: 12,345.00 EUR" in text
    assert [money(amount, None) for amount in (0.0, 0.0000451234, 0.5, 1234.567)] == [
        "0.00", "0.0000451", "0.5", "1,234.57",
    ]  # fmt: skip


def test_work_that_is_missing_makes_ratios_upper_bounds():
    run = make_run([Row("forward", "", mm_op(64, 64, 64), 5), Row("forward", "", Op("no.such"), 1)], meter=metered())
    assert re.search(r"· ≤ [\d.]+ .?J/TFLOP · ≤ [\d.]+ .?J/TBOP", said(run))
    row = next(row for row in bitwatt.report(run, by="phase", width=140).splitlines() if row.startswith("forward"))
    assert row.count("~≤ ") == 2
    assert "≤" not in said(transformer_run(meter=metered()))


def test_energy_of_the_network_is_modelled_and_in_no_sum():
    run = transformer_run(meter=metered(usage={"host.network_sent_bytes": 3e9, "host.network_received_bytes": 1e9}))
    assert "network: 40 J of the whole machine, modelled, in no sum" in said(run, transfer_j_per_byte=1e-8)
    assert said(run, transfer_j_per_byte=1e-8).startswith("3.6 kJ measured")
    assert "network" not in said(run)


def test_a_wait_has_joules_only_where_they_are_known():
    known = {"preprocess": PhaseEnergy({"cpu": 5.0}, "apportioned", 1.31)}
    assert "waited: for data 1.31 s meter:" in said(transformer_run(meter=Metered(3.0, phases=known)))
    with_energy = metered(phases={"preprocess": PhaseEnergy({"cpu:0": 5.0}, "apportioned", 1.31)})
    assert "waited: for data 1.31 s, ~5 J" in said(transformer_run(meter=with_energy))


def test_hours_of_devices():
    run = transformer_run(meter=metered(seconds=7200.0, usage={"cpu_seconds": 5400.0}))
    assert "used: 1 h 30 min CPU, 2 GPU-hours, 1.5 CPU-hours" in said(run)
    found = json.loads(bitwatt.report(run, format="json"))["energy"]
    assert (found["gpu_hours"], found["cpu_hours"]) == (2.0, 1.5)
    without = json.loads(bitwatt.report(transformer_run(meter=Metered(3.0)), format="json"))["energy"]
    assert without["cpu_hours"] is None


def test_a_price_without_energy_says_what_it_lacks():
    text = said(transformer_run(meter=Metered(7200.0)), price_per_device_hour=3.0, price_per_kwh=0.3)
    assert "cost: 6.00 (without electricity: no energy was measured)" in text
    assert "without electricity" not in said(transformer_run(meter=Metered(7200.0)), price_per_device_hour=3.0)


def test_programs_are_told_the_settings_that_were_used():
    run = transformer_run(meter=metered(settings={"pue": "1.2 (bitwatt.toml)"}))
    found = json.loads(bitwatt.report(run, format="json", settings=settings("/", pue=1.5)))["energy"]
    assert (found["carbon"]["pue"], found["settings"]) == (1.5, {"pue": "1.5 (pue=)"})
    assert found["settings_at_run"] == {"pue": "1.2 (bitwatt.toml)"}


def test_bandwidth_of_memory_is_measured_where_a_counter_saw_it_and_else_modelled():
    gpu = replace(metered().energy[0], device=Device("gpu:GPU-1", "gpu", "NVIDIA H200"))
    seen = metered(energy=(gpu,), usage={"gpu:GPU-1.dram_active_mean": 0.25})
    found = json.loads(bitwatt.report(transformer_run(meter=seen), format="json"))["energy"]["memory_bandwidth"]
    assert (found["bytes_per_s"], found["how"]) == (pytest.approx(0.25 * 4.8e12), "measured")
    assert "memory bandwidth: 1.2 TB/s, 25.0 % of its peak · measured (DCGM" in said(transformer_run(meter=seen))
    op = mm_op(64, 64, 64)  # float32: three matrices of 64 x 64
    run = make_run([Row("forward", "", op, 1000)], meter=Metered(2.0, usage={"cpu_seconds": 2.0}))
    found = json.loads(bitwatt.report(run, format="json"))["energy"]["memory_bandwidth"]
    assert found["how"] == "modelled"
    assert found["bytes_per_s"] == pytest.approx(1000 * 3 * 64 * 64 * 4 / run.seconds)


def test_where_data_came_from_and_what_nobody_tells():
    usage = {"disk_read_bytes": 3e9, "io_read_bytes": 5e9, "host.network_received_bytes": 7e6}
    run = make_run([], meter=Metered(2.0, usage=usage))
    data = json.loads(bitwatt.report(run, format="json"))["throughput"]["data"]
    assert (data["disk_bytes"], data["cache_bytes"], data["network_received_bytes"]) == (3e9, 2e9, 7e6)
    assert (data["network_sent_bytes"], data["pattern"]) == (None, None)
    assert data["pattern_because"] == "the OS does not tell sequential from random"
    text = " ".join(bitwatt.report(run).split())
    assert "data: 3 GB from disk, 2 GB from page cache, pipes and sockets, 7 MB received" in text
    assert "throughput" not in json.loads(bitwatt.report(make_run([], meter=Metered(2.0)), format="json"))


def test_settings_are_told_by_place():
    told = settings("/", flags={"pue": "1.5", "country": "FRA"}, currency="EUR")
    text = " ".join(bitwatt.report(transformer_run(meter=metered()), settings=told).split())
    assert "settings: pue 1.5, country FRA (flags); currency EUR (arguments)" in text


def test_a_part_of_a_processor_has_a_part_of_its_peak():
    cpu = Energy(Device("cpu:0", "cpu"), 600.0, "measured", "RAPL", 12.0)
    few, all_ = (
        make_run([Row("forward", "", mm_op(512, 512, 512), 1000)], meter=Metered(12.0, (cpu,)),
                 machine=Machine({"cpu": "AMD EPYC 7543 32-Core Processor", "cores": cores}))
        for cores in ("4 usable of 64", "64")
    )  # fmt: skip
    assert "4 of 32 cores" in said(few)
    shares = [json.loads(bitwatt.report(run, format="json"))["energy"]["mfu"]["mfu"] for run in (few, all_)]
    assert shares[0] == pytest.approx(8 * shares[1])


def test_mfu_has_its_denominator():
    known = replace(metered().energy[0], device=Device("gpu:GPU-1", "gpu", "NVIDIA H200"))
    run = transformer_run(meter=replace(metered(), energy=(known,)))
    text = " ".join(line.strip() for line in block(bitwatt.report(run)))
    assert re.search(r"MFU: < 0\.1 % of .*FLOP/s .* dense", text)  # little, and not 0
    found = json.loads(bitwatt.report(run, format="json"))["energy"]
    # against the 700 W of an H200 for the ideal time; the processor's joules are not the GPU's
    assert found["verdict"]["ratios"]["energy over ideal"] == pytest.approx(3000 / (700 * found["mfu"]["ideal_s"]))
    assert f"verdict: {found['verdict']['words']} (" in text
    assert "verdict" not in bitwatt.report(transformer_run(meter=metered()))  # nobody knows what that GPU could do
    assert "MFU: unknown: no peak is known for 'A GPU'" in bitwatt.report(transformer_run(meter=metered()))


def test_html_draws_power_over_time_and_escapes_names():
    series = {"gpu:GPU-1": ((1.0, 100.0), (2.0, 300.0)), "cpu:0": ((1.0, 50.0), (2.0, 40.0))}
    part = replace(metered().energy[0], device=Device("gpu:GPU-1", "gpu", "<b>GPU</b>"))
    run = transformer_run(meter=metered(energy=(part,), series=series))
    assert fragment(run).count("<polyline") == 2
    for page in (fragment(run), bitwatt.report(run, format="html")):
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
    assert troubles(Metered(10.0, usage={"gpu:A.other_processes_peak": 1.0}))[0].startswith("1 other process was on")


def test_waiting_for_data_is_told_with_its_energy():
    phases = {"preprocess": PhaseEnergy({"gpu:GPU-1": 500.0}, "apportioned", 3.0)}
    run = transformer_run(meter=metered(phases=phases, remainder_j={"gpu:GPU-1": 2500.0, "cpu:0": 600.0}))
    assert "waited: for data 3 s, ~500 J" in bitwatt.report(run)


def test_every_format_survives_a_run_without_work():
    for format in ("text", "markdown", "json", "html"):
        assert bitwatt.report(make_run(meter=metered()), format=format)


def test_what_a_sample_took_says_how_far_it_is_known():
    rows = [Row("train", "", mm_op(64, 64, 64), 5), Row("train", "", Op("no.such"), 1)]
    run = make_run(rows, meter=modelled(), observed=Observed(processed={"train": {"samples": 1000}}))
    text = " ".join(bitwatt.report(run, settings=settings("/", show_modelled=True)).split())
    assert "the whole run, per 1,000 samples: modelled 120 J · ≥ 2.62 MFLOP" in text


def test_sci_is_shown_with_its_terms_where_there_is_a_unit():
    made = {"intensity_g_per_kwh": 400, "pue": 1.5, "embodied_kg": 150, "embodied_lifetime_h": 35040}
    counted = Observed(processed={"train": {"samples loaded": 9, "samples": 1000, "tokens": 50_000}})
    run = transformer_run(meter=metered(), observed=counted)
    # 1 Wh x 1.5 x 400 g/kWh = 0.6 g, and 12 s of 150 kg in 35,040 h = 14.3 mg
    text = said(run, **made)
    terms = "((1 Wh x PUE 1.5 x 400 g/kWh) + 14.3 mg embodied) / 1,000 samples"
    assert f"SCI: 614 µg a sample = {terms}; 12.3 µg a token" in text
    assert "((1 Wh x 400 g/kWh) + M not set) / 1,000 samples" in said(run, intensity_g_per_kwh=400)
    found = json.loads(bitwatt.report(run, format="json", settings=settings("/", **made)))["energy"]["sci"]
    grams = 0.6 + 150_000 * 12 / 3600 / 35040
    assert found["units"]["samples"] == {"count": 1000, "g_each": pytest.approx(grams / 1000)}
    assert (found["energy_kwh"], found["intensity_g_per_kwh"], found["pue"]) == (0.001, 400, 1.5)
    assert "modelled 13.3 µg a sample" in said(
        transformer_run(meter=modelled(), observed=counted), show_modelled=True, intensity_g_per_kwh=400
    )
    # a server's requests come first, loaders' samples last, and without an intensity there is none
    served = transformer_run(meter=metered(), observed=counted, requests=Requests(500))
    assert "/ 500 requests" in said(served, **made)
    loaded = transformer_run(meter=metered(), observed=Observed(processed={"": {"samples loaded": 9}}))
    assert "a sample loaded = " in said(loaded, **made)
    assert "SCI" not in said(run)
    assert "SCI" not in said(transformer_run(meter=metered()), **made)
    assert json.loads(bitwatt.report(run, format="json", settings=settings("/")))["energy"]["sci"] is None


def test_rows_passed_to_estimators_are_counted_once():
    def op(name, rows):
        return Op(f"sklearn.{name}", (("X", TensorSpec((rows, 20), "float64")),))

    ledger = [
        Row("fit", "Pipeline", op("pipeline.Pipeline.fit", 2000), 2),
        Row("fit", "Pipeline.scaler", op("preprocessing.StandardScaler.fit", 2000), 2),  # called by the pipeline
        Row("train/predict", "Forest", op("ensemble.RandomForestClassifier.predict", 500), 1),
        Row("train/predict", "Forest", op("ensemble.RandomForestClassifier.predict_proba", 500), 1),
    ]
    observed = Observed(phases={"fit": (2, 2.0), "train/predict": (1, 0.1)})
    run = make_run(ledger, seconds=4.0, observed=observed)
    text = bitwatt.report(run, settings=settings("/"))
    assert "Throughput: 4,000 rows fitted (1 k/s), 500 rows predicted (125/s) over 4 s" in text
    assert "  in fit: 4,000 rows fitted (2 k/s)" in text
    assert "  in train/predict: 500 rows predicted (5 k/s)" in text


def test_what_is_scored_has_no_part_in_what_fitting_took():
    rows = [
        Row("fit", "", mm_op(64, 64, 64), 1000),
        Row("score", "", mm_op(64, 64, 64), 1),
        Row("", "", mm_op(8, 8, 8), 1),
    ]
    phases = {
        "fit": PhaseEnergy({"gpu:GPU-1": 500.0}, "measured", 9.0),
        "score": PhaseEnergy({"gpu:GPU-1": 2.0}, "apportioned", 0.1),
    }
    counted = Observed({"fit": {"rows fitted": 1000}, "score": {"rows scored": 100}, "": {"rows printed": 1000}})
    run = make_run(rows, meter=metered(phases=phases), observed=counted)
    text = " ".join(bitwatt.report(run).split())
    assert "per 1,000 rows fitted: 500 J · 524 MFLOP" in text
    assert "per 1,000 rows scored: ~20 J · 5.24 MFLOP" in text
    assert "the whole run, per 1,000 rows printed: 3.6 kJ · 525 MFLOP" in text
    each = json.loads(bitwatt.report(run, format="json"))["throughput"]["per_1000"]
    assert each["rows scored"] == {
        "phases": ["score"], "energy_j": 20.0, "how": "apportioned", "flops": 5_242_880.0, "is_least": False
    }  # fmt: skip
    assert each["rows printed"]["phases"] is None
    assert "the whole run, per 1,000 rows printed" in bitwatt.report(run, format="html")
