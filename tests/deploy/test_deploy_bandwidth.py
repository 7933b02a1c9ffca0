"""Bytes a second, beside what the memory can do that they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatt.deploy.measuring import bandwidth
from bitwatt.deploy.records import Counts

KNOWN = {
    "cache_L1": "32768", "cache_L2": "1048576", "cache_L3": "33554432",
    "copy_gbps_L1": "200", "copy_gbps_L2": "110", "copy_gbps_L3": "75", "copy_gbps_DRAM": "25",
}  # fmt: skip


def test_a_rate_above_the_main_memorys_names_the_cache_it_comes_from() -> None:
    # weights of 939 kB and as much again as 0.1 MB of values: 1.1 MB in 32 µs are 34 GB/s
    found = bandwidth.of(Counts(bytes=1_100_000), 0.032, weights=939_000, known=KNOWN)
    assert found.gbps == pytest.approx(34.375)
    assert found.working_set == 939_000 + (1_100_000 - 939_000) // 2
    assert (found.level, found.roof_gbps) == ("L2", 110.0)
    assert "above the 25 GB/s of the main memory, as it sits in L2" in found.note


def test_what_fits_nowhere_comes_from_main_memory() -> None:
    found = bandwidth.of(Counts(bytes=200_000_000), 10.0, weights=100_000_000, known=KNOWN)
    assert (found.gbps, found.level, found.roof_gbps, found.note) == (20.0, "DRAM", 25.0, "")


def test_a_rate_above_the_roof_of_its_own_level_is_doubted() -> None:
    found = bandwidth.of(Counts(bytes=200_000_000), 2.0, weights=100_000_000, known=KNOWN)
    assert found.gbps == 100.0
    assert "above what copies reach in DRAM" in found.note


def test_all_of_a_forest_counts_though_a_batch_touches_little() -> None:
    assert bandwidth.of(Counts(bytes=1000), 0.1, weights=12_000_000, known=KNOWN).level == "L3"


@pytest.mark.parametrize(("counts", "ms"), [(None, 1.0), (Counts(), 1.0), (Counts(bytes=8), None)])
def test_what_is_not_known_is_null(counts: Counts | None, ms: float | None) -> None:
    assert bandwidth.of(counts, ms, known=KNOWN).gbps is None


def test_without_cache_sizes_there_is_a_rate_and_no_level() -> None:
    found = bandwidth.of(Counts(bytes=1_000_000), 1.0, known={})
    assert (found.gbps, found.level, found.roof_gbps) == (1.0, None, None)


def test_a_gpu_is_not_held_against_the_caches_of_the_processor() -> None:
    found = bandwidth.of(Counts(bytes=1_000_000), 0.001, known=KNOWN, device="cuda:0")
    assert (found.gbps, found.level, found.roof_gbps) == (1000.0, None, None)
    assert "cuda:0" in found.note


def test_caches_as_the_kernel_tells_them(tmp_path: Path) -> None:
    told = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1280K"), ("3", "Unified", "49152K")]
    for i, values in enumerate(told):
        (tmp_path / f"index{i}").mkdir()
        for name, value in zip(("level", "type", "size"), values, strict=True):
            (tmp_path / f"index{i}" / name).write_text(value + "\n")
    assert bandwidth.caches(tmp_path) == {"L1": 48 << 10, "L2": 1280 << 10, "L3": 48 << 20}


def test_this_machine_copies_faster_in_its_nearest_cache_than_in_main_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "SECONDS", 1.0)  # long enough for some copies that nobody disturbs
    monkeypatch.setattr(bandwidth, "LONGER", 2.0)
    known = bandwidth.machine()
    if "cache_L1" not in known:
        pytest.skip("the sizes of the caches are not told here")
    assert float(known["copy_gbps_L1"]) > 2 * float(known["copy_gbps_DRAM"]) > 1
