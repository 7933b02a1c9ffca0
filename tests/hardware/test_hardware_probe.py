"""What is timed here, and kept for this machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bitwatt.hardware import probe as probing
from bitwatt.hardware.catalogue import find
from bitwatt.hardware.probe import Probe, Rate, measured, probe, save, state_file


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(probing._Library, "sizes", (64, 128))
    monkeypatch.setattr(probing._Library, "copies", (1 << 20,))


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_products_and_copies_are_timed(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    found = probing.find_spec
    if library == "numpy":
        monkeypatch.setattr(probing, "find_spec", lambda name: None if name == "torch" else found(name))
    one = probe(seconds=0.2, cpu_name="A processor")[0]
    assert one.device == "A processor"
    assert one.library.startswith(library)
    assert {"fp64", "fp32", "bandwidth"} <= set(one.rates)
    for rate in one.rates.values():
        assert 0 < rate.least <= rate.value <= rate.greatest
        assert rate.repeats >= 3
    assert one.rates["fp32"].size in (64, 128)
    # a product of 128 x 128 takes longer than a nanosecond, and this machine does more than a MFLOP/s
    assert 1e6 < one.rates["fp32"].value < 4e15


def test_the_precision_of_the_users_products_is_left_as_it_was() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        probe(seconds=0.1)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_rates_are_kept_by_device_and_used_as_peaks_when_asked() -> None:
    rate = Rate(7e14, 8192, 7, 6.9e14, 7.1e14)
    assert measured("NVIDIA H200") == {}
    save([Probe("NVIDIA H200", "torch", "today", {"bf16": rate})])
    file = save([Probe("Another", "torch", "today", {"fp32": rate})])
    assert file == state_file()
    assert measured("NVIDIA H200") == {"bf16": 7e14}
    assert measured("Another") == {"fp32": 7e14}
    chip = find("NVIDIA H200", None, measured("NVIDIA H200"))
    assert chip is not None
    peak = chip.matrix("bfloat16")
    assert peak is not None
    assert (peak.value, peak.source) == (7e14, "measured here")
    assert list(file.parent.iterdir()) == [file]  # no scratch files are left


@pytest.mark.parametrize("text", ["", "[1]", "{broken"])
def test_a_broken_file_is_as_none(text: str) -> None:
    state_file().parent.mkdir(parents=True)
    state_file().write_text(text)
    assert measured("NVIDIA H200") == {}
    save([Probe("X", "torch", "today", {"fp32": Rate(1.0, 1, 1, 1.0, 1.0)})])
    assert measured("X") == {"fp32": 1.0}


def test_without_libraries_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "find_spec", lambda name: None)
    assert probe() == []


def test_a_format_that_fails_is_said_and_the_others_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")

    class Odd(probing._Numpy):
        def formats(self) -> dict[str, Any]:
            return {"fp32": self.numpy.float32, "bf16": "no such type"}

    one = Odd(sys.modules.get("numpy") or __import__("numpy")).probe("here", "today", 0.1)
    assert set(one.rates) == {"fp32", "bandwidth"}
    assert one.skipped["bf16"].startswith("TypeError")


def test_doctor_probes_and_keeps(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from bitwatt.cli import main

    rates = {"bf16": Rate(7e14, 8192, 7, 6.9e14, 7.1e14), "bandwidth": Rate(4e12, 1 << 30, 7, 4e12, 4e12)}
    found = Probe("NVIDIA H200", "torch 2.13", "today", rates, {"fp8": "RuntimeError: no"})
    monkeypatch.setattr(probing, "probe", lambda **_: [found])
    assert main(["doctor", "--probe"]) == 0
    out = capsys.readouterr().out
    assert "bf16          700 TFLOP/s at 8192 x 8192, median of 7; 71% of the catalogue's" in out
    assert "bandwidth     4 TB/s at 1.07 GB, median of 7; 83% of the catalogue's" in out
    assert "fp8           not measured: RuntimeError: no" in out
    assert measured("NVIDIA H200") == {"bf16": 7e14, "bandwidth": 4e12}


def test_the_processor_is_timed_beside_cuda_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    places: list[str] = []

    def note(self: Any, *_: Any) -> Probe:
        places.append(self.place)
        return Probe(self.place, "torch", "today")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(probing._Torch, "probe", note)
    probe()
    assert places == ["cpu", "cuda:0", "cuda:1"]


def test_the_number_of_threads_is_kept_and_too_few_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    from bitwatt.cli import main

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(probing, "usable_cores", lambda: 4)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert main(["doctor", "--probe"]) == 0
    finally:
        torch.set_num_threads(before)
    out = capsys.readouterr().out
    assert ", 1 thread)" in out
    assert "4 cores are usable; set OMP_NUM_THREADS=4" in out
    (kept,) = json.loads(state_file().read_text()).values()
    assert (kept["threads"], kept["cores"]) == (1, 4)


def test_cores_are_those_that_the_process_may_use() -> None:
    assert 1 <= probing.usable_cores() <= (os.cpu_count() or 1)
