"""The catalogue of devices: every row complete, sourced and plausible, and found by its exact name only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bitwatt
from bitwatt.config import PEAKS, settings
from bitwatt.hardware.catalogue import MATRIX, VECTOR, Chip, chips, find

FOLDER = Path(bitwatt.__file__).parent / "hardware"
ALL = chips()
every = pytest.mark.parametrize("chip", ALL, ids=lambda chip: chip.name)
GEFORCE = "GeForce"


def test_there_are_enough_of_them() -> None:
    kinds = [chip.kind for chip in ALL]
    assert kinds.count("gpu") + kinds.count("accelerator") >= 30
    assert kinds.count("cpu") >= 12
    assert {file.suffix for file in FOLDER.iterdir() if file.is_file()} <= {".py", ".toml"}


@every
def test_a_row_is_complete_and_sourced(chip: Chip) -> None:
    assert chip.kind in ("gpu", "accelerator", "cpu")
    assert chip.names
    assert chip.peaks
    assert set(chip.peaks) | set(chip.sparse) <= set(PEAKS) - {"bandwidth"}
    assert len(chip.source) > 10
    assert chip.url.startswith("https://")
    assert re.match(r"20\d\d-\d\d-\d\d: \w", chip.checked)
    assert chip.tdp_w or "TPU" in chip.name  # Google publishes none
    for peak in (*chip.peaks.values(), *chip.sparse.values(), chip.bandwidth):
        assert peak is not None
        assert peak.source


@every
def test_a_row_is_plausible(chip: Chip) -> None:
    assert chip.bandwidth is not None
    assert 30e9 < chip.bandwidth.value < 1e13
    assert 50 <= (chip.tdp_w or 100) <= 1500
    best = max(peak.value for peak in chip.peaks.values())
    assert 1 < best / chip.bandwidth.value < 2000  # operations for each byte
    if chip.tdp_w:
        assert 1e9 < best / chip.tdp_w < 2e13  # operations for each joule
    order = [chip.peaks[name].value for name in ("fp64", "fp32", "fp16", "int8", "int4") if name in chip.peaks]
    assert order == sorted(order)


@every
def test_sparse_is_told_from_dense_and_is_twice_of_it(chip: Chip) -> None:
    for name, peak in chip.sparse.items():
        assert peak.kind == "sparse"
        assert peak.value == pytest.approx(2 * chip.peaks[name].value, rel=0.015)
    assert {peak.kind for peak in chip.peaks.values()} == {"dense"}


@pytest.mark.parametrize("chip", [chip for chip in ALL if "tf32" in chip.peaks], ids=lambda chip: chip.name)
def test_tensor_cores_double_with_each_halving(chip: Chip) -> None:
    rate = {name: peak.value for name, peak in chip.peaks.items()}
    assert rate["bf16"] == rate["fp16"] == pytest.approx(2 * rate["tf32"], rel=0.02)
    assert rate["fp32"] <= rate["tf32"]
    if "int8" in rate:  # on GeForce products, floats that are summed in fp32 run at half the rate of the tensor cores
        assert rate["int8"] == pytest.approx((4 if GEFORCE in chip.name else 2) * rate["bf16"], rel=0.015)
    if "fp8" in rate:
        assert rate["fp8"] == pytest.approx(2 * rate["bf16"], rel=0.015)
    if "fp64_tensor" in rate:
        assert rate["fp64"] <= rate["fp64_tensor"] <= 2 * rate["fp64"] * 1.02


def test_no_two_devices_share_a_name() -> None:
    names = [" ".join(name.split()).casefold() for chip in ALL for name in chip.names]
    assert len(names) == len(set(names))
    assert len({chip.name for chip in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("name", "bandwidth", "bf16"),
    [
        ("NVIDIA H100 80GB HBM3", 3.35e12, 989.4e12),
        ("NVIDIA H100 PCIe", 2.039e12, 756e12),
        ("NVIDIA H100 NVL", 3.9e12, 835.5e12),
        ("NVIDIA H200", 4.8e12, 989.4e12),
        ("NVIDIA H200 NVL", 4.8e12, 835.5e12),
        ("NVIDIA A100-SXM4-40GB", 1.555e12, 312e12),
        ("NVIDIA A100-SXM4-80GB", 2.039e12, 312e12),
        ("NVIDIA A100 80GB PCIe", 1.935e12, 312e12),
        ("nvidia  a10g", 0.6e12, 70e12),
        ("NVIDIA A10", 0.6e12, 125e12),
        ("AMD Instinct MI300X", 5.3e12, 1307.4e12),
        ("TPU v5 lite", 0.819e12, 197e12),
    ],
)
def test_variants_are_told_apart(name: str, bandwidth: float, bf16: float) -> None:
    chip = find(name)
    assert chip is not None
    peak = chip.matrix("bfloat16")
    assert (chip.bandwidth and chip.bandwidth.value, peak and peak.value) == (bandwidth, bf16)


@pytest.mark.parametrize(
    "name",
    [
        "", "NVIDIA", "NVIDIA H100", "H100", "NVIDIA A100", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H200 MIG 1g.18gb", "GRID V100-8C",
        "AMD EPYC", "Intel(R) Xeon(R) Processor @ 2.80GHz", "AMD Instinct MI250X / MI250",
    ],
)  # fmt: skip
def test_a_name_that_is_not_listed_is_unknown_never_a_neighbour(name: str) -> None:
    assert find(name) is None


def test_the_users_peaks_come_first_then_what_was_measured_then_the_catalogue() -> None:
    told = settings("/", peaks={"nvidia h200": {"bf16": 7e14}, "*": {"fp8": 1e15, "bf16": 1.0}})
    chip = find("NVIDIA H200", told, {"bf16": 6e14, "fp16": 6.1e14, "bandwidth": 4.1e12})
    assert chip is not None
    known = {name: (chip.peaks[name].value, chip.peaks[name].source) for name in ("bf16", "fp8", "fp16", "tf32")}
    assert known["bf16"] == (7e14, "peaks=")
    assert known["fp8"] == (1e15, "peaks=")
    assert known["fp16"] == (6.1e14, "measured here")
    assert known["tf32"][1].startswith("NVIDIA H100 GPU architecture whitepaper")
    assert str(chip.bandwidth) == "4.1 TB/s bandwidth dense (measured here)"


def test_a_device_that_only_the_user_knows() -> None:
    chip = find("My ASIC", settings("/", peaks={"My ASIC": {"int8": 1e12}}))
    assert chip is not None
    assert chip.matrix("int8").value == 1e12  # type: ignore[union-attr]
    assert chip.matrix("bfloat16") is None
    assert chip.bandwidth is None


def test_a_cpu_is_cores_times_base_clock_times_operations_a_cycle() -> None:
    """EPYC 7763: 64 cores x 2.45 GHz x 32 (two 256-bit FMA units in fp32) = 5.0176 TFLOP/s; 8 x 8 B x 3.2 GT/s."""
    chip = find("AMD EPYC 7763 64-Core Processor")
    assert chip is not None
    peak = chip.matrix("float32")
    assert peak is not None
    assert peak.value == pytest.approx(5.0176e12)
    assert peak.source.startswith("at base clock")
    assert chip.bandwidth is not None
    assert chip.bandwidth.value == pytest.approx(204.8e9)
    part = chip.part(2).matrix("float32")
    assert part is not None
    assert part.value == pytest.approx(5.0176e12 / 32)
    assert part.source.startswith("2 of 64 cores")


def test_formats_of_runs_have_a_place_in_the_catalogue() -> None:
    assert {name for names in (*MATRIX.values(), *VECTOR.values()) for name in names} <= set(PEAKS)


def test_the_tables_are_shipped_with_the_package() -> None:
    import tomllib

    project = tomllib.loads((FOLDER.parents[2] / "pyproject.toml").read_text())
    assert "hardware/*.toml" in project["tool"]["setuptools"]["package-data"]["bitwatt"]
