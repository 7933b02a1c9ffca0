"""What utilisation divides by: the device that did the work, all its sockets, and rates of the machine of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bitwatt
from bitwatt import state
from bitwatt.config import settings
from bitwatt.hardware.probe import Probe, Rate, save
from bitwatt.ledger import Row
from bitwatt.readings import Device, Energy, Metered
from bitwatt.records import Machine, Run
from bitwatt.reports.devices import Devices
from factories import make_run, mm_op

EPYC = {"cpu": "AMD EPYC 7543 32-Core Processor", "cores": "64"}
LARGE = mm_op(1000, 1000, 1000)  # 2 GFLOP


def mfu(run: Run, **options: Any) -> Any:
    return json.loads(bitwatt.report(run, format="json", settings=settings("/", **options)))["energy"]["mfu"]


def metered(kind: str = "cpu", name: str = "package") -> Metered:
    return Metered(10.0, (Energy(Device(f"{kind}:0", kind, name), 600.0, "measured", "a counter", 10.0),))


def on_processor(**facts: str) -> Run:
    return make_run([Row("forward", "", LARGE, 1000)], meter=metered(), machine=Machine(EPYC | facts))


def test_sockets_add_up_and_threads_do_not() -> None:
    one = mfu(on_processor(sockets="1 x 32 cores"))["mfu"]
    assert mfu(on_processor(cores="128", sockets="2 x 32 cores"))["mfu"] == pytest.approx(one / 2)
    assert mfu(on_processor(cores="64 usable of 128", sockets="2 x 32 cores"))["mfu"] == pytest.approx(one)
    assert mfu(on_processor())["mfu"] == pytest.approx(one)  # an older run tells of threads only: one socket at most
    # a virtual machine that calls each of its processors a socket has as many cores as it has
    assert mfu(on_processor(cores="4", sockets="4 x 1 cores"))["mfu"] == pytest.approx(8 * one)
    assert "2 x 32 cores" in mfu(on_processor(cores="128", sockets="2 x 32 cores"))["of"]


def test_each_socket_has_memory_of_its_own() -> None:
    chips = [
        Devices(on_processor(cores=cores, sockets=sockets), settings("/")).cpu_chip
        for cores, sockets in (("64", "1 x 32 cores"), ("128", "2 x 32 cores"), ("4", "4 x 1 cores"))
    ]
    one, two, few = (chip.bandwidth.value for chip in chips if chip is not None and chip.bandwidth is not None)
    assert (two, few) == (2 * one, one)


def test_work_of_the_processor_has_no_part_in_the_gpus_utilisation() -> None:
    gpu = {"meter": metered("gpu", "NVIDIA H200"), "machine": Machine(EPYC)}
    rows = [Row("forward", "", LARGE, 1000), Row("fit", "", LARGE, 3000), Row("preprocess", "", LARGE, 500)]
    timed = {"device_seconds": {"forward": 1.0, "preprocess": 0.1}, "phase_seconds": {"forward": 1.0, "fit": 2.0}}
    run, alone = make_run(rows, **gpu, **timed), make_run(rows[:1], **gpu, **timed)
    assert mfu(run)["mfu"] == pytest.approx(mfu(alone)["mfu"])
    assert mfu(run)["left_out_flops"] == 3500 * 2 * 10**9
    text = " ".join(bitwatt.report(run, settings=settings("/")).split())
    assert "; without 7 TFLOP in phases taken as the processor's" in text
    assert "taken as the processor's" not in bitwatt.report(alone, settings=settings("/"))
    # without a GPU's clock nobody can tell them apart, but for the preparing of data
    assert mfu(make_run(rows, **gpu))["mfu"] == pytest.approx(4 * mfu(alone)["mfu"])


def test_rates_are_those_of_the_machine_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rate = Rate(1e12, 1024, 3, 1e12, 1e12)
    save([Probe("AMD EPYC 7543 32-Core Processor", "numpy", "now", {"fp32": rate})])
    here = on_processor(**{"machine id": state.machine()})
    assert "measured here" in mfu(here, measured_peaks=True)["of"]
    assert mfu(here, measured_peaks=True)["mfu"] == pytest.approx(2e12 / 1e12 / 10)
    assert "measured here" not in mfu(here)["of"]  # the catalogue knows it, and nobody asked
    elsewhere = on_processor(**{"machine id": "another"})
    assert "measured here" not in mfu(elsewhere, measured_peaks=True)["of"]
    # an older run holds no id: it is of this machine only where the hardware is the same
    assert "measured here" not in mfu(on_processor(memory="1 B"), measured_peaks=True)["of"]


def test_what_the_catalogue_does_not_know_is_as_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    save([Probe("A Processor", "numpy", "now", {"fp32": Rate(1e12, 1024, 3, 1e12, 1e12)})])
    facts = {"cpu": "A Processor", "machine id": state.machine()}
    run = make_run([Row("forward", "", LARGE, 1000)], meter=metered(), machine=Machine(facts))
    assert mfu(run)["mfu"] == pytest.approx(0.2)
    unknown = make_run([Row("forward", "", LARGE, 1000)], meter=metered(), machine=Machine(facts | {"machine id": "x"}))
    assert mfu(unknown)["of"] == "unknown: no peak is known for 'A Processor'"


def test_gpus_that_were_not_metered_are_known_by_the_machine() -> None:
    run = make_run([Row("forward", "", LARGE, 1)], device_seconds={"forward": 1.0},
                   machine=Machine({"gpu": "8 x NVIDIA H200"}))  # fmt: skip
    assert Devices(run, settings("/")).gpu == "NVIDIA H200"
    assert Devices(run, settings("/")).main_chip is not None
