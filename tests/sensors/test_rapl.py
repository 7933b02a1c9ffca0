"""RAPL through powercap, on a tree in a folder: what is added up, and what the counters' faults come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatt.readings import Reading
from bitwatt.sensors.rapl import Rapl
from bitwatt.testing import FakeClock, FakePowercap, check_sensor, fake_powercap

PACKAGE, DRAM = "intel-rapl:0", "intel-rapl:0:0"


def rapl(tree: FakePowercap, clock: FakeClock) -> Rapl:
    return Rapl(tree.root, tree.read, clock)


def energy(readings: list[Reading]) -> dict[str, float | None]:
    return {reading.device: reading.value for reading in readings if reading.quantity == "energy_j"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_a_package_and_its_memory_are_read(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    sensor = rapl(tree, clock)
    assert [device.id for device in sensor.open()] == ["cpu:0", "dram:0"]
    sensor.read()
    clock.advance(1)
    tree.draw(PACKAGE, 100)
    tree.draw(DRAM, 20)
    assert energy(sensor.read()) == {"cpu:0": 100.0, "dram:0": 20.0}


def test_what_is_inside_a_package_or_around_it_is_not_added(tmp_path: Path, clock: FakeClock) -> None:
    zones = {
        "intel-rapl:0": "package-0",
        "intel-rapl:0:0": "core",
        "intel-rapl:0:1": "uncore",
        "intel-rapl:0:2": "dram",
        "intel-rapl:1": "psys",
        "intel-rapl-mmio:0": "package-0",
        "intel-rapl-mmio:0:0": "dram",
    }
    tree = fake_powercap(tmp_path, zones)
    sensor = rapl(tree, clock)
    assert [device.id for device in sensor.open()] == ["cpu:0", "dram:0"]
    sensor.read()
    clock.advance(1)
    for zone in zones:
        tree.draw(zone, 50)
    assert sum(value or 0 for value in energy(sensor.read()).values()) == 100  # not 350
    clock.advance(1)
    tree.draw("intel-rapl-mmio:0", 50)
    assert energy(sensor.read())["cpu:0"] == 50  # the mirror is not the one that is read


def test_zones_are_known_by_name_since_their_numbers_are_those_of_discovery(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(
        tmp_path,
        {"intel-rapl:0": "package-1", "intel-rapl:1": "package-0", "intel-rapl:0:0": "dram", "intel-rapl:1:0": "dram"},
    )
    sensor = rapl(tree, clock)
    sensor.open()
    sensor.read()
    clock.advance(1)
    tree.draw("intel-rapl:0", 7)
    tree.draw("intel-rapl:0:0", 3)
    assert energy(sensor.read()) == {"cpu:1": 7.0, "dram:1": 3.0, "cpu:0": 0.0, "dram:0": 0.0}


def test_dies_are_told_apart_and_mirrored_ones_are_read_once(tmp_path: Path, clock: FakeClock) -> None:
    zones = {"intel-rapl:0": "package-0-die-0", "intel-rapl:1": "package-0-die-1"}
    apart = fake_powercap(tmp_path / "apart", zones)
    apart.set("intel-rapl:0", 90_000)
    apart.set("intel-rapl:1", 80_000)
    assert [device.id for device in rapl(apart, clock).open()] == ["cpu:0.0", "cpu:0.1"]
    mirrored = fake_powercap(tmp_path / "mirrored", zones)
    mirrored.set("intel-rapl:0", 90_000)
    mirrored.set("intel-rapl:1", 90_000.02)  # read a moment later
    assert [device.id for device in rapl(mirrored, clock).open()] == ["cpu:0.0"]


def test_only_the_mirror_is_read_where_the_original_is_not(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path, {"intel-rapl-mmio:0": "package-0"})
    assert [device.id for device in rapl(tree, clock).open()] == ["cpu:0"]


def test_a_tree_with_zones_inside_each_other_is_read_alike(tmp_path: Path, clock: FakeClock) -> None:
    nested = "intel-rapl/intel-rapl:0", "intel-rapl/intel-rapl:0/intel-rapl:0:0", "intel-rapl/intel-rapl:1"
    tree = fake_powercap(tmp_path, dict(zip(nested, ("package-0", "dram", "package-1"), strict=True)))
    assert [device.id for device in rapl(tree, clock).open()] == ["cpu:0", "dram:0", "cpu:1"]


def test_limits_in_the_tree_lower_the_ceiling(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    (tmp_path / PACKAGE / "constraint_0_max_power_uw").write_text("65000000\n")
    (tmp_path / PACKAGE / "constraint_1_power_limit_uw").write_text("90000000\n")
    ceilings = {device.id: device.ceiling_w for device in rapl(tree, clock).open()}
    assert ceilings == {"cpu:0": 180.0, "dram:0": 500.0}  # twice 90 W; memory has no limit


def test_absence_is_told_in_words(tmp_path: Path, clock: FakeClock) -> None:
    assert "does not exist" in (Rapl(tmp_path / "none").why_absent() or "")
    assert "shows no package" in (Rapl(tmp_path).why_absent() or "")
    tree = fake_powercap(tmp_path)
    assert rapl(tree, clock).why_absent() is None


def test_permission_denied_gives_the_line_that_opens_it_and_says_to_whom(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    tree.deny(PACKAGE)
    tree.deny(DRAM)
    said = rapl(tree, clock).why_absent() or ""
    assert "/etc/tmpfiles.d" in said
    assert "0440" in said
    assert "CVE-2020-8694" in said
    assert "chmod" not in said


def test_half_of_the_tree_is_read_where_the_rest_is_denied(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    tree.deny(DRAM)
    sensor = rapl(tree, clock)
    assert sensor.why_absent() is None
    sensor.open()
    readings = {reading.device: reading for reading in sensor.read()}
    assert readings["cpu:0"].value == 0.0
    assert readings["dram:0"].value is None
    assert "tmpfiles" in readings["dram:0"].note


def started(tree: FakePowercap, clock: FakeClock) -> Rapl:
    """A sensor that has read 100 J in its first second."""
    sensor = rapl(tree, clock)
    sensor.open()
    sensor.read()
    clock.advance(1)
    tree.draw(PACKAGE, 100)
    tree.draw(DRAM, 10)
    assert energy(sensor.read())["cpu:0"] == 100.0
    return sensor


def package(sensor: Rapl) -> Reading:
    return next(reading for reading in sensor.read() if reading.device == "cpu:0")


def test_a_wrap_is_unwrapped_by_the_reader_itself(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path, range_uj=2_000_000_000)
    tree.set(PACKAGE, 1850)
    sensor = started(tree, clock)  # at 1950 of 2000 J
    clock.advance(1)
    tree.draw(PACKAGE, 250)  # 50 J to the top, 200 J from the bottom
    assert package(sensor) == Reading("cpu:0", "energy_j", 350.0)


def test_two_wraps_seen_one_by_one_lose_nothing(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path, range_uj=2_000_000_000)
    sensor = started(tree, clock)
    for _ in range(10):
        clock.advance(1)
        tree.draw(PACKAGE, 450)
        last = package(sensor)
    assert last == Reading("cpu:0", "energy_j", 4600.0)  # 100 + 10 x 450, more than twice round


def test_two_wraps_unseen_are_the_least_and_said(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path, range_uj=2_000_000_000)
    sensor = started(tree, clock)
    clock.advance(60)
    tree.draw(PACKAGE, 4500)
    reading = package(sensor)
    assert reading.value == 600.0  # 100, and 4500 less twice 2000
    assert "the least" in reading.note


def test_a_reset_is_a_gap(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    sensor = started(tree, clock)
    clock.advance(1)
    tree.reset(PACKAGE, 5)
    reading = package(sensor)
    assert reading.value == 100.0
    assert "reset" in reading.note


def test_a_zone_that_vanishes_is_none_and_returns_with_the_gap(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    sensor = started(tree, clock)
    tree.vanish(PACKAGE)
    clock.advance(1)
    reading = package(sensor)
    assert reading.value is None
    assert "cannot be read" in reading.note
    tree.come_back(PACKAGE)
    clock.advance(19)
    tree.draw(PACKAGE, 2000)
    assert package(sensor) == Reading("cpu:0", "energy_j", 2100.0)


def test_permission_lost_in_the_middle_is_none_with_the_fix_and_the_rest_goes_on(
    tmp_path: Path, clock: FakeClock
) -> None:
    tree = fake_powercap(tmp_path)
    sensor = started(tree, clock)
    tree.deny(PACKAGE)
    clock.advance(1)
    tree.draw(PACKAGE, 100)
    tree.draw(DRAM, 10)
    first, second = sensor.read()
    assert first.value is None
    assert "tmpfiles" in first.note
    assert second == Reading("dram:0", "energy_j", 20.0)
    tree.allow(PACKAGE)
    clock.advance(1)
    tree.draw(PACKAGE, 100)
    assert package(sensor) == Reading("cpu:0", "energy_j", 300.0)


def test_a_frozen_zone_is_none(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    sensor = started(tree, clock)
    clock.advance(10)
    reading = package(sensor)
    assert reading.value is None
    assert "frozen" in reading.note


def test_a_zone_that_is_always_zero_is_none_and_not_0_joules(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    sensor = rapl(tree, clock)
    sensor.open()
    sensor.read()
    clock.advance(20)
    assert energy(sensor.read()) == {"cpu:0": None, "dram:0": None}


@pytest.mark.parametrize("content", ["", "garbage", "-5"])
def test_a_file_that_holds_no_count_is_none(tmp_path: Path, clock: FakeClock, content: str) -> None:
    tree = fake_powercap(tmp_path)
    sensor = started(tree, clock)
    (tmp_path / PACKAGE / "energy_uj").write_text(content)
    clock.advance(1)
    reading = package(sensor)
    assert reading.value is None
    assert reading.note


def test_a_suspended_laptop(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    sensor = started(tree, clock)
    clock.advance(1)
    clock.suspend(8 * 3600)
    tree.reset(PACKAGE, 3)
    assert package(sensor).value == 100.0
    clock.advance(1)
    tree.draw(PACKAGE, 30)
    assert package(sensor) == Reading("cpu:0", "energy_j", 130.0)


def test_a_clock_that_jumps(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    sensor = started(tree, clock)
    clock.advance(-1000)
    tree.draw(PACKAGE, 100)
    assert package(sensor).value is None
    clock.advance(1)
    tree.draw(PACKAGE, 100)
    assert package(sensor) == Reading("cpu:0", "energy_j", 300.0)


def test_the_contract_holds_on_a_fake_tree(tmp_path: Path, clock: FakeClock) -> None:
    tree = fake_powercap(tmp_path)
    assert len(check_sensor(rapl(tree, clock), clock=clock, reads=8)) == 8
