"""What the lab notices of the machine around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatt.deploy.measuring.surroundings import Look, between, look
from bitwatt.deploy.measuring.versions import flags

PRESSURE = "some avg10=1.00 avg60=0.50 avg300=0.10 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def machine(folder: Path, *, stalled_us: int, stolen: int, khz: int) -> Look:
    (folder / "pressure").mkdir(parents=True, exist_ok=True)
    (folder / "pressure/cpu").write_text(PRESSURE.format(stalled_us))
    (folder / "pressure/memory").write_text(PRESSURE.format(0))
    (folder / "stat").write_text(f"cpu  10 20 30 40 50 60 70 {stolen} 0 0\ncpu0 1 2\n")
    speed = folder / "cpu/cpu0/cpufreq"
    speed.mkdir(parents=True, exist_ok=True)
    (speed / "scaling_cur_freq").write_text(f"{khz}\n")
    return look(folder, folder / "cpu")


def test_a_busy_machine_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.sysconf", lambda _: 100)
    before = machine(tmp_path, stalled_us=1_000_000, stolen=100, khz=3_000_000)
    after = machine(tmp_path, stalled_us=6_000_000, stolen=500, khz=2_000_000)
    before = Look(0.0, {**before.levels, "load_1min": 3.0}, before.totals_s)
    found, said = between(before, Look(10.0, after.levels, after.totals_s))
    assert found["cpu_stall_share"] == pytest.approx(0.5)
    assert found["memory_stall_share"] == 0
    assert found["steal_share"] == pytest.approx(4.0 / 10 / 2)
    assert (found["mhz_mean_before"], found["mhz_mean_after"]) == (3000, 2000)
    assert said == [
        "the machine was busy when this began: load 3.0 on 2 cores",
        "20 % of the processors' time was taken by the hypervisor",
        "50 % of the time something waited for a processor",
        "the clock went from 3000 to 2000 MHz",
    ]


def test_a_quiet_machine_gets_no_remark_and_what_is_not_told_is_left_out(tmp_path: Path) -> None:
    found, said = between(Look(0.0, {"load_1min": 0.1}, {}), Look(5.0, {"load_1min": 1.0}, {}))
    assert said == []
    assert "steal_share" not in found
    here = look(tmp_path / "nothing", tmp_path / "nothing")
    assert here.totals_s == {}
    assert set(here.levels) <= {"load_1min"}


def test_instructions_that_decide_on_integers(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nflags\t\t: fpu avx2 avx512f avx512_vnni sse\n")
    assert flags(file) == {"flags": "avx2 avx512f avx512_vnni"}
    file.write_text("processor : 0\nFeatures\t: fp asimd asimddp i8mm\n")
    assert flags(file) == {"flags": "asimd asimddp i8mm"}
    assert flags(tmp_path / "none") == {}
