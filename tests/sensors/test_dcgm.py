"""DCGM, on what dcgmi prints and on a local server that speaks as dcgm-exporter does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from bitwatt.readings import Reading
from bitwatt.sensors import dcgm as module
from bitwatt.sensors.dcgm import Dcgm
from bitwatt.testing import FakeClock, check_sensor

DISCOVERY = """2 GPUs found.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA H200                                                    |
|        | PCI Bus ID: 00000000:18:00.0                                         |
|        | Device UUID: GPU-aaaa                                                |
+--------+----------------------------------------------------------------------+
| 1      | Name: NVIDIA H200                                                    |
|        | PCI Bus ID: 00000000:2A:00.0                                         |
|        | Device UUID: GPU-bbbb                                                |
+--------+----------------------------------------------------------------------+
"""
ROWS = """#Entity   SMACT   TENSO   DRAMA   TOTEC
ID                                 mJ
GPU 0     0.900   0.500   0.250   1000000
GPU 1     N/A     N/A     N/A     5000000
GPU 0     0.910   0.510   0.260   1400000
"""
PAGE = """# HELP DCGM_FI_PROF_PIPE_TENSOR_ACTIVE Ratio of cycles the tensor (HMMA) pipe is active.
# TYPE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE gauge
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-aaaa",device="nvidia0",hostname="n1"} 0.42
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-aaaa",GPU_I_ID="3",GPU_I_PROFILE="1g.10gb"} 0.99
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-aaaa",device="nvidia0",hostname="n1"} 0.125
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-aaaa"} 40
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-aaaa"} %d
"""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowded machine may let a program, or a server, wait for long."""
    monkeypatch.setattr(module, "DISCOVERY_S", 120.0)
    monkeypatch.setattr(module, "ANSWER_S", 120.0)


def dcgmi(tmp_path: Path, *, status: int = 0) -> list[str]:
    """A program that answers as dcgmi does."""
    (tmp_path / "discovery").write_text(DISCOVERY)
    (tmp_path / "rows").write_text(ROWS)
    code = (
        "import pathlib, sys, time\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        f"if {status}: print('Error: unable to establish a connection to the specified host'); sys.exit({status})\n"
        "if sys.argv[1] == 'discovery': print((here / 'discovery').read_text()); sys.exit()\n"
        "assert sys.argv[1:] == ['dmon', '-e', '1002,1004,1005,156', '-d', '1000']\n"
        "print((here / 'rows').read_text(), end='', flush=True); time.sleep(600)\n"
    )
    return [sys.executable, "-c", code]


def told(readings: list[Reading]) -> dict[tuple[str, str], float | None]:
    return {(reading.device, reading.quantity): reading.value for reading in readings}


def test_what_dcgmi_prints_is_read_by_uuid(tmp_path: Path) -> None:
    sensor = Dcgm(dcgmi(tmp_path))
    assert sensor.why_absent() is None
    assert [device.id for device in sensor.open()] == ["gpu:GPU-aaaa", "gpu:GPU-bbbb"]
    readings, end = told(sensor.read()), time.monotonic() + 120
    while readings["gpu:GPU-aaaa", "tensor_active"] != 0.51 and time.monotonic() < end:
        time.sleep(0.05)
        readings = told(sensor.read())
    sensor.close()
    assert readings["gpu:GPU-aaaa", "tensor_active"] == 0.51  # of its last row
    assert readings["gpu:GPU-aaaa", "dram_active"] == 0.26
    assert readings["gpu:GPU-bbbb", "tensor_active"] is None
    assert readings["gpu:GPU-bbbb", "energy_j"] == 0.0  # since it was opened


def test_an_engine_that_does_not_run_is_said_with_the_fix(tmp_path: Path) -> None:
    said = Dcgm(dcgmi(tmp_path, status=226)).why_absent() or ""
    assert "unable to establish" in said
    assert "nvidia-dcgm" in said


def test_it_leaves_the_counters_to_a_profiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "1")
    assert "profiler" in (Dcgm(dcgmi(tmp_path)).why_absent() or "")


def test_it_is_looked_for_nowhere_unless_named() -> None:
    assert "not installed" in (Dcgm(["no-such-dcgmi"]).why_absent() or "")


@pytest.fixture
def exporter() -> Iterator[HTTPServer]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(self.server.status)  # type: ignore[attr-defined]
            self.end_headers()
            self.wfile.write((PAGE % self.server.energy_mj).encode())  # type: ignore[attr-defined]

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Page)
    server.status, server.energy_mj = 200, 7_000_000  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_exporter_is_read_where_its_address_is_given(exporter: HTTPServer) -> None:
    clock = FakeClock()
    sensor = Dcgm(url=f"http://127.0.0.1:{exporter.server_port}/metrics", clock=clock)
    assert sensor.why_absent() is None
    assert [device.id for device in sensor.open()] == ["gpu:GPU-aaaa"]
    first = told(sensor.read())
    assert first["gpu:GPU-aaaa", "tensor_active"] == 0.42  # of the GPU, not of its MIG instance
    assert first["gpu:GPU-aaaa", "energy_j"] == 0.0
    exporter.energy_mj = 7_500_000  # type: ignore[attr-defined]
    clock.advance(5)
    assert told(sensor.read())["gpu:GPU-aaaa", "energy_j"] == 500.0
    exporter.status = 503  # type: ignore[attr-defined]
    clock.advance(5)
    gone = sensor.read()
    assert {reading.value for reading in gone} == {None}
    assert all("503" in reading.note for reading in gone)
    exporter.status = 200  # type: ignore[attr-defined]
    clock.advance(5)
    assert told(sensor.read())["gpu:GPU-aaaa", "energy_j"] == 500.0


def test_an_exporter_that_is_not_there_is_said(exporter: HTTPServer) -> None:
    exporter.status = 404  # type: ignore[attr-defined]
    assert "404" in (Dcgm(url=f"http://127.0.0.1:{exporter.server_port}/x").why_absent() or "")


def test_the_contract_holds(tmp_path: Path) -> None:
    check_sensor(Dcgm(dcgmi(tmp_path)))


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        ("0", ["gpu:GPU-aaaa"]),
        ("GPU-b", ["gpu:GPU-bbbb"]),
        ("1,0", ["gpu:GPU-aaaa", "gpu:GPU-bbbb"]),
        ("", []),
        ("-1", []),
    ],
)
def test_gpus_that_the_program_may_not_use_are_not_read(tmp_path: Path, visible: str, seen: list[str]) -> None:
    sensor = Dcgm(dcgmi(tmp_path), visible=visible)
    assert (sensor.why_absent() is None) == bool(seen)
    if seen:
        assert [device.id for device in sensor.open()] == seen
        sensor.close()
