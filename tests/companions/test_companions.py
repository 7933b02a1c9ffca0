"""Other meters in the user's program: the real ones run, and what they say stands beside ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import bitwatt
from bitwatt.observed import Figure, Observed
from factories import metered, transformer_run

_J = 3.6e6


def tracker(**options: Any) -> Any:
    codecarbon = pytest.importorskip("codecarbon")
    return codecarbon.OfflineEmissionsTracker(
        country_iso_code="FRA", save_to_file=False, measure_power_secs=0.5, log_level="critical",
        allow_multiple_runs=True, **options,
    )  # fmt: skip


def figures(run: bitwatt.Run) -> list[Figure]:
    return [one for one in run.observed.others if one.meter == "CodeCarbon"] if run.observed is not None else []


def work(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))


def work_while_it_counts(theirs: Any) -> float:
    """It counts now and then, in a thread of its own: until it has done so from the first device to the last at least
    once. What it has counted by then, in joules."""
    seen, end = {theirs._last_measured_time}, time.monotonic() + 120
    while len(seen) < 3 and time.monotonic() < end:  # it may have been in the middle of the first
        work(0.1)
        seen.add(theirs._last_measured_time)
    return float(theirs._total_energy.kWh * _J)


def test_a_tracker_inside_the_run_is_read_to_the_joule() -> None:
    with bitwatt.measure("inside", keep=False) as session, tracker() as theirs:
        work(1.2)
    (found,) = figures(session.run)
    final = theirs.final_emissions_data
    assert found.energy_j == pytest.approx(final.energy_consumed * _J)
    assert found.parts_j == pytest.approx({"CPU": final.cpu_energy * _J, "RAM": final.ram_energy * _J})
    assert 1.2 <= found.seconds <= session.run.seconds
    assert "machine mode" in found.how
    assert "estimated" in found.how  # this machine has no counter, or RAM at least


def test_of_a_tracker_around_the_run_only_what_it_counted_meanwhile() -> None:
    theirs = tracker(tracking_mode="process")
    theirs.start()
    before = work_while_it_counts(theirs)
    with bitwatt.measure("within", keep=False) as session:
        work_while_it_counts(theirs)
    theirs.stop()
    (found,) = figures(session.run)
    whole = theirs.final_emissions_data.energy_consumed * _J
    assert before > 0
    assert 0 < found.energy_j <= whole - before + 1e-6
    assert "process mode" in found.how


def test_a_tracker_that_a_decorator_made_is_found_though_it_is_gone() -> None:
    codecarbon = pytest.importorskip("codecarbon")

    @codecarbon.track_emissions(offline=True, country_iso_code="FRA", save_to_file=False, log_level="critical",
                                allow_multiple_runs=True)  # fmt: skip
    def train() -> None:
        work(0.3)

    with bitwatt.measure("decorated", keep=False) as session:
        train()
    (found,) = figures(session.run)
    assert found.energy_j > 0


def test_its_class_is_as_it_was_when_the_run_has_ended() -> None:
    pytest.importorskip("codecarbon")
    from codecarbon.emissions_tracker import BaseEmissionsTracker

    start = BaseEmissionsTracker.start
    with bitwatt.measure("around", keep=False), bitwatt.measure("inner", keep=False):
        assert BaseEmissionsTracker.start is not start
    assert BaseEmissionsTracker.start is start


def test_a_run_without_another_meter_has_no_block() -> None:
    with bitwatt.measure("alone", keep=False) as session:
        pass
    assert not figures(session.run)
    assert "Other meters" not in bitwatt.report(session.run)


def test_both_stand_side_by_side_in_the_report() -> None:
    how = "CPU estimated by TDP and load, machine mode"
    says = Figure("CodeCarbon", 670.0, how, 11.9, {"CPU": 191.0, "RAM": 479.0})
    none = Figure("Zeus", None, "no counter was found, window 'epoch'", 11.0)
    run = transformer_run(meter=metered(), observed=Observed(others=(says, none)))
    text = " ".join(bitwatt.report(run).split())
    assert "Other meters: bitwatt 3.6 kJ measured" in text
    assert "CodeCarbon says: 670 J (CPU 191 J, RAM 479 J) · CPU estimated by TDP and load, machine mode" in text
    assert "Zeus says: nothing · no counter was found" in text
    assert json.loads(bitwatt.report(run, format="json"))["other_meters"]["others"][1]["energy_j"] is None


ZEUS = """
    import bitwatt
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor()
    monitor.begin_window("before")
    with bitwatt.measure("beside", keep=False) as session:
        monitor.end_window("before")             # began before the run: not of it
        monitor.begin_window("epoch")
        sum(range(3_000_000))
        theirs = monitor.end_window("epoch")
        monitor.begin_window("dropped")
        monitor.end_window("dropped", cancel=True)
    (found,) = session.run.observed.others
    assert found.meter == "Zeus" and "window 'epoch'" in found.how, found
    assert found.seconds == theirs.time
    parts = [theirs.gpu_energy, theirs.cpu_energy, theirs.dram_energy]
    expected = sum(sum(part.values()) for part in parts if part)
    assert found.energy_j == (expected if any(parts) else None), found
    print("as expected")
"""


@pytest.mark.slow
def test_windows_of_zeus(tmp_path: Path) -> None:
    """In an environment of its own: it brings amdsmi, which would change what other sensors find here."""
    target = tmp_path / "packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), "zeus"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("zeus cannot be installed here")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(ZEUS))
    source = Path(bitwatt.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(target)])}
    told = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "as expected" in told.stdout, told.stderr
